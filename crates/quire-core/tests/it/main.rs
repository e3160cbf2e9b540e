//! Scenarios of the core, a module for each part of it.

mod check;
mod context;
mod question;
mod reply;
