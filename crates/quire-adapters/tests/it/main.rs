//! Adapters against the real thing, or a local fake of it.

mod sqlite;
