//! How the tools of the outside are reached.

pub mod mcp;
