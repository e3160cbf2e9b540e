//! Puts a reply together from the parts of its first candidate, streamed or whole: the wire has one shape for both.

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
    text: String,
    reasoning: String,
    marks: Thinking,
    calls: Vec<Call>,
    /// A signature in front of the call it belongs to.
    signature_ahead: Option<String>,
    blocked: String,
    finish: Option<Finish>,
    usage: Usage,
    has_begun: bool,
}

struct Call {
    call: ToolCall,
    signature: Option<String>,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(model: &'a str, deltas: &'a (dyn Fn(Delta) + Send + Sync)) -> Self {
        Self {
            model,
            deltas,
            text: String::new(),
            reasoning: String::new(),
            marks: Thinking::default(),
            calls: Vec::new(),
            signature_ahead: None,
            blocked: String::new(),
            finish: None,
            usage: Usage::default(),
            has_begun: false,
        }
    }

    fn take_part(&mut self, part: &Value) {
        let signature = ["thoughtSignature", "thought_signature"].into_iter().find_map(|name| text_in(part, name));
        let call = ["functionCall", "function_call"].into_iter().find_map(|name| part.get(name)).filter(|call| call.is_object());
        if let Some(call) = call {
            let signature = signature.map(str::to_owned).or_else(|| self.signature_ahead.take());
            self.take_call(call, signature);
            return;
        }
        if let Some(signature) = signature {
            self.signature_ahead = Some(signature.to_owned());
        }
        let Some(text) = text_in(part, "text") else { return };
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            self.say_reasoning(text);
        } else {
            let split = self.marks.take(text);
            self.say(split);
        }
    }

    fn take_call(&mut self, call: &Value, signature: Option<String>) {
        let text = |name| text_in(call, name).unwrap_or_default().to_owned();
        let arguments = match call.get("args") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        let call = ToolCall { id: text("id"), name: text("name"), arguments: arguments.as_str().into() };
        // Some streams send a call once more with what has come since.
        let is_repeated = |other: &Call| !call.id.is_empty() && other.call == call;
        if self.calls.iter().any(is_repeated) {
            return;
        }
        if !arguments.is_empty() {
            (self.deltas)(Delta::Arguments { tool: call.name.clone(), text: arguments });
        }
        self.calls.push(Call { call, signature });
    }

    fn say(&mut self, split: Split) {
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
}

impl Assemble for Assembly<'_> {
    fn take(&mut self, document: &Value) {
        // One kind of server wraps each document.
        let document = document.get("response").filter(|inner| inner.get("candidates").is_some()).unwrap_or(document);
        if let Some(usage) = document.get("usageMetadata").and_then(usage) {
            self.usage = usage;
        }
        if let Some(reason) = document.pointer("/promptFeedback/blockReason").and_then(Value::as_str) {
            self.has_begun = true;
            self.blocked = match document.pointer("/promptFeedback/blockReasonMessage").and_then(Value::as_str) {
                Some(message) => format!("{reason}: {message}"),
                None => format!("{reason}."),
            };
        }
        let Some(candidate) = document.pointer("/candidates/0") else { return };
        self.has_begun = true;
        for part in candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
            self.take_part(part);
        }
        if let Some(word) = text_in(candidate, "finishReason") {
            self.finish = finish_of(word);
        }
    }

    fn flush(&mut self) {
        let split = std::mem::take(&mut self.marks).end();
        self.say(split);
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The wire has no mark of the end.
    fn is_ended(&self) -> bool {
        false
    }

    fn is_whole_message(&self) -> bool {
        self.has_begun
    }

    fn has_said_something(&self) -> bool {
        !self.text.is_empty() || !self.reasoning.is_empty() || !self.calls.is_empty()
    }

    fn refusal(&self) -> Option<String> {
        (!self.blocked.is_empty()).then(|| self.blocked.clone())
    }

    fn into_reply(self) -> Reply {
        // An id is the provider's own only where it sent one; both go back with the call.
        let is_kept = |call: &Call| call.signature.is_some() || !call.call.id.is_empty();
        let parts = match self.calls.iter().any(|call| call.signature.is_some()) {
            true => self.calls.iter().filter(|call| is_kept(call)).map(kept).collect(),
            false => vec![],
        };
        let was_cut = self.finish == Some(Finish::Length);
        let finish = match self.finish {
            Some(Finish::Stop) if !self.calls.is_empty() => Finish::ToolCalls,
            Some(finish) => finish,
            None => Finish::Other("missing".to_owned()),
        };
        Reply {
            text: self.text.into(),
            reasoning: reasoning::stored(WIRE, self.model, self.reasoning, parts),
            calls: self.calls.into_iter().map(|call| without_made_up_arguments(call.call, was_cut)).collect(),
            finish,
            usage: self.usage,
        }
    }
}

/// A provider may write `{}` for arguments that a limit of length cut off; such a call must not look whole.
fn without_made_up_arguments(call: ToolCall, was_cut: bool) -> ToolCall {
    if was_cut && &*call.arguments == "{}" { ToolCall { arguments: "".into(), ..call } } else { call }
}

fn kept(call: &Call) -> Value {
    let mut kept = json!({"id": call.call.id, "name": call.call.name});
    if let Some(signature) = &call.signature {
        kept["signature"] = signature.clone().into();
    }
    kept
}

fn text_in<'a>(holder: &'a Value, name: &str) -> Option<&'a str> {
    holder.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Reads the tokens; `None` where there are none. Cached ones are among the prompt's, thoughts are not among the reply's.
fn usage(usage: &Value) -> Option<Usage> {
    let number = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    let read = Usage {
        input_tokens: number("promptTokenCount") + number("toolUsePromptTokenCount"),
        cached_tokens: number("cachedContentTokenCount"),
        output_tokens: number("candidatesTokenCount") + number("thoughtsTokenCount"),
        money_micros: 0,
    };
    (read != Usage::default()).then_some(read)
}

/// What a reason means; none for the one that says that there is none yet.
fn finish_of(word: &str) -> Option<Finish> {
    Some(match word {
        "FINISH_REASON_UNSPECIFIED" => return None,
        "STOP" => Finish::Stop,
        "FUNCTION_CALL" => Finish::ToolCalls,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
            Finish::ContentFilter
        }
        other => Finish::Other(other.to_owned()),
    })
}
