//! What a person would see of the core, a module for each part of it.
// The walls of clippy.toml stand around the rulebook; its tests may read files and look at the clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod check;
mod context;
mod pack;
mod pack_schema;
mod question;
mod reply;
mod schema;
mod session;
mod table;
mod tag;
