//! Adapters against the worst that others do.

mod anthropic;
mod fixture;
mod gemini;
mod heard;
mod models;
mod openai;
mod scripted;
mod sqlite;
mod tasks;
mod tools;
mod transcript;
