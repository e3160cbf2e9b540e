//! The rulebook of Quire: a writing session as a value.
//!
//! [`session::Session::handle`] takes one [`event::Event`] and says which [`effect::Effect`]s follow, or why the event is
//! refused. The same events give the same session on every machine: nothing here has IO, a clock, randomness or threads.

pub mod artifact;
pub mod blackboard;
pub mod chance;
pub mod check;
pub mod context;
pub mod deep_task;
pub mod diagnostic;
pub mod effect;
pub mod event;
pub mod ids;
pub mod journal;
pub mod message;
pub mod pack;
pub mod question;
pub mod reply;
pub mod session;
pub mod table;
pub mod tag;
