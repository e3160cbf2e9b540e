//! Scenarios of the core, a module for each part of it.

mod question;
mod reply;
