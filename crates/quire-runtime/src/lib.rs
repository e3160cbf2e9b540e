//! The driver of sessions: in which order things are journaled, asked, retried and cancelled.
//!
//! Hear the event, append it, carry out what follows, bring the outcome back as an event: [`driver`] does this for one
//! session, [`fleet`] for many. Knows the core and its own [`ports`], and has never heard of HTTP, SQL, a vendor or a terminal.

pub mod driver;
pub mod fleet;
pub mod ports;
pub mod retry;
pub mod tokens;
pub mod watch;
