//! For tests only: a session as text, small packs, worlds, and a model's server to talk to.

pub mod fake_openai;
pub mod play;
