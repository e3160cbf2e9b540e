//! What one request wants besides a reply; more than a reply is only wanted by [`probe`](super::probe).

use serde_json::Value;

/// What is wanted.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Want {
    /// A reply, streamed, with calls as the profile has them.
    Reply,
    /// A reply in one piece, where the wire has such.
    Whole,
    /// A call of this tool and no other.
    Tool(&'static str),
    /// A text that is JSON of this schema.
    Schema(Value),
    /// A text that is JSON.
    JsonObject,
}
