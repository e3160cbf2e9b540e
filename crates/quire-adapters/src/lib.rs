//! How models, stores and tools are reached: one file each, strangers to each other.

pub mod providers;
pub mod stores;
pub mod tools;
