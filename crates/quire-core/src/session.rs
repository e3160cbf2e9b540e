//! A writing session as a value: the one place where decisions meet.

use serde::{Deserialize, Serialize};

/// Why something was not heard. The session is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What was wrong.
    pub message: String,
    /// What is pending, in words.
    pub pending: String,
    /// The names of the actions that would be heard.
    pub heard: Vec<String>,
}
