//! Reads what a session asks before it starts, from the manifest's section `## 启动询问` or `## Intake`.
//!
//! Authors write this section for people, so it is read leniently: a section of prose has no fields, and that is no fault.

use super::IntakeField;
use super::fields;
use super::findings::{Findings, Place, Placed};
use super::markdown::{Body, BodyLine, Part, back_quoted};
use crate::tag::Tag;

/// What the section says.
#[derive(Default)]
pub(super) struct Intake<'a> {
    pub prompt: String,
    pub fields: Vec<IntakeField>,
    pub target: Option<Placed<'a, Tag>>,
}

/// Where the answers go when the pack does not say.
const DEFAULT_TARGET: &str = "用户.需求";

/// Reads the first such section.
pub(super) fn read<'a>(body: &Body<'a>, findings: &mut Findings<'a>) -> Intake<'a> {
    let sections = body.sections(is_intake_heading);
    let Some(section) = sections.first() else { return Intake::default() };
    let prompt = prompt(section);
    let (items, target) = items_and_target(body.file, section);
    let is_unsaid = target.is_none();
    let mut target = target.and_then(|target| fields::parsed(Tag::parse, target, findings));
    if let Some(first) = items.first()
        && is_unsaid
    {
        let message = format!("the intake does not say where its answers go, so they go to `{DEFAULT_TARGET}`");
        findings.warning(
            first.at,
            "no-target",
            message,
            format!("add a line `写入目标：` or `Target:` with the tag in back-quotes: `{DEFAULT_TARGET}`"),
        );
        target = Tag::parse(DEFAULT_TARGET).ok().map(|value| Placed { at: first.at, value });
    }
    Intake { prompt, fields: named(items), target }
}

/// A list item that asks for something.
struct Item<'a> {
    at: Place<'a>,
    id: Option<&'a str>,
    label: String,
    is_required: bool,
}

/// Which list the lines belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Required,
    Optional,
    Target,
    Other,
}

fn is_intake_heading(words: &str) -> bool {
    words.contains("启动询问") || first_word(words).eq_ignore_ascii_case("intake")
}

/// Returns the first word of a heading after its number and its marks.
pub(super) fn first_word(words: &str) -> &str {
    let words = words.trim_start_matches(|letter: char| !letter.is_alphabetic());
    words.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default()
}

fn prompt(section: &[BodyLine<'_>]) -> String {
    let fenced = section.iter().skip_while(|line| line.part != Part::Fence).skip(1);
    let lines: Vec<&str> = fenced.take_while(|line| line.part == Part::Fenced).map(|line| line.text).collect();
    lines.join("\n").trim().to_owned()
}

fn items_and_target<'a>(file: &'a str, section: &[BodyLine<'a>]) -> (Vec<Item<'a>>, Option<Placed<'a, String>>) {
    let mut list = List::Other;
    let mut list_indent = None;
    let mut items = Vec::new();
    let mut target = None;
    for line in section {
        let Some(text) = line.prose() else { continue };
        if let Some(label) = label(line) {
            (list, list_indent) = (label, None);
        }
        if list == List::Target {
            let tag = back_quoted(text).filter(|tag| !tag.is_empty());
            target = target.or_else(|| tag.map(|tag| Placed { at: line.place_of(file, tag), value: tag.to_owned() }));
            continue;
        }
        let Some((indent, words)) = line.list_item().filter(|_| label(line).is_none()) else { continue };
        let is_explanation = indent > *list_indent.get_or_insert(indent);
        if list != List::Other && !is_explanation {
            items.extend(item(line.place_of(file, words), words, list == List::Required));
        }
    }
    (items, target)
}

/// Reads a line that says what the lines below it are: a heading, a bold line, or a line that ends in a colon.
fn label(line: &BodyLine<'_>) -> Option<List> {
    let text = line.prose()?.trim();
    let (is_item, words) = line.list_item().map_or((false, text), |(_, words)| (true, words));
    let is_heading = line.heading().is_some();
    let is_bold = words.starts_with("**") || words.starts_with("__");
    let bare = words.trim_start_matches(['#', '*', '_', ' ']);
    let head = bare.split([':', '：']).next().unwrap_or_default().to_lowercase();
    let has_colon = bare.contains([':', '：']);
    let ends_in_colon = bare.trim_end_matches(['*', '_', ' ']).ends_with([':', '：']);
    let says = |words: &[&str]| words.iter().any(|word| head.contains(word));
    if says(&["写入目标", "写入标签"])
        || (says(&["target"]) && (is_heading || is_bold || has_colon) && head.split_whitespace().count() <= 3)
    {
        return Some(List::Target);
    }
    let stands_for_a_list = is_heading || ends_in_colon || (is_bold && !is_item);
    if !stands_for_a_list {
        return None;
    }
    if says(&["可选收集", "选填", "可选", "optional"]) {
        Some(List::Optional)
    } else if says(&["必须收集", "必填", "必须", "required"]) {
        Some(List::Required)
    } else {
        // Only a heading ends a list: "Please tell me:" may well stand between the label and its items.
        is_heading.then_some(List::Other)
    }
}

fn item<'a>(at: Place<'a>, words: &'a str, is_required: bool) -> Option<Item<'a>> {
    let (id, words) = match words.strip_prefix('`').and_then(|after| after.split_once('`')) {
        Some((id, rest)) if is_slug(id) => (Some(id), rest),
        Some(_) | None => (None, words),
    };
    let cut = ["：", ":", "—", " - ", " – "].iter().filter_map(|mark| words.find(mark)).min();
    let label = cut.and_then(|cut| words.get(..cut)).unwrap_or(words);
    let label = label.replace(['*', '`'], "");
    let label = label.trim().trim_matches('_');
    let label = if label.is_empty() { id? } else { label };
    Some(Item { at, id, label: label.to_owned(), is_required })
}

fn named(items: Vec<Item<'_>>) -> Vec<IntakeField> {
    let mut fields: Vec<IntakeField> = Vec::with_capacity(items.len());
    for (index, Item { id, label, is_required, .. }) in items.into_iter().enumerate() {
        let wanted = id.map(str::to_owned).or_else(|| slug(&label)).unwrap_or_else(|| format!("field-{}", index + 1));
        let is_taken = |id: &str| fields.iter().any(|field| field.id == id);
        let numbered = (2..).map(|number| format!("{wanted}-{number}"));
        let id = std::iter::once(wanted.clone()).chain(numbered).find(|id| !is_taken(id)).unwrap_or(wanted);
        fields.push(IntakeField { id, label, required: is_required });
    }
    fields
}

fn is_slug(id: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    !id.is_empty() && id.chars().all(is_letter)
}

/// Makes a name for the wire out of a label that is written in ASCII letters.
fn slug(label: &str) -> Option<String> {
    let is_foreign = label.chars().any(|letter| letter.is_alphanumeric() && !letter.is_ascii());
    let lower = label.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    (!is_foreign && !words.is_empty()).then(|| words.join("-"))
}
