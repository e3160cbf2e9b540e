//! From what a model wrote to what it meant: arguments of calls, JSON in text, outputs without a call.
//!
//! A model's worst reply is an ordinary day. What is written verbatim is taken first; small faults are mended outside of
//! strings only, a mended value is marked, and what was cut off is marked and never run.
