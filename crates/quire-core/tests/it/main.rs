//! What the core promises, as scenarios.

mod pack;
mod tag;
