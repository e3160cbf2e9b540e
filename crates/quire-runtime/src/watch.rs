//! What can be watched while it happens: records as they are written, and text as it streams.
//!
//! Streamed text passes beside the journal: it carries its attempt, so that a second attempt replaces what the first showed.

use std::sync::Arc;

use quire_core::event::Event;
use quire_core::ids::{CallId, RecordId, SessionId};

use crate::ports::{Asker, Delta, StoreError};

/// Something that just happened.
#[derive(Debug, Clone)]
pub enum Watched {
    /// A record is on disk.
    Recorded {
        /// The session.
        session: SessionId,
        /// The record.
        record: RecordId,
        /// What happened.
        event: Arc<Event>,
    },
    /// An attempt begins.
    Asked {
        /// The session.
        session: SessionId,
        /// The call.
        call: CallId,
        /// The attempt, from 1.
        attempt: u32,
        /// Who asks.
        asker: Asker,
        /// Rounds the asker has used, this one too.
        round: u32,
    },
    /// A piece of a reply came.
    Streamed {
        /// The session.
        session: SessionId,
        /// The call.
        call: CallId,
        /// The attempt, from 1.
        attempt: u32,
        /// The piece.
        delta: Delta,
    },
    /// An attempt failed and is made again after a pause.
    Retrying {
        /// The session.
        session: SessionId,
        /// What failed.
        message: String,
        /// The pause in milliseconds.
        pause_ms: u64,
    },
    /// A posted action was refused.
    Refused {
        /// The session.
        session: SessionId,
    },
    /// Nobody drives the session any more: it waits, is done, or somebody else has it.
    Left {
        /// The session.
        session: SessionId,
    },
    /// The session could not be driven; nothing that was recorded is lost.
    Failed {
        /// The session.
        session: SessionId,
        /// Why.
        error: StoreError,
    },
}

impl Watched {
    /// Returns the session it is about.
    pub fn session(&self) -> &SessionId {
        match self {
            Self::Recorded { session, .. }
            | Self::Asked { session, .. }
            | Self::Streamed { session, .. }
            | Self::Retrying { session, .. }
            | Self::Refused { session }
            | Self::Left { session }
            | Self::Failed { session, .. } => session,
        }
    }
}
