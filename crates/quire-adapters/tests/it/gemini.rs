//! This wire as servers really send it: in memory for what is read, over loopback for what is asked.

mod asking;
mod reading;
