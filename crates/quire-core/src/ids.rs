//! Names of things, one type each, so that a run's number is never taken for an artifact's.
//!
//! Numbers are counted by the session itself along the path from its root: the same journal gives the same numbers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! counted {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Returns this number and moves the counter on.
            pub fn take(&mut self) -> Self {
                self.0 += 1;
                *self
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

counted! {
    /// A record of a journal; rising through the whole tree.
    RecordId
    /// How many events a session has heard along its path; what existed at a moment is asked by it.
    Revision
    /// A blackboard item's number: rises by one along the path, the only order of items.
    ItemNumber
    /// One artifact.
    ArtifactId
    /// One execution of a skill.
    RunId
    /// One question to a model; its attempts share it.
    CallId
    /// One question card.
    CardId
    /// One decision that waits for the user's approval.
    DecisionId
    /// One deep task.
    TaskId
    /// One call of a host tool, counted within its task.
    HostCallId
}

macro_rules! named {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the name as it is.
            pub fn new(name: impl AsRef<str>) -> Self {
                Self(name.as_ref().into())
            }

            /// Returns the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

named! {
    /// A session's name, chosen by the program that starts it.
    SessionId
    /// A skill's id: the name of its folder.
    SkillId
    /// SHA-256 of something that never changes, in lower-case hex.
    Hash
}

impl Hash {
    /// Hashes bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        use sha2::Digest;
        let digest = sha2::Sha256::digest(bytes.as_ref());
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
    }
}

/// A moment in milliseconds since 1970-01-01 UTC. The core is told it, never asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);
