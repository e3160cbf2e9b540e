//! Everything a session can ask of the outside. A closed list, as orders; each is answered by one event.

use crate::ids::{CallId, HostCallId, TaskId};

/// One order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Ask a model. The prompt is [`Session::prompt`](crate::session::Session::prompt), or that of the
    /// [`Session::task_asking`](crate::session::Session::task_asking) by this call.
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
    /// Look up the tools a deep task gets.
    EquipTask {
        /// The task.
        task: TaskId,
    },
    /// Call a host tool; where the call is lost ([`HostCall::is_lost`](crate::deep_task::HostCall::is_lost)), say so instead.
    /// A call that is no longer owed is broken off.
    CallTool {
        /// The task.
        task: TaskId,
        /// The call; with the task, its idempotency key.
        call: HostCallId,
    },
}
