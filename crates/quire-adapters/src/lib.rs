//! How models and stores are reached; each file a stranger to the others.

pub mod stores;
