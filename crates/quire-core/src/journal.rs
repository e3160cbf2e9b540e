//! Records: how what happened is written down, and how it is read again.
//!
//! A journal is a tree: each record names its parent, ids rise through the whole tree, a session is the fold of the path
//! from the root to a head. A record's hash covers its parent's, so nothing on a path can be changed or dropped unseen.
//! Long texts are taken out of a record and named by hash, so that a store keeps each of them once.
//!
//! What is damaged or newer than this program is named, and reading stops there; nothing is ever reset.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::event::Event;
use crate::ids::{Hash, RecordId, SessionId, Timestamp};

pub mod upgrade;

/// The format written by this program.
pub const FORMAT: u32 = 1;

/// Texts of at least so many bytes are stored once, by hash.
const TEXT_BYTES_MIN: usize = 256;

/// One record, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its id, from 1.
    pub id: RecordId,
    /// The record before it on its path; none at the root.
    pub parent: Option<RecordId>,
    /// When it was written.
    pub time: Timestamp,
    /// What happened.
    pub event: Event,
    /// Covers everything above and the parent's hash.
    pub hash: Hash,
}

/// One record as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its id.
    pub id: RecordId,
    /// Its parent.
    pub parent: Option<RecordId>,
    /// When it was written.
    pub time: Timestamp,
    /// The format it was written in.
    pub format: u32,
    /// The event as JSON, long texts as `{"$text": hash}`.
    pub body: String,
    /// Covers everything above and the parent's hash.
    pub hash: Hash,
}

/// Long texts by their hash.
pub type Texts = BTreeMap<Hash, Arc<str>>;

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The bytes are not those that were written.
    #[error("record {0} is damaged: its content does not fit its hash")]
    Hash(RecordId),
    /// Written by a newer program.
    #[error("record {record} has format {format}, and this program reads up to {FORMAT}: a newer quire wrote it; use that one")]
    Newer {
        /// The record.
        record: RecordId,
        /// Its format.
        format: u32,
    },
    /// A long text is missing or changed.
    #[error("record {record} is damaged: its text {text} is missing or changed")]
    Text {
        /// The record.
        record: RecordId,
        /// The text's hash.
        text: Hash,
    },
    /// It cannot be read, though its hash fits.
    #[error("record {record} cannot be read: {message}")]
    Unreadable {
        /// The record.
        record: RecordId,
        /// The reader's words.
        message: String,
    },
    /// The record before it is missing.
    #[error("record {record} is cut off: the record before it ({parent}) is missing")]
    Gap {
        /// The record.
        record: RecordId,
        /// The missing one.
        parent: RecordId,
    },
    /// It was heard once and is refused now.
    #[error("record {record} does not follow from the ones before: {refusal}")]
    Refused {
        /// The record.
        record: RecordId,
        /// The refusal.
        refusal: String,
    },
    /// There is no record at all.
    #[error("the journal of this session is empty")]
    Empty,
}

/// Writes a record that follows `parent`, and gives the long texts it names.
pub fn encode(
    session: &SessionId,
    parent: Option<(RecordId, &Hash)>,
    id: RecordId,
    time: Timestamp,
    event: &Event,
) -> (StoredRecord, Texts) {
    let mut texts = Texts::new();
    let event = serde_json::to_value(event).expect("an event is plain data");
    let body = take_texts(event, &mut texts).to_string();
    let parent_hash = parent.map(|parent| parent.1);
    let parent = parent.map(|parent| parent.0);
    let hash = hash_of(session, parent, parent_hash, id, time, FORMAT, &body);
    (StoredRecord { id, parent, time, format: FORMAT, body, hash }, texts)
}

/// Reads the path from the root to `head`, up to the first damage.
pub fn read_path(session: &SessionId, stored: &[StoredRecord], texts: &Texts, head: RecordId) -> (Vec<Record>, Option<Damage>) {
    let by_id: BTreeMap<RecordId, &StoredRecord> = stored.iter().map(|record| (record.id, record)).collect();
    let mut path = vec![];
    let mut next = Some(head);
    let mut damage = None;
    while let Some(id) = next {
        match by_id.get(&id) {
            // A parent is always older: anything else would be a circle.
            Some(record) if record.parent.is_none_or(|parent| parent < id) => path.push(*record),
            found => {
                let record = path.last().map_or(id, |child: &&StoredRecord| child.id);
                damage = Some(if found.is_some() { Damage::Hash(id) } else { Damage::Gap { record, parent: id } });
                path.clear();
                break;
            }
        }
        next = by_id[&id].parent;
    }
    path.reverse();
    // Above a gap the order is lost from the head down; what hangs together from the root is still good.
    if damage.is_some() {
        path = from_root(stored);
    }
    let mut records: Vec<Record> = Vec::with_capacity(path.len());
    for stored in path {
        match decode(session, records.last(), stored, texts) {
            Ok(record) => records.push(record),
            Err(found) => return (records, Some(found)),
        }
    }
    if records.is_empty() && damage.is_none() {
        damage = Some(Damage::Empty);
    }
    (records, damage)
}

fn from_root(stored: &[StoredRecord]) -> Vec<&StoredRecord> {
    let mut path: Vec<&StoredRecord> = vec![];
    for record in stored {
        let follows = record.parent == path.last().map(|last| last.id);
        if follows {
            path.push(record);
        }
    }
    path
}

/// Reads one record that follows `parent`.
pub fn decode(session: &SessionId, parent: Option<&Record>, stored: &StoredRecord, texts: &Texts) -> Result<Record, Damage> {
    let StoredRecord { id, parent: parent_id, time, format, body, hash } = stored;
    if *format > FORMAT {
        return Err(Damage::Newer { record: *id, format: *format });
    }
    let expected = hash_of(session, *parent_id, parent.map(|parent| &parent.hash), *id, *time, *format, body);
    if *parent_id != parent.map(|parent| parent.id) || expected != *hash {
        return Err(Damage::Hash(*id));
    }
    let unreadable = |error: serde_json::Error| Damage::Unreadable { record: *id, message: error.to_string() };
    let body: Value = serde_json::from_str(body).map_err(unreadable)?;
    let body = put_texts(body, texts).map_err(|text| Damage::Text { record: *id, text })?;
    let event = serde_json::from_value(upgrade::lift(*format, body)).map_err(unreadable)?;
    Ok(Record { id: *id, parent: *parent_id, time: *time, event, hash: hash.clone() })
}

fn hash_of(
    session: &SessionId,
    parent: Option<RecordId>,
    parent_hash: Option<&Hash>,
    id: RecordId,
    time: Timestamp,
    format: u32,
    body: &str,
) -> Hash {
    let parent = parent.map_or(0, |parent| parent.0);
    let parent_hash = parent_hash.map_or("", Hash::as_str);
    Hash::of(format!("{format}\n{session}\n{id}\n{parent}\n{parent_hash}\n{}\n{body}", time.0))
}

const TEXT_KEY: &str = "$text";
const LITERAL_KEY: &str = "$literal";

fn take_texts(value: Value, texts: &mut Texts) -> Value {
    match value {
        Value::String(text) if text.len() >= TEXT_BYTES_MIN => {
            let hash = Hash::of(text.as_bytes());
            let reference = Value::Object(Map::from_iter([(TEXT_KEY.to_owned(), hash.as_str().into())]));
            texts.insert(hash, text.into());
            reference
        }
        Value::Array(values) => values.into_iter().map(|value| take_texts(value, texts)).collect(),
        Value::Object(fields) => {
            let looks_like_ours = fields.len() == 1 && (fields.contains_key(TEXT_KEY) || fields.contains_key(LITERAL_KEY));
            let fields: Map<String, Value> = fields.into_iter().map(|(key, value)| (key, take_texts(value, texts))).collect();
            if looks_like_ours {
                return Value::Object(Map::from_iter([(LITERAL_KEY.to_owned(), Value::Object(fields))]));
            }
            Value::Object(fields)
        }
        other => other,
    }
}

fn put_texts(value: Value, texts: &Texts) -> Result<Value, Hash> {
    match value {
        Value::Array(values) => values.into_iter().map(|value| put_texts(value, texts)).collect(),
        Value::Object(mut fields) => {
            if fields.len() == 1 {
                if let Some(Value::String(hash)) = fields.get(TEXT_KEY) {
                    let hash = Hash::new(hash);
                    return match texts.get(&hash) {
                        Some(text) if Hash::of(text.as_bytes()) == hash => Ok(Value::String(text.as_ref().to_owned())),
                        _ => Err(hash),
                    };
                }
                if let Some(Value::Object(literal)) = fields.get_mut(LITERAL_KEY) {
                    let literal = std::mem::take(literal);
                    return literal.into_iter().map(|(key, value)| Ok((key, put_texts(value, texts)?))).collect();
                }
            }
            fields.into_iter().map(|(key, value)| Ok((key, put_texts(value, texts)?))).collect()
        }
        other => Ok(other),
    }
}

/// Returns the hashes of the long texts that a record's body names.
pub fn texts_named(body: &str) -> Vec<Hash> {
    fn walk(value: &Value, found: &mut Vec<Hash>) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| walk(value, found)),
            Value::Object(fields) => match fields.get(TEXT_KEY) {
                Some(Value::String(hash)) if fields.len() == 1 => found.push(Hash::new(hash)),
                _ => fields.values().for_each(|value| walk(value, found)),
            },
            _ => {}
        }
    }
    let mut found = vec![];
    if let Ok(body) = serde_json::from_str(body) {
        walk(&body, &mut found);
    }
    found
}
