//! The rules of SPEC §3 to §9 as plays.

mod chance;
mod phases;
