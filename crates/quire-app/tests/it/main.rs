//! What a person sees of the program.

mod guide;
mod incoming;

mod pack;
