//! What must hold of the texts a skill hands in, and what a review says of another's.
//!
//! Says what does not hold, in sentences that a model can act on and always in the same order. What follows from it is the
//! session's.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use crate::artifact::Verdict;
use crate::pack::{Check, Rule};
use crate::reply::{Found, find_json};
use crate::tag::Tag;

/// So many faults of one text against its schema are named.
const SCHEMA_FAULTS_MAX: usize = 5;

/// Returns a sentence for each check that does not hold of what was handed in, in the order of checks and tags.
///
/// A check of one tag says nothing where no such tag was handed in.
pub fn failed(checks: &[Check], outputs: &BTreeMap<Tag, Arc<str>>) -> Vec<String> {
    checks.iter().flat_map(|check| failed_check(check, outputs)).collect()
}

fn failed_check(check: &Check, outputs: &BTreeMap<Tag, Arc<str>>) -> Vec<String> {
    let is_meant = |tag: &Tag| check.tag.as_ref().is_none_or(|pattern| pattern.matches(tag));
    let meant: Vec<(&Tag, &str)> = outputs.iter().filter(|(tag, _)| is_meant(tag)).map(|(tag, text)| (tag, &**text)).collect();
    match &check.rule {
        Rule::NonEmpty => {
            each(&meant, |tag, text| text.trim().is_empty().then(|| format!("`{tag}` is empty (nonEmpty): hand in a text")))
        }
        Rule::MaxChars(chars_max) => each(&meant, |tag, text| {
            let chars = text.graphemes(true).count() as u64;
            (chars > *chars_max).then(|| {
                format!(
                    "`{tag}` has {chars} characters, and {chars_max} are allowed (maxChars): shorten it by {}",
                    chars - chars_max
                )
            })
        }),
        Rule::Contains(words) => each(&meant, |tag, text| {
            (!text.contains(words.as_str())).then(|| format!("`{tag}` does not hold the words `{words}` (contains): put them in"))
        }),
        Rule::JsonSchema(schema) => meant.iter().flat_map(|(tag, text)| schema_faults(schema, tag, text)).collect(),
        // One verdict speaks for all texts of a review.
        Rule::VerdictLine if meant.is_empty() || verdict(meant.iter().map(|(_, text)| *text)).is_some() => vec![],
        Rule::VerdictLine => {
            let tags: Vec<String> = meant.iter().map(|(tag, _)| format!("`{tag}`")).collect();
            vec![format!(
                "{} gives no verdict (verdictLine): begin with a line `verdict: pass` or `verdict: fail`, or give JSON with the field `verdict`",
                tags.join(", ")
            )]
        }
    }
}

fn each(texts: &[(&Tag, &str)], fault: impl Fn(&Tag, &str) -> Option<String>) -> Vec<String> {
    texts.iter().filter_map(|(tag, text)| fault(tag, text)).collect()
}

fn schema_faults(schema: &Value, tag: &Tag, text: &str) -> Vec<String> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return vec![format!("`{tag}` is not JSON (jsonSchema): {error}; hand in the JSON alone")],
    };
    let validator = match jsonschema::validator_for(schema) {
        Ok(validator) => validator,
        Err(error) => {
            return vec![format!("the schema of the check of `{tag}` cannot be used (jsonSchema): {error}; mend it in the pack")];
        }
    };
    let mut faults: Vec<(String, String)> =
        validator.iter_errors(&value).map(|error| (error.instance_path().to_string(), error.to_string())).collect();
    faults.sort();
    let more = faults.len().saturating_sub(SCHEMA_FAULTS_MAX);
    let sentence = |(path, message): &(String, String)| match path.as_str() {
        "" => format!("`{tag}` does not fit its schema (jsonSchema): {message}"),
        path => format!("`{tag}` does not fit its schema at `{path}` (jsonSchema): {message}"),
    };
    let mut sentences: Vec<String> = faults.iter().take(SCHEMA_FAULTS_MAX).map(sentence).collect();
    if more > 0 {
        sentences.push(format!("`{tag}` does not fit its schema in {more} more places (jsonSchema)"));
    }
    sentences
}

/// Reads the verdict of a review: the first line `verdict: pass` or `verdict: fail` of a text, or the field `verdict` of its
/// JSON. Where texts differ, it is a fail.
pub fn verdict<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<Verdict> {
    let verdicts: Vec<Verdict> = texts.into_iter().filter_map(|text| line_verdict(text).or_else(|| json_verdict(text))).collect();
    let any_fail = verdicts.contains(&Verdict::Fail);
    if any_fail { Some(Verdict::Fail) } else { verdicts.first().copied() }
}

fn line_verdict(text: &str) -> Option<Verdict> {
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    let plain: String = first.chars().filter(|character| !matches!(character, '*' | '_' | '`' | '#' | '>')).collect();
    let (key, word) = plain.split_once([':', '：'])?;
    let is_key = matches!(key.trim().to_lowercase().as_str(), "verdict" | "结论" | "裁决");
    is_key.then(|| verdict_word(word)).flatten()
}

fn json_verdict(text: &str) -> Option<Verdict> {
    let Found { value, repaired: false, cut: false } = find_json(text)? else { return None };
    verdict_word(value.get("verdict")?.as_str()?)
}

fn verdict_word(word: &str) -> Option<Verdict> {
    match word.trim().trim_end_matches(['.', '。', '!', '！']).trim_end().to_lowercase().as_str() {
        "pass" | "通过" => Some(Verdict::Pass),
        "fail" | "不通过" => Some(Verdict::Fail),
        _ => None,
    }
}
