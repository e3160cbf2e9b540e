//! The rules of SPEC §3 to §9 as plays.

mod agent;
mod board;
mod phases;
mod review;
mod stages;
mod user;
mod worker;
