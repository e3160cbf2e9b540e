//! Tables: texts of rows that workers patch and the user edits cell by cell.
//!
//! Each cell has a revision; who writes names the one they saw, so that nobody overwrites what they have not read.
//! A cell the user wrote is the user's until it is released.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The content of a table tag.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Table {
    /// The rows, in the order they came.
    pub rows: Vec<Row>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its name, unique in the table.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Rises by one with each write; 1 for the first.
    #[serde(default)]
    pub rev: u64,
    /// Whose it is.
    #[serde(default)]
    pub source: CellSource,
    /// Whether the user may write it.
    #[serde(default = "yes")]
    pub editable: bool,
    /// A word about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

fn yes() -> bool {
    true
}

/// Whose a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellSource {
    /// The workers'.
    #[default]
    Worker,
    /// The user's: workers' patches pass it by.
    User,
}

/// What a worker hands in for a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Patch {
    /// New values by key.
    pub patch: serde_json::Map<String, Value>,
    /// The revisions the worker saw, by key.
    #[serde(default)]
    pub expected_rev: BTreeMap<String, u64>,
}

/// Why the user's edit of a cell is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// There is no such cell.
    #[error("the table has no cell `{0}`")]
    Unknown(String),
    /// The cell was written since.
    #[error("cell `{key}` is at revision {rev} with value {value}, not at {seen}; look at it again and name {rev}")]
    Stale {
        /// The cell.
        key: String,
        /// The revision named.
        seen: u64,
        /// The present revision; 0: no such cell.
        rev: u64,
        /// The present value.
        value: Value,
    },
    /// The pack does not let the user write it.
    #[error("cell `{0}` is not editable")]
    NotEditable(String),
    /// There is nothing to hand back.
    #[error("cell `{0}` is not yours")]
    NotYours(String),
}

impl Table {
    /// Reads a table's content; none yet is an empty table.
    pub fn read(content: Option<&str>) -> Result<Self, serde_json::Error> {
        content.map_or(Ok(Self::default()), serde_json::from_str)
    }

    /// Writes the content.
    pub fn content(&self) -> String {
        serde_json::to_string(self).expect("a table is plain data")
    }

    /// Returns a cell's revision; 0 where there is none.
    pub fn rev(&self, key: &str) -> u64 {
        self.row(key).map_or(0, |row| row.rev)
    }

    fn row(&self, key: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.key == key)
    }

    fn write(&mut self, key: &str, value: Value, source: CellSource) {
        match self.rows.iter_mut().find(|row| row.key == key) {
            Some(row) => {
                row.value = value;
                row.rev += 1;
                row.source = source;
            }
            None => {
                let key = key.to_owned();
                self.rows.push(Row { key, value, rev: 1, source, editable: true, note: String::new() });
            }
        }
    }

    /// Takes a worker's patch; `seen` is the table as its run read it. Returns a sentence for each cell passed by.
    pub fn merge(&mut self, patch: &Patch, seen: &Table) -> Vec<String> {
        let mut passed_by = vec![];
        for (key, value) in &patch.patch {
            let expected = patch.expected_rev.get(key).copied().unwrap_or_else(|| seen.rev(key));
            match self.row(key) {
                Some(row) if row.source == CellSource::User => {
                    passed_by.push(format!("`{key}` belongs to the user and stays {} (rev {})", row.value, row.rev));
                }
                Some(row) if row.rev != expected => {
                    passed_by
                        .push(format!("`{key}` was written since: it is {} (rev {}), not rev {expected}", row.value, row.rev));
                }
                None if expected != 0 => passed_by.push(format!("`{key}` does not exist (rev 0), not rev {expected}")),
                Some(_) | None => self.write(key, value.clone(), CellSource::Worker),
            }
        }
        passed_by
    }

    /// Takes the user's edit of a cell, which is the user's from then on.
    pub fn edit(&mut self, key: &str, value: Value, rev: u64) -> Result<(), CellError> {
        self.check(key, rev)?;
        self.write(key, value, CellSource::User);
        Ok(())
    }

    /// Hands a cell back to the workers.
    pub fn release(&mut self, key: &str, rev: u64) -> Result<(), CellError> {
        let row = self.row(key).ok_or_else(|| CellError::Unknown(key.to_owned()))?;
        if row.source != CellSource::User {
            return Err(CellError::NotYours(key.to_owned()));
        }
        let value = row.value.clone();
        self.check(key, rev)?;
        self.write(key, value, CellSource::Worker);
        Ok(())
    }

    fn check(&self, key: &str, seen: u64) -> Result<(), CellError> {
        let row = self.row(key);
        let rev = row.map_or(0, |row| row.rev);
        if rev != seen {
            let value = row.map_or(Value::Null, |row| row.value.clone());
            return Err(CellError::Stale { key: key.to_owned(), seen, rev, value });
        }
        match row {
            Some(row) if !row.editable => Err(CellError::NotEditable(key.to_owned())),
            Some(_) | None => Ok(()),
        }
    }
}
