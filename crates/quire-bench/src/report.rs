//! The page, and the arithmetic on it.

use std::fmt::Write as _;
use std::time::Duration;

/// A page of tables, in Markdown.
#[derive(Debug)]
pub struct Page {
    text: String,
}

impl Page {
    /// Begins the page with what it was measured on.
    pub fn new(machine: &str) -> Self {
        let text = format!(
            "# Benchmarks\n\nWritten by `cargo xtask bench`; a release build. Ratios are medians of pairs measured side by side in one \
             run; times are medians unless a line says otherwise.\n\nMeasured on {machine}.\n"
        );
        Self { text }
    }

    /// Begins a section with a sentence on how it was measured.
    pub fn section(&mut self, title: &str, how: &str) {
        let _ = write!(self.text, "\n## {title}\n\n{how}\n\n| what | measured | goal |\n|---|---|---|\n");
        eprintln!("{title}");
    }

    /// Adds a line; `goal` is empty where there is none.
    pub fn line(&mut self, what: &str, measured: impl Into<String>, goal: &str) {
        let measured = measured.into();
        let _ = writeln!(self.text, "| {what} | {measured} | {goal} |");
        eprintln!("  {what}: {measured}");
    }

    /// Returns the page.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Returns the middle of some values; there is at least one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Shows a time with a unit that fits.
pub fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.2} s"),
        seconds if seconds >= 1e-3 => format!("{:.2} ms", seconds * 1e3),
        seconds => format!("{:.1} µs", seconds * 1e6),
    }
}

/// Shows how often something happens in a second.
pub fn rate(count: usize, time: Duration) -> String {
    format!("{:.0} a second", count as f64 / time.as_secs_f64())
}
