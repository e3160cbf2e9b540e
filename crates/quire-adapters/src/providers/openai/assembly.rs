//! Puts a reply together from its pieces, whatever dialect they come in.
//!
//! Nothing is judged here: arguments stay the string that came, ids may be empty or doubled, names may be unknown. The
//! core reads the reply; this only makes sure that each piece lands where it belongs.

use quire_core::message::{Finish, Reply, ToolCall, Usage};
use quire_runtime::ports::Delta;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::providers::stream::Assemble;
use crate::providers::thinking::{Split, THINK_END, Thinking};

/// A reply under way.
pub(super) struct Assembly<'a> {
    deltas: &'a (dyn Fn(Delta) + Send + Sync),
    text: String,
    reasoning: String,
    thinking: Thinking,
    slots: Vec<Slot>,
    refusal: String,
    finish: Option<Finish>,
    usage: Usage,
    has_begun: bool,
    is_whole_message: bool,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(deltas: &'a (dyn Fn(Delta) + Send + Sync)) -> Self {
        Self {
            deltas,
            text: String::new(),
            reasoning: String::new(),
            thinking: Thinking::default(),
            slots: Vec::new(),
            refusal: String::new(),
            finish: None,
            usage: Usage::default(),
            has_begun: false,
            is_whole_message: false,
        }
    }
}

impl Assemble for Assembly<'_> {
    fn take(&mut self, chunk: &Value) {
        let choice = chunk.pointer("/choices/0");
        for place in [Some(chunk), choice, chunk.get("x_groq")].into_iter().flatten() {
            if let Some(usage) = place.get("usage").and_then(usage) {
                self.usage = usage;
            }
        }
        let Some(choice) = choice else { return };
        self.has_begun = true;
        let finish = choice.get("finish_reason").and_then(Value::as_str).filter(|word| !word.is_empty());
        let delta = choice.get("delta").filter(|delta| delta.as_object().is_some_and(|fields| !fields.is_empty()));
        match (delta, choice.get("message").filter(|message| message.is_object())) {
            (Some(delta), _) => self.take_piece(delta),
            (None, Some(message)) => {
                self.is_whole_message = true;
                // Some servers repeat at the end what they have streamed.
                let is_repeated = finish.is_some() && self.has_said_something() && self.repeats(message);
                if !is_repeated {
                    self.take_piece(message);
                }
            }
            (None, None) => {}
        }
        if let Some(word) = finish {
            self.finish = Some(finish_of(word));
        }
    }

    fn flush(&mut self) {
        let split = std::mem::take(&mut self.thinking).end();
        self.take_split(split);
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The mark `[DONE]` is read with the events.
    fn is_ended(&self) -> bool {
        false
    }

    fn is_whole_message(&self) -> bool {
        self.is_whole_message
    }

    fn has_said_something(&self) -> bool {
        !self.text.is_empty() || !self.reasoning.is_empty() || !self.slots.is_empty()
    }

    fn refusal(&self) -> Option<String> {
        Some(self.refusal.trim().to_owned()).filter(|refusal| !refusal.is_empty())
    }

    fn into_reply(self) -> Reply {
        Reply {
            text: self.text.into(),
            reasoning: self.reasoning.into(),
            calls: in_order(self.slots),
            finish: self.finish.unwrap_or_else(|| Finish::Other("missing".to_owned())),
            usage: self.usage,
        }
    }
}

impl Assembly<'_> {
    fn take_piece(&mut self, piece: &Value) {
        let reasoning = ["reasoning_content", "reasoning", "thinking"].into_iter().find_map(|name| text_in(piece, name));
        if let Some(reasoning) = reasoning {
            self.say_reasoning(reasoning);
        }
        match piece.get("content") {
            Some(Value::String(text)) => self.take_text(text),
            Some(Value::Array(parts)) => self.take_parts(parts),
            _ => {}
        }
        if let Some(refusal) = text_in(piece, "refusal") {
            self.refusal.push_str(refusal);
        }
        match piece.get("tool_calls") {
            Some(Value::Array(calls)) => calls.iter().for_each(|call| self.take_call(&CallPiece::read(call))),
            Some(call @ Value::Object(_)) => self.take_call(&CallPiece::read(call)),
            _ => {}
        }
        if let Some(function) = piece.get("function_call").filter(|function| function.is_object()) {
            self.take_call(&CallPiece::read_function(function));
        }
    }

    fn take_parts(&mut self, parts: &[Value]) {
        for part in parts {
            if let Some(text) = text_in(part, "text") {
                self.take_text(text);
            }
            match part.get("thinking") {
                Some(Value::String(text)) => self.say_reasoning(text),
                Some(Value::Array(thoughts)) => {
                    thoughts.iter().filter_map(|thought| text_in(thought, "text")).for_each(|text| self.say_reasoning(text));
                }
                _ => {}
            }
        }
    }

    fn take_text(&mut self, text: &str) {
        let split = self.thinking.take(text);
        self.take_split(split);
    }

    fn take_split(&mut self, split: Split) {
        self.say_reasoning(&split.reasoning);
        if !split.text.is_empty() {
            self.text.push_str(&split.text);
            (self.deltas)(Delta::Text(split.text));
        }
    }

    fn say_reasoning(&mut self, text: &str) {
        if !text.is_empty() {
            self.reasoning.push_str(text);
            (self.deltas)(Delta::Reasoning(text.to_owned()));
        }
    }

    fn take_call(&mut self, piece: &CallPiece) {
        if piece.is_empty() {
            return;
        }
        let at = slot_of(&self.slots, piece).unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        let slot = &mut self.slots[at];
        slot.add(piece);
        if !piece.arguments.is_empty() {
            (self.deltas)(Delta::Arguments { tool: slot.name.clone(), text: piece.arguments.clone() });
        }
    }

    fn repeats(&self, message: &Value) -> bool {
        let content = message.get("content").and_then(Value::as_str).unwrap_or_default();
        let is_repeated_with_reasoning = content.contains(THINK_END) && content.ends_with(&self.text);
        content == self.text || is_repeated_with_reasoning
    }
}

fn text_in<'a>(piece: &'a Value, name: &str) -> Option<&'a str> {
    piece.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn finish_of(word: &str) -> Finish {
    match word {
        "stop" => Finish::Stop,
        "tool_calls" | "function_call" => Finish::ToolCalls,
        "length" => Finish::Length,
        "content_filter" => Finish::ContentFilter,
        other => Finish::Other(other.to_owned()),
    }
}

/// Reads the tokens in any dialect; `None` where there are none.
fn usage(usage: &Value) -> Option<Usage> {
    let number = |paths: &[&str]| paths.iter().find_map(|path| usage.pointer(path).and_then(Value::as_u64)).unwrap_or(0);
    let input_tokens = number(&["/prompt_tokens", "/input_tokens"]);
    let said_tokens = number(&["/completion_tokens", "/output_tokens"]);
    let reasoning_tokens = number(&["/completion_tokens_details/reasoning_tokens", "/reasoning_tokens"]);
    // Most count reasoning among the reply's tokens; where only the total does, it belongs to the reply too.
    let is_apart = reasoning_tokens > 0 && number(&["/total_tokens"]) == input_tokens + said_tokens + reasoning_tokens;
    let read = Usage {
        input_tokens,
        cached_tokens: number(&["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens", "/cached_tokens"]),
        output_tokens: if is_apart { said_tokens + reasoning_tokens } else { said_tokens },
        money_micros: 0,
    };
    (read != Usage::default()).then_some(read)
}

/// A piece of a call as it came.
#[derive(Debug, Default)]
struct CallPiece {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl CallPiece {
    fn read(call: &Value) -> Self {
        let index = call.get("index").and_then(|index| index.as_u64().or_else(|| index.as_str()?.parse().ok()));
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { index, id, ..Self::read_function(call.get("function").unwrap_or(call)) }
    }

    fn read_function(function: &Value) -> Self {
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(value) => value.to_string(),
        };
        Self { name: text_in(function, "name").unwrap_or_default().to_owned(), arguments, ..Self::default() }
    }

    fn is_empty(&self) -> bool {
        self.id.is_empty() && self.name.is_empty() && self.arguments.is_empty()
    }
}

/// A call under way.
#[derive(Debug, Default)]
struct Slot {
    /// The indexes under which its pieces came; more than one where a server loses count.
    indexes: Vec<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Slot {
    fn add(&mut self, piece: &CallPiece) {
        self.indexes.extend(piece.index.filter(|index| !self.indexes.contains(index)));
        if self.id.is_empty() {
            self.id.push_str(&piece.id);
        }
        if self.name != piece.name {
            self.name.push_str(&piece.name);
        }
        self.arguments.push_str(&piece.arguments);
    }

    /// Whether nothing can follow the arguments.
    fn is_whole(&self) -> bool {
        self.arguments.trim_end().ends_with('}') && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }

    /// Whether a piece that could belong here by its index or id begins another call all the same.
    fn is_over_with(&self, piece: &CallPiece) -> bool {
        if piece.name.is_empty() || self.name.is_empty() {
            return false;
        }
        let is_at_known_index = piece.index.is_some_and(|index| self.indexes.contains(&index));
        // A name in fragments: only right at the beginning, and where the index vouches for it.
        let is_fragment = self.arguments.is_empty() && is_at_known_index;
        let is_renamed = piece.name != self.name && !is_fragment;
        let is_begun_anew = self.is_whole() && (!piece.arguments.is_empty() || (piece.index.is_some() && !is_at_known_index));
        is_renamed || is_begun_anew
    }
}

/// Finds the call that a piece belongs to: by id, then by index, then the last one; `None` for a new call.
///
/// Index and id are each missing, late, reused or wrong at some server, so neither is trusted alone.
fn slot_of(slots: &[Slot], piece: &CallPiece) -> Option<usize> {
    let by_id = || slots.iter().rposition(|slot| !piece.id.is_empty() && slot.id == piece.id && !slot.is_over_with(piece));
    let by_index = || {
        let index = piece.index?;
        let is_same_id = |slot: &Slot| piece.id.is_empty() || slot.id.is_empty() || slot.id == piece.id;
        slots.iter().rposition(|slot| slot.indexes.contains(&index) && is_same_id(slot) && !slot.is_over_with(piece))
    };
    let by_place = || {
        let last = slots.len().checked_sub(1)?;
        let slot = &slots[last];
        let belongs = match (piece.index, piece.id.is_empty(), piece.name.is_empty()) {
            (None, true, true) => true,
            (None, true, false) => !slot.is_over_with(piece),
            // An id that comes late.
            (None, false, true) => slot.id.is_empty(),
            (None, false, false) => false,
            // Neither id nor name: more of the last call under a wrong index, unless that one is whole.
            (Some(_), true, true) => !slot.is_whole(),
            (Some(_), _, _) => false,
        };
        belongs.then_some(last)
    };
    by_id().or_else(by_index).or_else(by_place)
}

/// Puts the calls in the order of their indexes, or leaves them as they came where indexes are missing or doubled.
fn in_order(mut slots: Vec<Slot>) -> Vec<ToolCall> {
    let mut firsts: Vec<u64> = slots.iter().filter_map(|slot| slot.indexes.first().copied()).collect();
    firsts.sort_unstable();
    firsts.dedup();
    if firsts.len() == slots.len() {
        slots.sort_by_key(|slot| slot.indexes.first().copied());
    }
    slots.into_iter().map(|slot| ToolCall { id: slot.id, name: slot.name, arguments: slot.arguments.into() }).collect()
}
