//! How models, stores and chance are reached: one file each, strangers to each other.

pub mod chance;
pub mod providers;
pub mod stores;
