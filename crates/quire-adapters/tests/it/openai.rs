//! Chat completions as servers really send them: in memory for what is read, over loopback for what is asked.

mod asking;
mod reading;
