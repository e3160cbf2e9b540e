//! The program as its users start it: what it prints, what it exits with, and what is left when it is killed.

mod commands;
mod damage;
mod desk;
mod kills;
mod long;
mod models;
mod story;
mod together;
