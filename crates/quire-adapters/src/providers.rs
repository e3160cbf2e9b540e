//! Models, each behind [`quire_runtime::ports::ModelProvider`].

pub mod scripted;
