//! Tests of the adapters.

mod scripted;
