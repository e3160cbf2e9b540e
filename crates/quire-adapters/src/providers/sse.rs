//! Cuts the bytes of an answer into events, wherever they are split.
//!
//! An event reader of our own instead of a crate's: crates drop a last event without a blank line after it, hold back
//! everything after one invalid byte, and know nothing of the whole documents and web pages that come instead of events.

/// One thing a server sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// An event.
    Event { is_error: bool, data: String },
    /// A whole body that is not made of events.
    Document(String),
    /// A line that belongs to no event.
    Stray(String),
}

/// Cuts bytes into frames, wherever they are split.
#[derive(Debug, Default)]
pub(super) struct Frames {
    kind: BodyKind,
    /// The line not ended yet, or the whole document.
    line: Vec<u8>,
    /// Whether the last line ended in CR, so that an LF right after it ends nothing.
    is_after_cr: bool,
    is_error: bool,
    data: Vec<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    #[default]
    Unknown,
    Events,
    Document,
}

impl Frames {
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        for &byte in bytes {
            if self.kind == BodyKind::Unknown {
                self.kind = match byte {
                    // Blank, or a byte order mark.
                    b' ' | b'\t' | b'\r' | b'\n' | 0xEF | 0xBB | 0xBF => continue,
                    b'{' | b'[' | b'<' => BodyKind::Document,
                    _ => BodyKind::Events,
                };
            }
            if self.kind == BodyKind::Document {
                self.line.push(byte);
                continue;
            }
            let is_end_of_crlf = byte == b'\n' && self.is_after_cr;
            self.is_after_cr = byte == b'\r';
            match byte {
                _ if is_end_of_crlf => {}
                b'\r' | b'\n' => frames.extend(self.line_ended()),
                _ => self.line.push(byte),
            }
        }
        frames
    }

    /// Gives what has not been ended by a blank line; the last one is often forgotten.
    pub(super) fn rest(&mut self) -> Option<Frame> {
        if self.kind == BodyKind::Document {
            return Some(Frame::Document(text(&std::mem::take(&mut self.line))));
        }
        let stray = if self.line.is_empty() { None } else { self.line_ended() };
        self.event_ended().or(stray)
    }

    fn line_ended(&mut self) -> Option<Frame> {
        let line = text(&std::mem::take(&mut self.line));
        if line.is_empty() {
            return self.event_ended();
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.data.push(value.to_owned()),
            "event" => self.is_error = value == "error",
            "" | "id" | "retry" => {}
            _ => return Some(Frame::Stray(line)),
        }
        None
    }

    fn event_ended(&mut self) -> Option<Frame> {
        let is_error = std::mem::take(&mut self.is_error);
        let data = std::mem::take(&mut self.data).join("\n");
        (!data.trim().is_empty()).then_some(Frame::Event { is_error, data })
    }
}

/// Lines and documents are decoded whole, so no character is ever cut; an invalid byte costs itself and nothing else.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
