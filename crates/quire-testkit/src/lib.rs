//! For tests only: a session as text, small packs, what every store must do, and a model's server to talk to.

mod fake_anthropic;
mod fake_gemini;
pub mod fake_model;
pub mod fake_openai;
pub mod hand;
pub mod play;
pub mod store;
pub mod transcript;
