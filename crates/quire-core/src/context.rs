//! Builds the prompt of one worker from the blackboard.
//!
//! Same arguments, same prompt, byte for byte; the [`Trace`] tells what each segment took and what was left out, and why.
//! Order: system (shared context, the skill's prompt, the output protocol) · static segments · dynamic segments · the final block.
//! Nothing above the first dynamic segment holds time, ids or counters.
//!
//! What a run may never see is decided in `isolation` alone, how a text is fenced in `text`, what goes first when room is
//! short in `tail`. Nothing here knows a provider; token counts come in through [`TokenCount`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::blackboard::{Item, View};
use crate::ids::{Hash, ItemNumber, SkillId};
use crate::message::Message;
use crate::pack::{Keep, Merge, Pack, Policy, Segment, Skill, Tier};
use crate::tag::{Pattern, RoleId, Tag};

use isolation::Sight;
use tail::{Shown, tail};

pub(crate) mod isolation;
mod tail;
mod text;

/// The version of the order and the fixed texts below; a record of a call names it.
pub const ASSEMBLY: u32 = 1;

/// Counts tokens as some model would, or nearly.
pub trait TokenCount {
    /// Returns the number of tokens in `text`; never more than it has bytes.
    fn count(&self, text: &str) -> u32;
}

/// What a run brings to its prompt besides the blackboard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunInput {
    /// Its role, where it has one.
    pub role: Option<RoleId>,
    /// What it has to mend: all notes so far, oldest first.
    pub notes: Vec<Note>,
    /// Its own earlier text, where this is a rerun: by tag.
    pub draft: BTreeMap<Tag, Arc<str>>,
    /// What the user answered, as `question — answer` lines.
    pub answers: Vec<String>,
}

/// One thing to mend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Who says so.
    pub from: NoteSource,
    /// What.
    pub text: Arc<str>,
}

/// Whose note it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoteSource {
    /// The user's.
    User,
    /// A check of the skill's own that failed.
    Check,
    /// A review that failed.
    Review(SkillId),
}

/// A worker's first messages, and how they came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// A system and a user message.
    pub messages: Vec<Message>,
    /// How they came about.
    pub trace: Trace,
}

/// How a prompt came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// [`ASSEMBLY`] at the time.
    pub assembly: u32,
    /// The skill.
    pub skill: SkillId,
    /// The role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleId>,
    /// The variant of segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The most tokens it could take.
    pub budget_tokens: u32,
    /// The tokens it took: the sum of its segments'.
    pub tokens: u32,
    /// The hash of everything above the first dynamic segment.
    pub prefix: Hash,
    /// Tokens above the first dynamic segment.
    pub prefix_tokens: u32,
    /// Each segment that stands in the prompt, in order; the last is the final block.
    pub segments: Vec<SegmentTrace>,
    /// What does not stand in the prompt although the skill declares it.
    pub omitted: Vec<Omission>,
}

/// One segment of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentTrace {
    /// The segment's id; `system` and `final` are the engine's own.
    pub id: String,
    /// Its tier.
    pub tier: Tier,
    /// Its tokens.
    pub tokens: u32,
    /// The items it shows, by tag, in order.
    pub items: Vec<(Tag, ItemRange)>,
    /// Whether something was cut from it.
    pub cut: bool,
}

/// The items that a segment shows of one tag: of those that may be seen, everything from the first to the last.
///
/// Cuts drop the oldest, so two ends and a count say it all, and a trace does not grow with the play.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemRange {
    /// The oldest.
    pub first: ItemNumber,
    /// The newest.
    pub last: ItemNumber,
    /// How many.
    pub count: u32,
}

/// Something left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omission {
    /// The segment it belongs to.
    pub segment: String,
    /// The tag, or the pattern where no tag matched.
    pub tag: String,
    /// Why.
    pub why: OmissionReason,
}

/// Why something was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OmissionReason {
    /// The skill's isolation keeps it from the worker.
    Isolation,
    /// The segment's policy shows less than there is.
    Policy,
    /// No room in the budget.
    Budget,
    /// The text is not a fact (yet).
    NotAccepted,
    /// Nothing on the blackboard has such a tag.
    NoMatch,
    /// A segment above shows it.
    ShownAbove,
}

/// Why no prompt can be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// What must stay does not fit.
    #[error(
        "the prompt of `{skill}` needs {needed_tokens} tokens for what it must hold ({sizes}), and the model has room for {budget_tokens}; shorten these texts, mark a segment `keep: optional`, or take a model with a larger context"
    )]
    NoRoom {
        /// The skill.
        skill: SkillId,
        /// What must stay, in tokens.
        needed_tokens: u32,
        /// What is allowed, in tokens.
        budget_tokens: u32,
        /// The sizes, by segment.
        sizes: String,
    },
}

/// What one prompt is made of.
#[derive(Debug, Clone, Copy)]
pub struct Assembly<'a> {
    /// The pack.
    pub pack: &'a Pack,
    /// The run's skill.
    pub skill: &'a Skill,
    /// What the run brings.
    pub run: &'a RunInput,
    /// The blackboard as it was when the run started.
    pub board: View<'a>,
    /// The set of the skill's segments to take; none: its own.
    pub variant: Option<&'a str>,
    /// The present turn; 0 before the first.
    pub turn: u32,
    /// The whole prompt's most tokens.
    pub budget_tokens: u32,
    /// The engine's own texts: the present ones, or those that a run's record names.
    pub fixed: &'a FixedTexts,
}

/// The engine's own texts in a worker's prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedTexts {
    /// How work is handed in.
    pub protocol: Arc<str>,
    /// The task of a first run.
    pub task: Arc<str>,
    /// The task of a rerun.
    pub mending: Arc<str>,
}

impl Default for FixedTexts {
    /// The present ones.
    fn default() -> Self {
        Self { protocol: text::PROTOCOL.into(), task: text::TASK.into(), mending: text::MENDING.into() }
    }
}

impl FixedTexts {
    /// Lists them, as they stand in a record.
    pub fn list(&self) -> Vec<Arc<str>> {
        vec![self.protocol.clone(), self.task.clone(), self.mending.clone()]
    }

    /// Reads them from a record; none where they are not three.
    pub fn read(list: &[Arc<str>]) -> Option<Self> {
        let [protocol, task, mending] = list else { return None };
        Some(Self { protocol: protocol.clone(), task: task.clone(), mending: mending.clone() })
    }
}

/// Builds the first messages of one run: a system message, and a user message that begins with its stable part.
///
/// Segments stand in the skill's order, static ones first; those that show nothing are left out. Where room is short, the
/// optional dynamic ones are cut from the last to the first, as far as need be: `latest` ones go whole, the others lose
/// their oldest lines. Then the optional static ones go whole, for a static one that slides would be new to the cache each
/// time. A segment marked `always` is never touched.
///
/// # Errors
/// [`ContextError::NoRoom`] when what must stay does not fit alone.
pub fn assemble(assembly: &Assembly<'_>, count: &dyn TokenCount) -> Result<Context, ContextError> {
    let Assembly { pack, skill, run, budget_tokens, fixed, .. } = *assembly;
    let sight = Sight::of(skill, run.role.as_ref());
    let segments = segments_in_order(skill, assembly.variant);
    let system = text::system(pack, skill, fixed);
    let last = text::last(pack, skill, run, &sight, fixed);

    let mut omitted = vec![];
    let mut blocks = select(assembly, &segments, &sight, count, &mut omitted);
    let own_tokens = [count.count(&system), count.count(&last)];
    let tokens = make_room(&mut blocks, own_tokens[0].saturating_add(own_tokens[1]), budget_tokens, count, &mut omitted);
    let segments = trace_segments(&blocks, own_tokens);
    if tokens > budget_tokens {
        let sizes: Vec<String> = segments.iter().map(|segment| format!("`{}` {}", segment.id, segment.tokens)).collect();
        let sizes = sizes.join(", ");
        return Err(ContextError::NoRoom { skill: skill.id.clone(), needed_tokens: tokens, budget_tokens, sizes });
    }

    let of_tier = |tier| blocks.iter().filter(move |block| block.segment.tier == tier);
    let stable: String = of_tier(Tier::Static).map(Block::text).collect();
    let changing: String = of_tier(Tier::Dynamic).map(Block::text).collect();
    let trace = Trace {
        assembly: ASSEMBLY,
        skill: skill.id.clone(),
        role: run.role.clone(),
        variant: assembly.variant.map(str::to_owned),
        budget_tokens,
        tokens,
        prefix: Hash::of(format!("{}\n{}", Hash::of(&system), Hash::of(&stable))),
        prefix_tokens: segments.iter().filter(|segment| segment.tier == Tier::Static).map(|segment| segment.tokens).sum(),
        segments,
        omitted,
    };
    let user = Message::User { text: format!("{stable}{changing}{last}").into(), stable_bytes: stable.len() };
    Ok(Context { messages: vec![Message::System { text: system.into() }, user], trace })
}

/// Returns what a run of this skill in this role needs and cannot read yet, in the skill's order.
///
/// Where the skill needs a role, a star in the middle stands for that role.
pub fn required_missing(skill: &Skill, role: Option<&RoleId>, board: View<'_>) -> Vec<Pattern> {
    let role = role.filter(|_| skill.needs_role());
    let bind = |pattern: &Pattern| role.map_or_else(|| pattern.clone(), |role| pattern.bind(role));
    skill.required_tags.iter().map(bind).filter(|pattern| !board.has(pattern)).collect()
}

/// The variant's segments, static ones first; for a skill without any, a dynamic one for each input pattern.
fn segments_in_order(skill: &Skill, variant: Option<&str>) -> Vec<Segment> {
    let mut segments = skill.segments_of(variant).to_vec();
    if segments.is_empty() {
        segments.extend(skill.input_tags.iter().map(|pattern| Segment::of_input(pattern, skill.input_merge)));
    }
    segments.sort_by_key(|segment| segment.tier);
    segments
}

/// A segment with what it shows.
struct Block<'a> {
    segment: &'a Segment,
    texts: Vec<Shown<'a>>,
    tokens: u32,
    cut: bool,
}

impl Block<'_> {
    fn text(&self) -> String {
        text::block(&self.segment.label, &self.texts)
    }
}

/// Takes what each segment shows from the blackboard; a tag goes to the first segment that shows something of it.
fn select<'a>(
    assembly: &Assembly<'a>,
    segments: &'a [Segment],
    sight: &Sight<'_>,
    count: &dyn TokenCount,
    omitted: &mut Vec<Omission>,
) -> Vec<Block<'a>> {
    let board = assembly.board;
    let mut shown_tags: BTreeSet<&Tag> = BTreeSet::new();
    let mut blocks = vec![];
    for segment in segments {
        let mut omit = |tag: &str, why| omitted.push(Omission { segment: segment.id.clone(), tag: tag.to_owned(), why });
        let mut texts: Vec<Shown<'a>> = vec![];
        for pattern in &segment.tags {
            let meant: Vec<&Tag> = board.tags().filter(|tag| pattern.reads(tag)).collect();
            if meant.is_empty() {
                omit(pattern.as_str(), OmissionReason::NoMatch);
            }
            let read: BTreeMap<&Tag, Vec<&Item>> =
                board.read(pattern, Merge::Concat, |tag| sight.allows(tag)).into_iter().collect();
            for tag in meant {
                if !sight.allows(tag) {
                    omit(tag.as_str(), OmissionReason::Isolation);
                    continue;
                }
                if shown_tags.contains(tag) {
                    omit(tag.as_str(), OmissionReason::ShownAbove);
                    continue;
                }
                let waits = board.has_draft(tag) && !pattern.asks_for_drafts();
                if waits || board.visible(pattern, tag).is_empty() {
                    omit(tag.as_str(), OmissionReason::NotAccepted);
                } else if !read.contains_key(tag) {
                    // A draft whose promotion this pattern shows.
                    omit(tag.as_str(), OmissionReason::Policy);
                }
                let Some(items) = read.get(tag) else { continue };
                let all: Vec<Shown<'a>> = items.iter().map(|item| Shown::whole(item)).collect();
                let kept = by_policy(segment.policy, items, &all, assembly.turn, count);
                if kept != all {
                    omit(tag.as_str(), OmissionReason::Policy);
                }
                if !kept.is_empty() {
                    shown_tags.insert(tag);
                }
                texts.extend(kept);
            }
        }
        // A segment of nothing but white space says nothing: it goes with its heading.
        if texts.iter().any(|shown| !shown.text.trim().is_empty()) {
            let cut = texts.iter().any(|shown| shown.cut);
            let mut block = Block { segment, texts, tokens: 0, cut };
            block.tokens = count.count(&block.text());
            blocks.push(block);
        }
    }
    blocks
}

/// What a policy shows of one tag's items, oldest first; `all` are these items whole.
fn by_policy<'a>(policy: Policy, items: &[&Item], all: &[Shown<'a>], turn: u32, count: &dyn TokenCount) -> Vec<Shown<'a>> {
    match policy {
        Policy::Latest => all.last().copied().into_iter().collect(),
        Policy::Concat => all.to_vec(),
        Policy::TailLines(lines_max) => {
            let lines = |shown: &Shown<'_>| shown.text.split_inclusive('\n').count();
            tail(all, |kept| kept.iter().map(lines).sum::<usize>() <= lines_max as usize)
        }
        Policy::TailTokens(tokens_max) => {
            let tokens = |shown: &Shown<'_>| u64::from(count.count(shown.text));
            tail(all, |kept| kept.iter().map(tokens).sum::<u64>() <= u64::from(tokens_max))
        }
        Policy::LastTurns(turns) => {
            let is_recent = |item: &Item| u64::from(item.turn) + u64::from(turns) > u64::from(turn);
            all.iter().zip(items).filter(|(_, item)| is_recent(item)).map(|(shown, _)| *shown).collect()
        }
    }
}

/// Cuts and drops optional segments until all fits, or nothing more may go; returns the tokens of what is left.
fn make_room(
    blocks: &mut Vec<Block<'_>>,
    own_tokens: u32,
    budget_tokens: u32,
    count: &dyn TokenCount,
    omitted: &mut Vec<Omission>,
) -> u32 {
    let mut tokens = blocks.iter().fold(own_tokens, |sum, block| sum.saturating_add(block.tokens));
    for tier in [Tier::Dynamic, Tier::Static] {
        for block in blocks.iter_mut().rev() {
            let may_go = block.segment.tier == tier && block.segment.keep == Keep::Optional;
            if tokens <= budget_tokens || !may_go {
                continue;
            }
            let room_tokens = block.tokens.saturating_sub(tokens - budget_tokens);
            tokens -= block.tokens;
            omitted.extend(cut_to(block, room_tokens, count));
            tokens += block.tokens;
        }
    }
    blocks.retain(|block| !block.texts.is_empty());
    tokens
}

/// Cuts a segment down to some tokens, or to nothing, and says of which tags something was lost.
fn cut_to(block: &mut Block<'_>, room_tokens: u32, count: &dyn TokenCount) -> Vec<Omission> {
    let label = &block.segment.label;
    let goes_whole = block.segment.tier == Tier::Static || block.segment.policy == Policy::Latest;
    let kept = match goes_whole {
        true => vec![],
        false => tail(&block.texts, |kept| count.count(&text::block(label, kept)) <= room_tokens),
    };
    let before = std::mem::replace(&mut block.texts, kept);
    block.tokens = if block.texts.is_empty() { 0 } else { count.count(&block.text()) };
    block.cut = true;
    let lost: BTreeSet<&Tag> = before.iter().filter(|shown| !block.texts.contains(shown)).map(|shown| shown.tag).collect();
    let omission =
        |tag: &Tag| Omission { segment: block.segment.id.clone(), tag: tag.as_str().to_owned(), why: OmissionReason::Budget };
    lost.into_iter().map(omission).collect()
}

fn trace_segments(blocks: &[Block<'_>], [system_tokens, final_tokens]: [u32; 2]) -> Vec<SegmentTrace> {
    let own = |id: &str, tier, tokens| SegmentTrace { id: id.to_owned(), tier, tokens, items: vec![], cut: false };
    let shown = blocks.iter().map(|block| {
        let mut items: Vec<(Tag, ItemRange)> = vec![];
        for shown in &block.texts {
            match items.last_mut() {
                Some((tag, range)) if tag == shown.tag => {
                    range.last = shown.item;
                    range.count += 1;
                }
                _ => items.push((shown.tag.clone(), ItemRange { first: shown.item, last: shown.item, count: 1 })),
            }
        }
        let Segment { id, tier, .. } = block.segment;
        SegmentTrace { id: id.clone(), tier: *tier, tokens: block.tokens, items, cut: block.cut }
    });
    let first = own("system", Tier::Static, system_tokens);
    std::iter::once(first).chain(shown).chain([own("final", Tier::Dynamic, final_tokens)]).collect()
}
