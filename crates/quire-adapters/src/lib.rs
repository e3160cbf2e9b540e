//! How models and stores are reached: one file each, strangers to each other.

pub mod providers;
pub mod stores;
