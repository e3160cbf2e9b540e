//! For tests only: what every store must do.

pub mod store;
