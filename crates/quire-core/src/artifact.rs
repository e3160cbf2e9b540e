//! What runs handed in: its items, and what became of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{ArtifactId, ItemNumber, RunId, SkillId};
use crate::tag::{RoleId, Tag};

/// What one run handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Its number.
    pub id: ArtifactId,
    /// The run.
    pub run: RunId,
    /// The run's skill.
    pub skill: SkillId,
    /// The run's role.
    pub role: Option<RoleId>,
    /// Its texts: the present item of each tag.
    pub items: BTreeMap<Tag, ItemNumber>,
    /// What the worker says of it.
    pub summary: Arc<str>,
    /// What became of it.
    pub state: ArtifactState,
    /// The skill's checks that do not hold, as sentences.
    pub failed_checks: Vec<String>,
    /// The verdict, where the skill reviews.
    pub verdict: Option<Verdict>,
}

/// What became of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactState {
    /// Waits for a verdict.
    Drafted,
    /// A fact.
    Accepted,
    /// Sent back: the next run of its skill and role mends it.
    RevisionRequested,
    /// Thrown away.
    Rejected,
    /// A later run of the same skill took its place.
    Superseded,
}

impl ArtifactState {
    /// The state's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Drafted => "drafted",
            Self::Accepted => "accepted",
            Self::RevisionRequested => "revision_requested",
            Self::Rejected => "rejected",
            Self::Superseded => "superseded",
        }
    }
}

/// What a reviewing skill says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Good.
    Pass,
    /// To be mended.
    Fail,
}
