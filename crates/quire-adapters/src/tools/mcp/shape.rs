//! From what a server says to what a model is shown: tools, their names, results as one text.

use std::collections::BTreeMap;

use quire_core::deep_task::{HostTool, ToolEffect, ToolResult};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Tool};
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use super::Offered;

/// Grapheme clusters of a result.
const RESULT_GRAPHEMES_MAX: usize = 40_000;
/// Grapheme clusters of a tool's description.
const DESCRIPTION_GRAPHEMES_MAX: usize = 4_000;
/// Grapheme clusters of a server's words in a message.
const WORDS_GRAPHEMES_MAX: usize = 600;
/// Characters that models take in a name.
const NAME_CHARS_MAX: usize = 64;

/// Names that mean something to a session: a host tool of that name gets its server's in front, so that nobody, reader or
/// model, takes one for the other.
const RESERVED: [&str; 14] = [
    "read_blackboard",
    "list_workers",
    "list_artifacts",
    "delegate_task",
    "cancel_delegate_task",
    "list_delegated_tasks",
    "run_worker",
    "ask_user",
    "review_blackboard",
    "declare_instance_ready",
    "finish",
    "submit",
    "search_book",
    "read_item",
];

/// Describes a tool as its server does. Who says nothing of what it does may do anything.
pub(super) fn offered(server: &str, tool: &Tool) -> Offered {
    let hints = tool.annotations.as_ref();
    let is_read_only = hints.and_then(|hints| hints.read_only_hint) == Some(true);
    let is_idempotent = hints.and_then(|hints| hints.idempotent_hint) == Some(true);
    let effect = match (is_read_only, is_idempotent) {
        (true, _) => ToolEffect::Reads,
        (false, true) => ToolEffect::Idempotent,
        (false, false) => ToolEffect::Acts,
    };
    let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let tool = HostTool {
        name: tool.name.to_string(),
        description: shortened(description, DESCRIPTION_GRAPHEMES_MAX).into(),
        parameters: Value::Object(tool.input_schema.as_ref().clone()).to_string().into(),
        effect,
        server: server.to_owned(),
        own_name: tool.name.to_string(),
    };
    Offered { tool, is_read_only }
}

/// Gives each tool a name that models take and no tool of another server has. Two of one server with one name stay so:
/// which of them a call would reach, nobody knows.
pub(super) fn name_apart(tools: &mut [HostTool]) {
    let mut servers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for tool in tools.iter() {
        let having = servers.entry(plain(&tool.own_name)).or_default();
        if !having.contains(&tool.server) {
            having.push(tool.server.clone());
        }
    }
    for tool in tools {
        let name = plain(&tool.own_name);
        let is_taken = servers.get(&name).is_some_and(|having| having.len() > 1) || RESERVED.contains(&name.as_str());
        tool.name = if is_taken { plain(&format!("{}_{name}", tool.server)) } else { name };
    }
}

fn plain(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).take(NAME_CHARS_MAX).collect()
}

/// Draws the parts of a result together to one text. What is no text is named and left out.
pub(super) fn result(result: &CallToolResult) -> ToolResult {
    let mut parts: Vec<String> = result.content.iter().map(part).collect();
    if parts.is_empty()
        && let Some(structured) = &result.structured_content
    {
        parts.push(structured.to_string());
    }
    let text = parts.join("\n\n");
    let size = text.graphemes(true).count();
    let text = if size > RESULT_GRAPHEMES_MAX {
        let shown: String = text.graphemes(true).take(RESULT_GRAPHEMES_MAX).collect();
        format!("{shown}\n\n(cut here: the result has {size} characters, the first {RESULT_GRAPHEMES_MAX} are shown)")
    } else {
        text
    };
    ToolResult { text: text.into(), is_error: result.is_error == Some(true) }
}

fn part(part: &ContentBlock) -> String {
    let left_out = |what: &str, kind: &str, size: usize| {
        format!("({what} ({kind}, {} kB) is left out: only text can be read here)", size.div_ceil(1024))
    };
    match part {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => left_out("an image", &image.mime_type, image.data.len() * 3 / 4),
        ContentBlock::Audio(audio) => left_out("a sound", &audio.mime_type, audio.data.len() * 3 / 4),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}:\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                left_out(&format!("the file {uri}"), mime_type.as_deref().unwrap_or("unknown"), blob.len() * 3 / 4)
            }
            _ => "(something of an unknown kind is left out)".to_owned(),
        },
        ContentBlock::ResourceLink(link) => {
            format!("{}: {}", link.uri, link.description.as_deref().unwrap_or(&link.name))
        }
        _ => "(something of an unknown kind is left out)".to_owned(),
    }
}

/// Makes a server's words fit for a message: without what would steer a terminal, and short.
pub(super) fn clean(words: &str) -> String {
    let printable: String = words.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    shortened(printable.trim(), WORDS_GRAPHEMES_MAX)
}

fn shortened(text: &str, graphemes_max: usize) -> String {
    let mut short: String = text.graphemes(true).take(graphemes_max).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
