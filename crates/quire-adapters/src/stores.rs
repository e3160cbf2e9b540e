//! Stores of journals, one module each. Each passes `quire_testkit::store::conforms`.

pub mod sqlite;
