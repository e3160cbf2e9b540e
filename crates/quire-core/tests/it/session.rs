//! The rules of SPEC §3 to §9 as plays.

mod agent;
mod board;
mod calls;
mod canaries;
mod chance;
mod matrix;
mod packs;
mod phases;
mod properties;
mod review;
mod stages;
mod tasks;
mod user;
mod worker;
