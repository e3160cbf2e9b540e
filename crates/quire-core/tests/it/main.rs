//! What a person would see of the core.

mod context;
mod pack;
mod question;
mod reply;
mod tag;
