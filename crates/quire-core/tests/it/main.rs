//! What a person would see of the core, a module for each part of it.

mod check;
mod context;
mod pack;
mod question;
mod reply;
mod session;
mod tag;
