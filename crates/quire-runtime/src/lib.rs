//! The driver of sessions: in which order things are journaled, asked, retried and cancelled.
//!
//! Knows the core and its own ports, and has never heard of HTTP, SQL, a vendor or a terminal.

pub mod ports;
