//! What a deep task may read of the book: by leave of the user, and two tools.
//!
//! Granted are patterns, written down with the task. Whatever they say, a sub-agent sees facts only, and never a text that
//! the pack hides, a thought, or a draft. What other deep tasks brought is read by a grant that begins with 委托.

use serde_json::{Map, Value, json};
use unicode_segmentation::UnicodeSegmentation;

use super::Session;
use crate::blackboard::Item;
use crate::deep_task::{HostTool, ToolEffect, ToolResult};
use crate::tag::{LifeCycle, Pattern, Tag};

/// Stands as the server of the two tools; no server of the outside has such a name.
const THE_BOOK: &str = "the book";
/// Parts of tags that hold what somebody thinks and says to nobody.
const THOUGHTS: [&str; 4] = ["思考", "推理", "thought", "thoughts"];
/// Texts named by one search.
const HITS_MAX: usize = 10;
/// Grapheme clusters shown before and after a hit.
const SNIPPET_GRAPHEMES: usize = 60;
/// Grapheme clusters of one reading.
const READ_GRAPHEMES_MAX: usize = 20_000;

/// Returns the tools that read what is granted; none where nothing is.
pub(super) fn tools(grants: &[Pattern]) -> Vec<HostTool> {
    if grants.is_empty() {
        return vec![];
    }
    let granted = grants.iter().map(Pattern::as_str).collect::<Vec<_>>().join(", ");
    let tool = |name: &str, description: String, parameters: Value| HostTool {
        name: name.to_owned(),
        description: description.into(),
        parameters: parameters.to_string().into(),
        effect: ToolEffect::Reads,
        server: THE_BOOK.to_owned(),
        own_name: name.to_owned(),
    };
    vec![
        tool(
            "search_book",
            format!(
                "Finds texts of the book by words, and shows where they stand. You may read: {granted}. An empty query lists what there is."
            ),
            json!({ "type": "object", "properties": { "query": { "type": "string" } }, "required": ["query"], "additionalProperties": false }),
        ),
        tool(
            "read_item",
            format!(
                "Reads one text of the book by its tag, as `search_book` names it. Long ones come in pieces: `from` is the character to begin with. You may read: {granted}."
            ),
            json!({ "type": "object", "properties": { "tag": { "type": "string" }, "from": { "type": "integer", "minimum": 0 } }, "required": ["tag"], "additionalProperties": false }),
        ),
    ]
}

/// Says whether a tool reads the book.
pub(super) fn is_granted(tool: &HostTool) -> bool {
    tool.server == THE_BOOK
}

impl Session {
    /// Carries out one of the two tools.
    pub(super) fn read_granted(&self, grants: &[Pattern], tool: &str, arguments: &Map<String, Value>) -> ToolResult {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        match tool {
            "search_book" => self.search_book(grants, text("query")),
            "read_item" => {
                let from = arguments.get("from").and_then(Value::as_u64).and_then(|from| usize::try_from(from).ok());
                self.read_item(grants, text("tag"), from.unwrap_or_default())
            }
            other => unreachable!("`{other}` is no tool of the book"),
        }
    }

    /// Returns the newest facts that the grants give leave to read, in the order of their tags.
    fn granted_items(&self, grants: &[Pattern]) -> impl Iterator<Item = &Item> {
        let is_granted = |tag: &&Tag| grants.iter().any(|grant| grant.reads(tag)) && !self.is_never_granted(tag);
        self.board.tags().filter(is_granted).filter_map(|tag| self.board.accepted(tag))
    }

    /// Fails closed: a text under another name of its life is the same text.
    fn is_never_granted(&self, tag: &Tag) -> bool {
        let is_thought = tag.parts().any(|part| THOUGHTS.iter().any(|thought| part.eq_ignore_ascii_case(thought)));
        let is_hidden = || tag.siblings().iter().any(|name| self.packs.values().any(|pack| pack.hides(name)));
        tag.life_cycle() == Some(LifeCycle::Draft) || is_thought || is_hidden()
    }

    fn search_book(&self, grants: &[Pattern], query: &str) -> ToolResult {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let mut hits: Vec<(usize, &Item, String)> = (self.granted_items(grants))
            .filter_map(|item| {
                let (tag, content) = (item.tag.as_str().to_lowercase(), item.content.to_lowercase());
                let found: Vec<&String> =
                    words.iter().filter(|word| tag.contains(word.as_str()) || content.contains(word.as_str())).collect();
                let first =
                    found.iter().find_map(|word| snippet(&item.content, word)).unwrap_or_else(|| beginning(&item.content));
                (words.is_empty() || !found.is_empty()).then_some((found.len(), item, first))
            })
            .collect();
        hits.sort_by_key(|(found, item, _)| (std::cmp::Reverse(*found), &item.tag));
        if hits.is_empty() {
            return ToolResult::fine("nothing of what you may read holds these words");
        }
        let more = hits.len().saturating_sub(HITS_MAX);
        let mut text: String = hits
            .iter()
            .take(HITS_MAX)
            .map(|(_, item, snippet)| format!("{} ({} characters): {snippet}\n", item.tag, item.content.graphemes(true).count()))
            .collect();
        if more > 0 {
            text.push_str(&format!("… and {more} more; search for rarer words\n"));
        }
        ToolResult::fine(text)
    }

    fn read_item(&self, grants: &[Pattern], tag: &str, from: usize) -> ToolResult {
        // What may not be read looks like what is not there: a refusal would tell that it exists.
        let Some(item) = self.granted_items(grants).find(|item| item.tag.as_str() == tag.trim()) else {
            return ToolResult::error(format!("there is no text `{tag}` among those you may read; search_book lists them"));
        };
        let piece: String = item.content.graphemes(true).skip(from).take(READ_GRAPHEMES_MAX).collect();
        let end = from + piece.graphemes(true).count();
        let size = item.content.graphemes(true).count();
        let rest = if end < size { format!("\n\n(cut here; go on with from={end} of {size})") } else { String::new() };
        ToolResult::fine(piece + &rest)
    }
}

fn beginning(text: &str) -> String {
    text.graphemes(true).take(2 * SNIPPET_GRAPHEMES).collect::<String>().replace(['\r', '\n'], " ")
}

/// Returns the words around the first place where `word` (in lower case) stands.
fn snippet(text: &str, word: &str) -> Option<String> {
    let graphemes: Vec<&str> = text.graphemes(true).collect();
    let lower: Vec<String> = graphemes.iter().map(|grapheme| grapheme.to_lowercase()).collect();
    let length = word.graphemes(true).count();
    let at = (0..lower.len()).find(|at| {
        let end = (at + length).min(lower.len());
        lower[*at..end].concat().starts_with(word)
    })?;
    let start = at.saturating_sub(SNIPPET_GRAPHEMES);
    let end = (at + length + SNIPPET_GRAPHEMES).min(graphemes.len());
    let mut shown = graphemes[start..end].concat().replace(['\r', '\n'], " ");
    if start > 0 {
        shown.insert(0, '…');
    }
    if end < graphemes.len() {
        shown.push('…');
    }
    Some(shown)
}
