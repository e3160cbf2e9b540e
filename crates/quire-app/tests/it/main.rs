//! What a person sees of the program.

mod guide;
mod incoming;

mod old_pack;
mod pack;
