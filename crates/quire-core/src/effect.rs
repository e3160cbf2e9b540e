//! Everything a session can ask of the outside. A closed list, as orders; each is answered by one event.

use crate::ids::CallId;

/// One order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Ask a model. The prompt is [`Session::prompt`](crate::session::Session::prompt).
    AskModel {
        /// The call; its idempotency key.
        call: CallId,
    },
    /// Give a seed for the draws of this turn.
    Draw,
    /// Break off a request; what had come is kept.
    CancelModel {
        /// The call.
        call: CallId,
    },
}
