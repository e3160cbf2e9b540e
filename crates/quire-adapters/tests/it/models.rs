//! Models as a person brings them: profiles and their keys, what a probe finds, modes without calls, recordings.

mod modes;
mod probes;
mod profiles;
mod tapes;

use quire_core::ids::{CallId, SessionId};
use quire_core::message::{Message, ToolSpec};
use quire_runtime::ports::{Asker, ModelRequest};

static SUBMIT: ToolSpec = ToolSpec {
    name: "submit",
    description: "Hands in texts.",
    parameters: r#"{"type":"object","properties":{"outputs":{"type":"object","additionalProperties":{"type":"string"}},"summary":{"type":"string","description":"What it is."}},"required":["outputs"],"additionalProperties":false}"#,
};
static ASK: ToolSpec = ToolSpec {
    name: "ask_user",
    description: "Asks.",
    parameters: r#"{"type":"object","properties":{"questions":{"type":"array","items":{"type":"object","properties":{"prompt":{"type":"string"}}}}},"required":["questions"],"additionalProperties":false}"#,
};

fn request(words: &str) -> ModelRequest {
    ModelRequest {
        session: SessionId::new("s"),
        call: CallId(1),
        asker: Asker::Agent,
        answered_before: 0,
        messages: vec![Message::System { text: "规则".into() }, Message::user(words)],
        tools: vec![(&SUBMIT).into(), (&ASK).into()],
        output_tags: vec!["章.草稿".to_owned()],
    }
}
