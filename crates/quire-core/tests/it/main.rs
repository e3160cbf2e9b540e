//! What a person would see of the core.

mod check;
mod pack;
mod question;
mod reply;
mod tag;
