//! Reasoning that a model writes into its text: `<think>…</think>` at the very beginning, however it is cut.

const THINK: &str = "<think>";
pub(super) const THINK_END: &str = "</think>";

/// Tells reasoning written into the text (`<think>…</think>` at its very beginning) from the text.
#[derive(Debug)]
pub(super) enum Thinking {
    /// So far the text may still be the beginning of the mark.
    Undecided(String),
    /// In the reasoning; what may be the beginning of its end mark is held back.
    Inside(String),
    /// Behind the end mark, before the text.
    Behind,
    /// In the text, for good.
    Over,
}

impl Default for Thinking {
    fn default() -> Self {
        Self::Undecided(String::new())
    }
}

#[derive(Debug, Default)]
pub(super) struct Split {
    pub(super) reasoning: String,
    pub(super) text: String,
}

impl Thinking {
    pub(super) fn take(&mut self, piece: &str) -> Split {
        let mut split = Split::default();
        self.take_into(piece, &mut split);
        split
    }

    fn take_into(&mut self, piece: &str, split: &mut Split) {
        match self {
            Self::Undecided(held) => {
                held.push_str(piece);
                if let Some(rest) = held.trim_start().strip_prefix(THINK) {
                    let rest = rest.to_owned();
                    *self = Self::Inside(String::new());
                    self.take_into(&rest, split);
                } else if !THINK.starts_with(held.trim_start()) {
                    split.text.push_str(held);
                    *self = Self::Over;
                }
            }
            Self::Inside(held) => {
                held.push_str(piece);
                if let Some((reasoning, rest)) = held.split_once(THINK_END) {
                    split.reasoning.push_str(reasoning);
                    let rest = rest.to_owned();
                    *self = Self::Behind;
                    self.take_into(&rest, split);
                } else {
                    let kept = (1..THINK_END.len()).rev().find(|&n| THINK_END.get(..n).is_some_and(|mark| held.ends_with(mark)));
                    let tail = held.split_off(held.len() - kept.unwrap_or(0));
                    split.reasoning.push_str(held);
                    *held = tail;
                }
            }
            Self::Behind => {
                let text = piece.trim_start();
                if !text.is_empty() {
                    split.text.push_str(text);
                    *self = Self::Over;
                }
            }
            Self::Over => split.text.push_str(piece),
        }
    }

    /// Ends the text. Blank text alone is no text: models write line breaks in front of calls.
    pub(super) fn end(self) -> Split {
        match self {
            Self::Undecided(held) if held.trim().is_empty() => Split::default(),
            Self::Undecided(text) => Split { text, ..Split::default() },
            Self::Inside(reasoning) => Split { reasoning, ..Split::default() },
            Self::Behind | Self::Over => Split::default(),
        }
    }
}
