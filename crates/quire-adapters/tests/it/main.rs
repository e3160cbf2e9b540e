//! Adapters against the worst that others do.

mod openai;
mod scripted;
mod sqlite;
