//! What a test hears of a reply, and how a person reads it.

use std::fmt::Write;
use std::sync::Mutex;

use quire_adapters::providers::shown_reasoning;
use quire_core::message::Reply;
use quire_runtime::ports::{Delta, ModelError};

/// What passed while a reply came.
#[derive(Debug, Default)]
pub struct Heard(Mutex<Vec<Delta>>);

impl Heard {
    pub fn take(&self, delta: Delta) {
        self.0.lock().expect("no test panics while it listens").push(delta);
    }

    /// Text, reasoning and arguments, each put together.
    pub fn whole(&self) -> (String, String, String) {
        let mut whole = (String::new(), String::new(), String::new());
        for delta in self.0.lock().expect("no test panics while it listens").iter() {
            match delta {
                Delta::Text(text) => whole.0.push_str(text),
                Delta::Reasoning(text) => whole.1.push_str(text),
                Delta::Arguments { tool: _, text } => whole.2.push_str(text),
            }
        }
        whole
    }
}

/// An outcome as a person reads it, one fact a line.
pub fn shown(outcome: &Result<Reply, ModelError>) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| writeln!(out, "{name:<10}{value}").expect("writing to a string");
    match outcome {
        Ok(reply) => {
            if !reply.text.is_empty() {
                line("text", &format!("{:?}", reply.text));
            }
            let thought = shown_reasoning(&reply.reasoning);
            if !thought.is_empty() {
                line("reasoning", &format!("{thought:?}"));
            }
            if thought != *reply.reasoning {
                line("kept", &reply.reasoning);
            }
            for call in &reply.calls {
                line("call", &format!("[{}] {} {}", call.id, call.name, call.arguments));
            }
            line("finish", &format!("{:?}", reply.finish));
            let usage = reply.usage;
            if usage != Default::default() {
                line(
                    "tokens",
                    &format!("{} in, {} of them cached, {} out", usage.input_tokens, usage.cached_tokens, usage.output_tokens),
                );
            }
        }
        Err(error) => {
            let again = match (error.may_retry, error.retry_after) {
                (false, _) => String::new(),
                (true, None) => ", may retry".to_owned(),
                (true, Some(after)) => format!(", may retry after {after:?}"),
            };
            line("failure", &format!("{:?}{again}", error.failure.kind));
            line("", &error.failure.message);
        }
    }
    out
}
