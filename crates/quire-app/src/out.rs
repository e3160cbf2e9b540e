//! What the program writes for people and scripts: standard output and standard error.
//!
//! The macros here take the place of the standard ones of the same names, in the whole crate: those panic when nobody reads
//! any more (`quire journal S | head`), and pass on whatever a model, a pack or a title holds, escape sequences that steer
//! the terminal among it. Here a closed pipe ends the program quietly, and a control character is written as its escape,
//! which inside a JSON string is the same character.

use std::fmt::Arguments;
use std::io::{self, Write as _};

use crate::report;

macro_rules! print {
    ($($text:tt)*) => { $crate::out::standard(&format!($($text)*)) };
}

macro_rules! println {
    () => { $crate::out::standard("\n") };
    ($($text:tt)*) => { $crate::out::standard(&format!("{}\n", format_args!($($text)*))) };
}

macro_rules! eprintln {
    () => { $crate::out::error(format_args!("\n")) };
    ($($text:tt)*) => { $crate::out::error(format_args!("{}\n", format_args!($($text)*))) };
}

/// Writes to standard output, control characters as escapes.
pub fn standard(text: &str) {
    styled(&printable(text));
}

/// Writes to standard output what is printable already but for our own colours. Where nobody reads it any more, the program
/// ends: what it did is on disk.
pub fn styled(text: &str) {
    let written = io::stdout().lock().write_all(text.as_bytes());
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(report::FINE.into()),
        Err(error) => {
            eprintln!("quire: the answer cannot be written to standard output: {error}; what was done is on disk");
            std::process::exit(report::FAILED.into());
        }
    }
}

/// Writes to standard error. Where that fails, nobody is left to tell.
pub fn error(text: Arguments<'_>) {
    io::stderr().lock().write_all(printable(&text.to_string()).as_bytes()).ok();
}

/// Writes control characters as escapes: models write text, and do not steer terminals.
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => printable.push(letter),
            '\r' => {}
            letter if letter.is_control() => printable.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => printable.push(letter),
        }
    }
    printable
}
