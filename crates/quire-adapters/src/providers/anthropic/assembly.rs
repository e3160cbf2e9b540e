//! Puts a reply together from the events of a message, or from a whole message.
//!
//! Blocks come one after another, each begun, filled and ended; servers forget each of the three, so a piece that fits no
//! open block begins one of its own kind.

use quire_core::message::{Finish, Reply, ToolCall, Usage};
use quire_runtime::ports::Delta;
use serde_json::{Value, json};

use super::WIRE;
use crate::providers::reasoning;
use crate::providers::stream::Assemble;
use crate::providers::thinking::{Split, Thinking};

/// A reply under way.
pub(super) struct Assembly<'a> {
    model: &'a str,
    deltas: &'a (dyn Fn(Delta) + Send + Sync),
    blocks: Vec<Block>,
    marks: Thinking,
    usage: Tokens,
    finish: Option<Finish>,
    has_begun: bool,
    is_ended: bool,
    is_whole_message: bool,
}

struct Block {
    index: Option<u64>,
    content: Content,
}

enum Content {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    /// Thinking that only its provider can read.
    Redacted(Value),
    Call(Call),
    /// What we did not ask for.
    Other,
}

struct Call {
    id: String,
    name: String,
    /// What the block began with; whole where nothing follows.
    input: Option<String>,
    arguments: String,
}

/// Tokens as this wire counts them: cached ones apart.
#[derive(Default)]
struct Tokens {
    input: u64,
    written_to_cache: u64,
    read_from_cache: u64,
    output: u64,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(model: &'a str, deltas: &'a (dyn Fn(Delta) + Send + Sync)) -> Self {
        Self {
            model,
            deltas,
            blocks: Vec::new(),
            marks: Thinking::default(),
            usage: Tokens::default(),
            finish: None,
            has_begun: false,
            is_ended: false,
            is_whole_message: false,
        }
    }

    fn take_message(&mut self, message: &Value) {
        self.take_usage(message);
        for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
            self.begin(None, block);
        }
        self.take_finish(message);
    }

    fn take_usage(&mut self, holder: &Value) {
        let Some(usage) = holder.get("usage") else { return };
        let number = |name: &str| usage.get(name).and_then(Value::as_u64).filter(|number| *number > 0);
        let Tokens { input, written_to_cache, read_from_cache, output } = &mut self.usage;
        for (kept, name) in [
            (input, "input_tokens"),
            (written_to_cache, "cache_creation_input_tokens"),
            (read_from_cache, "cache_read_input_tokens"),
            (output, "output_tokens"),
        ] {
            *kept = number(name).unwrap_or(*kept);
        }
    }

    fn take_finish(&mut self, holder: &Value) {
        if let Some(word) = holder.get("stop_reason").and_then(Value::as_str).filter(|word| !word.is_empty()) {
            self.finish = Some(finish_of(word));
        }
    }

    /// Begins a block with what it already holds.
    fn begin(&mut self, index: Option<u64>, block: &Value) {
        let kind = text_in(block, "type");
        let content = match kind {
            "text" => Content::Text(String::new()),
            "thinking" => Content::Thinking { text: String::new(), signature: String::new() },
            "redacted_thinking" => Content::Redacted(block.clone()),
            "tool_use" => Content::Call(Call {
                id: text_in(block, "id").to_owned(),
                name: text_in(block, "name").to_owned(),
                input: block.get("input").and_then(input),
                arguments: String::new(),
            }),
            _ => Content::Other,
        };
        self.blocks.push(Block { index, content });
        let at = self.blocks.len() - 1;
        match kind {
            "text" => self.fill(at, "text_delta", block),
            "thinking" => {
                self.fill(at, "thinking_delta", block);
                self.fill(at, "signature_delta", block);
            }
            _ => {}
        }
    }

    fn take_piece(&mut self, index: Option<u64>, piece: &Value) {
        let kind = text_in(piece, "type");
        let fits = |block: &Block| {
            matches!(
                (&block.content, kind),
                (Content::Text(_), "text_delta")
                    | (Content::Thinking { .. }, "thinking_delta" | "signature_delta")
                    | (Content::Call(_), "input_json_delta")
            )
        };
        let is_of_other = |block: &Block| matches!(block.content, Content::Other);
        if self.blocks.iter().rev().find(|block| index.is_some() && block.index == index).is_some_and(is_of_other) {
            return;
        }
        let at_index = self.blocks.iter().rposition(|block| index.is_some() && block.index == index && fits(block));
        let at = at_index.or_else(|| self.blocks.len().checked_sub(1).filter(|last| fits(&self.blocks[*last])));
        let at = at.unwrap_or_else(|| {
            let begun = match kind {
                "text_delta" => "text",
                "thinking_delta" | "signature_delta" => "thinking",
                "input_json_delta" => "tool_use",
                other => other,
            };
            self.begin(index, &json!({"type": begun}));
            self.blocks.len() - 1
        });
        self.fill(at, kind, piece);
    }

    fn fill(&mut self, at: usize, kind: &str, piece: &Value) {
        match (&mut self.blocks[at].content, kind) {
            (Content::Text(_), "text_delta") => {
                let split = self.marks.take(text_in(piece, "text"));
                self.say(at, split);
            }
            (Content::Thinking { text, .. }, "thinking_delta") => {
                let thought = text_in(piece, "thinking");
                text.push_str(thought);
                if !thought.is_empty() {
                    (self.deltas)(Delta::Reasoning(thought.to_owned()));
                }
            }
            (Content::Thinking { signature, .. }, "signature_delta") => signature.push_str(text_in(piece, "signature")),
            (Content::Call(call), "input_json_delta") => {
                let text = text_in(piece, "partial_json");
                call.arguments.push_str(text);
                if !text.is_empty() {
                    (self.deltas)(Delta::Arguments { tool: call.name.clone(), text: text.to_owned() });
                }
            }
            (Content::Text(_) | Content::Thinking { .. } | Content::Redacted(_) | Content::Call(_) | Content::Other, _) => {}
        }
    }

    /// Puts what was told apart where it belongs: reasoning in front of the text it was written into.
    fn say(&mut self, at: usize, split: Split) {
        let Split { reasoning, text: said } = split;
        if !reasoning.is_empty() {
            (self.deltas)(Delta::Reasoning(reasoning.clone()));
            let thinking = Content::Thinking { text: reasoning, signature: String::new() };
            self.blocks.insert(at, Block { index: None, content: thinking });
        }
        if said.is_empty() {
            return;
        }
        (self.deltas)(Delta::Text(said.clone()));
        if let Some(Content::Text(text)) =
            self.blocks.iter_mut().skip(at).map(|block| &mut block.content).find(|content| matches!(content, Content::Text(_)))
        {
            text.push_str(&said);
        }
    }
}

impl Assemble for Assembly<'_> {
    fn take(&mut self, document: &Value) {
        let index = document.get("index").and_then(Value::as_u64);
        let kind = text_in(document, "type");
        self.has_begun |= matches!(kind, "message" | "message_start" | "content_block_start" | "content_block_delta");
        match kind {
            "message" => {
                self.is_whole_message = true;
                self.take_message(document);
            }
            "message_start" => {
                if let Some(message) = document.get("message") {
                    self.take_message(message);
                }
            }
            "content_block_start" => {
                if let Some(block) = document.get("content_block") {
                    self.begin(index, block);
                }
            }
            "content_block_delta" => {
                if let Some(piece) = document.get("delta") {
                    self.take_piece(index, piece);
                }
            }
            "message_delta" => {
                self.take_usage(document);
                if let Some(delta) = document.get("delta") {
                    self.take_finish(delta);
                }
            }
            "message_stop" => self.is_ended = true,
            _ => {}
        }
    }

    fn flush(&mut self) {
        let split = std::mem::take(&mut self.marks).end();
        let last_text = self.blocks.iter().rposition(|block| matches!(block.content, Content::Text(_)));
        if let Some(at) = last_text {
            self.say(at, split);
        }
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn is_ended(&self) -> bool {
        self.is_ended
    }

    fn is_whole_message(&self) -> bool {
        self.is_whole_message
    }

    fn has_said_something(&self) -> bool {
        self.blocks.iter().any(|block| match &block.content {
            Content::Text(text) => !text.is_empty(),
            Content::Thinking { .. } | Content::Redacted(_) | Content::Call(_) => true,
            Content::Other => false,
        })
    }

    /// A refusal is a reason of the end here, not words.
    fn refusal(&self) -> Option<String> {
        None
    }

    fn into_reply(self) -> Reply {
        let (mut text, mut thought, mut parts, mut calls) = (String::new(), String::new(), vec![], vec![]);
        let mut is_signed = false;
        for block in self.blocks {
            match block.content {
                Content::Text(said) => text += &said,
                Content::Thinking { text, signature } => {
                    thought += &text;
                    is_signed |= !signature.is_empty();
                    if !signature.is_empty() {
                        parts.push(json!({"type": "thinking", "thinking": text, "signature": signature}));
                    }
                }
                Content::Redacted(block) => {
                    is_signed = true;
                    parts.push(block);
                }
                Content::Call(Call { id, name, input, arguments }) => {
                    let arguments = if arguments.is_empty() { input.unwrap_or_default() } else { arguments };
                    calls.push(ToolCall { id, name, arguments: arguments.into() });
                }
                Content::Other => {}
            }
        }
        let parts = if is_signed { parts } else { vec![] };
        let Tokens { input, written_to_cache, read_from_cache, output } = self.usage;
        Reply {
            text: text.into(),
            reasoning: reasoning::stored(WIRE, self.model, thought, parts),
            calls,
            finish: self.finish.unwrap_or_else(|| Finish::Other("missing".to_owned())),
            usage: Usage {
                input_tokens: input + written_to_cache + read_from_cache,
                cached_tokens: read_from_cache,
                output_tokens: output,
                money_micros: 0,
            },
        }
    }
}

fn text_in<'a>(holder: &'a Value, name: &str) -> &'a str {
    holder.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The input that a block begins with: an empty one only holds the place of what follows.
fn input(input: &Value) -> Option<String> {
    match input {
        Value::Null => None,
        Value::Object(fields) if fields.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Some(input.to_string()),
    }
}

fn finish_of(word: &str) -> Finish {
    match word {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::ContentFilter,
        other => Finish::Other(other.to_owned()),
    }
}
