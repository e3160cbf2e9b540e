//! The program as its users start it: what it prints, what it exits with, and what is left when it is killed.

mod chat;
mod commands;
mod damage;
mod desk;
mod guide;
mod incoming;
mod kills;
mod long;
mod models;
mod old_pack;
mod pack;
mod profiles;
mod spending;
mod story;
mod tasks;
mod together;
