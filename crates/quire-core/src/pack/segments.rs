//! Reads the blocks of a worker's prompt: `contextSegments`, and the other sets of them under `variants`.

use super::fields::{self, Fields};
use super::findings::{Findings, Placed};
use super::reference;
use super::yaml::{Node, Value};
use super::{Keep, Policy, Segment, Tier};
use crate::tag::Pattern;

/// A segment, and where its tags stand.
pub(super) struct ReadSegment<'a> {
    pub segment: Segment,
    pub id: Placed<'a, String>,
    pub tags: Vec<Placed<'a, Pattern>>,
}

/// A named set of segments.
pub(super) struct Variant<'a> {
    pub name: Placed<'a, String>,
    pub segments: Vec<ReadSegment<'a>>,
}

/// Reads a list of segments; each id once.
pub(super) fn read<'a>(name: &str, node: Node<'a>, findings: &mut Findings<'a>) -> Vec<ReadSegment<'a>> {
    let mut segments: Vec<ReadSegment<'a>> = Vec::new();
    for node in fields::list(name, node, findings) {
        let Some(segment) = segment(node, findings) else { continue };
        if !segment.id.value.is_empty() && segments.iter().any(|known| known.id.value == segment.id.value) {
            let message = format!("two segments have the id `{}`", segment.segment.id);
            findings.error(segment.id.at, "duplicate-id", message, "give each segment of a list its own id");
        }
        segments.push(segment);
    }
    segments
}

/// Reads the variants: each a list of segments, or a map with `contextSegments`.
pub(super) fn variants<'a>(entries: Vec<(Placed<'a, String>, Node<'a>)>, findings: &mut Findings<'a>) -> Vec<Variant<'a>> {
    let mut variants = Vec::with_capacity(entries.len());
    for (name, node) in entries {
        let list = match node.value {
            Value::Map(_) => Fields::of(&reference::VARIANT, node, findings).and_then(|mut fields| {
                let list = fields.take("contextSegments");
                if list.is_none() {
                    fields.missing("contextSegments", "list the variant's segments below it", findings);
                }
                fields.finish(findings);
                list
            }),
            Value::Null | Value::Bool(_) | Value::Number(..) | Value::Text(_) | Value::List(_) => Some(node),
        };
        let segments = list.map_or_else(Vec::new, |list| read("contextSegments", list, findings));
        variants.push(Variant { name, segments });
    }
    variants
}

fn segment<'a>(node: Node<'a>, findings: &mut Findings<'a>) -> Option<ReadSegment<'a>> {
    let mut fields = Fields::of(&reference::SEGMENT, node, findings)?;
    let id = fields.required_text("id", "add `id: …`, a short name of its own", findings);
    let tier = fields.word("tier", &[("static", Tier::Static), ("dynamic", Tier::Dynamic)], findings);
    let tier = tier.map_or(Tier::Dynamic, |tier| tier.value);
    let is_bare = !fields.has("tags");
    let tags = fields.patterns("tags", findings);
    if is_bare {
        fields.missing("tags", "add `tags: [pattern]`: what it shows, out of the skill's inputTags", findings);
    }
    // A prompt makes headings itself; packs of the first format wrote the marks into the label.
    let label = fields.text("label", findings).map(|label| label.value.trim_start_matches('#').trim_start().to_owned());
    let label = label.filter(|label| !label.is_empty()).unwrap_or_else(|| id.value.clone());
    let policy = fields.take("policy").and_then(|node| policy(&node, findings)).unwrap_or(Policy::Latest);
    let keep = fields.word("keep", &[("always", Keep::Always), ("optional", Keep::Optional)], findings);
    let keep = keep.map_or(default_keep(tier), |keep| keep.value);
    fields.finish(findings);
    let patterns = tags.iter().map(|tag| tag.value.clone()).collect();
    let segment = Segment { id: id.value.clone(), tier, tags: patterns, label, policy, keep };
    Some(ReadSegment { segment, id, tags })
}

fn default_keep(tier: Tier) -> Keep {
    match tier {
        Tier::Static => Keep::Always,
        Tier::Dynamic => Keep::Optional,
    }
}

fn policy<'a>(node: &Node<'a>, findings: &mut Findings<'a>) -> Option<Policy> {
    let written = node.as_written().unwrap_or_default().trim();
    let number = |prefix: &str| written.strip_prefix(prefix).and_then(|digits| digits.parse::<u32>().ok()).filter(|n| *n > 0);
    let policy = match written {
        "latest" => Some(Policy::Latest),
        "concat" => Some(Policy::Concat),
        _ => number("tail_lines_")
            .map(Policy::TailLines)
            .or_else(|| number("tail_tokens_").map(Policy::TailTokens))
            .or_else(|| number("last_turns_").map(Policy::LastTurns)),
    };
    if policy.is_none() {
        let value = if written.is_empty() { node.kind().to_owned() } else { format!("`{written}`") };
        let help = "write `latest`, `concat`, `tail_lines_40`, `tail_tokens_2000` or `last_turns_3`";
        findings.error(node.at, "unknown-value", format!("`policy` cannot be {value}"), help);
    }
    policy
}
