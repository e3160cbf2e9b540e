//! What no single field can say: whether segments keep to their skill's inputs, and whether the skills fit together.

use super::findings::{Findings, Place, Placed};
use super::manifest::Manifest;
use super::segments::{ReadSegment, Variant};
use super::skill::ReadSkill;
use super::{Acceptance, Segment, Tier};
use crate::context::isolation::hidden_whatever_runs;
use crate::tag::{Pattern, Tag};

/// Tags that come from outside of the skills: from the user, from the runtime, from deep tasks.
const GIVEN: [&str; 4] = ["用户.*", "委托.*", "设计.跳过.*", "设定.词条.当前"];

/// Checks one skill against itself.
pub(super) fn skill<'a>(skill: &ReadSkill<'a>, findings: &mut Findings<'a>) {
    segments(skill, &skill.segments, findings);
    for Variant { name, segments: variant } in &skill.variants {
        segments(skill, variant, findings);
        if is_same_prompt(skill, variant) {
            let message = format!("the variant `{}` shows the same as the skill itself", name.value);
            findings.error(
                name.at,
                "variant-same",
                message,
                "change a segment's tags, label, policy or place, or drop the variant",
            );
        }
    }
    for input in &skill.inputs {
        if input.value.is_all() && !skill.reads_all {
            let message = format!("`{}` reads every tag", skill.id);
            findings.warning(input.at, "reads-all", message, "name what it needs, or add `readsAll: true` where all is meant");
        }
        if skill.segments.is_empty()
            && let Some(why) = always_hidden(skill, &input.value)
        {
            let message = format!("`{}` can never be read here: {why}", input.value);
            findings.warning(input.at, "input-isolated", message, "drop it, or change the isolation");
        }
    }
    if skill.acceptance == Some(Acceptance::ProgrammaticReview) && skill.checks.is_empty() {
        let message = format!("`{}` is accepted by its checks, and has none, so everything passes", skill.id);
        findings.warning(
            Place::top(skill.file),
            "no-checks",
            message,
            "add `checks: [nonEmpty]` or stricter ones to its front matter",
        );
    }
    for (at, check) in &skill.checks {
        let is_idle = check.tag.as_ref().is_some_and(|tag| !skill.outputs.iter().any(|output| output.value.overlaps(tag)));
        if let (true, Some(tag)) = (is_idle, &check.tag) {
            let message = format!("a check looks at `{tag}`, which `{}` never writes", skill.id);
            findings.error(*at, "idle-check", message, "name one of its outputTags, or drop `tag` to check them all");
        }
    }
}

/// Checks whether somebody writes what the skills read.
pub(super) fn tags_are_written<'a>(
    manifest: &Manifest<'a>,
    skills: &[ReadSkill<'a>],
    run_skill_list: &Tag,
    findings: &mut Findings<'a>,
) {
    let outputs = skills.iter().flat_map(|skill| &skill.outputs).map(|output| &output.value);
    let mut written: Vec<Pattern> = outputs.clone().cloned().collect();
    written.extend(outputs.filter_map(Pattern::promotion));
    written.extend(GIVEN.iter().filter_map(|given| Pattern::parse(given).ok()));
    written.extend(manifest.intake.target.iter().map(|target| Pattern::from(&target.value)));
    written.extend(manifest.tables.iter().chain([run_skill_list]).map(Pattern::from));
    written.extend(manifest.chance.iter().map(|chance| Pattern::from(&chance.value.tag)));
    let is_written = |pattern: &Pattern| written.iter().any(|output| output.overlaps(pattern));

    for skill in skills {
        for Placed { at, value } in &skill.inputs {
            if !is_written(value) {
                let message = format!("`{}` reads `{value}`, which no skill writes", skill.id);
                findings.warning(
                    *at,
                    "never-written",
                    message,
                    "add it to the outputTags of the skill that makes it, or drop it",
                );
            }
        }
        for Placed { at, value } in &skill.required {
            if !is_written(value) && !skill.inputs.iter().any(|input| input.value == *value) {
                let message = format!("`{}` waits for `{value}`, which no skill writes, so it can never run", skill.id);
                findings.warning(
                    *at,
                    "never-written",
                    message,
                    "add it to the outputTags of the skill that makes it, or drop it",
                );
            }
        }
    }
    for Placed { at, value } in &manifest.instance_ready {
        if !is_written(&Pattern::from(value)) {
            let message = format!("play waits for `{value}`, which no skill writes, so it can never begin");
            findings.warning(*at, "never-written", message, "add it to the outputTags of the skill that makes it, or drop it");
        }
    }
}

fn segments<'a>(skill: &ReadSkill<'a>, segments: &[ReadSegment<'a>], findings: &mut Findings<'a>) {
    for segment in segments {
        for tag in &segment.tags {
            if !skill.inputs.iter().any(|input| input.value.covers(&tag.value)) {
                let message = format!("the segment `{}` shows `{}`, which is not within inputTags", segment.id.value, tag.value);
                let help = format!("add `{}` to inputTags, or show only what stands there", tag.value);
                findings.error(tag.at, "segment-not-input", message, help);
            }
            if let Some(why) = always_hidden(skill, &tag.value) {
                let message = format!("the segment `{}` shows `{}`, but {why}", segment.id.value, tag.value);
                findings.error(tag.at, "segment-isolated", message, "drop the tag from the segment, or change the isolation");
            }
        }
    }
    let first_dynamic = segments.iter().position(|segment| segment.segment.tier == Tier::Dynamic);
    let last_static = segments.iter().rposition(|segment| segment.segment.tier == Tier::Static);
    if let (Some(above), Some(below)) = (first_dynamic, last_static)
        && above < below
    {
        let (above, below) = (&segments[above].id, &segments[below].id.value);
        let message = format!("the dynamic segment `{}` is listed above the static `{below}`", above.value);
        findings.warning(
            above.at,
            "segment-order",
            message,
            "list static segments first: the prompt holds them in that order anyway",
        );
    }
}

fn always_hidden(skill: &ReadSkill<'_>, pattern: &Pattern) -> Option<String> {
    hidden_whatever_runs(skill.isolation, skill.blind.iter().map(|blind| &blind.value), pattern)
}

/// Says whether a variant's prompt would always be the skill's own. Ids do not show in a prompt.
fn is_same_prompt(skill: &ReadSkill<'_>, variant: &[ReadSegment<'_>]) -> bool {
    let own: Vec<Segment> = if skill.segments.is_empty() {
        skill.implied_segments()
    } else {
        skill.segments.iter().map(|segment| segment.segment.clone()).collect()
    };
    let variant: Vec<Segment> = variant.iter().map(|segment| segment.segment.clone()).collect();
    variant.is_empty() || in_prompt_order(own) == in_prompt_order(variant)
}

fn in_prompt_order(mut segments: Vec<Segment>) -> Vec<Segment> {
    segments.sort_by_key(|segment| segment.tier);
    segments.iter_mut().for_each(|segment| segment.id.clear());
    segments
}
