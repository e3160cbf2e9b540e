//! The models: each provider's dialect on one side, [`quire_runtime::ports::ModelProvider`] on the other.

pub mod openai;
pub mod scripted;
