//! Where a skill's prompt first differs from the one before: what stands above may come from the provider's cache.

use quire_core::context::{Context, ContextError, SegmentTrace};
use quire_core::ids::RunId;
use quire_core::pack::Tier;
use quire_core::session::Session;
use quire_runtime::tokens::O200k;
use serde::Serialize;

/// The first place that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The earlier run of the same skill in the same role.
    pub run: RunId,
    /// The segment that differs, is new or is gone; `system` and `final` are the engine's own.
    pub segment: String,
    /// Its tier: a static one should not have changed.
    pub tier: Tier,
    /// Tokens of the segments above it, which are the same.
    pub same_tokens: u32,
}

/// Compares a run's prompt with that of the run before it of the same skill in the same role; none where there is no such
/// run, or the prompts are the same.
///
/// # Errors
/// [`ContextError`] when the earlier prompt has no room for what it must hold.
pub fn difference(session: &Session, run: RunId, later: &Context, room: u32) -> Result<Option<Difference>, ContextError> {
    let run = session.run(run);
    let is_like = |other: &&quire_core::session::Run| other.id < run.id && other.skill == run.skill && other.role == run.role;
    let Some(before) = session.runs().iter().rev().find(is_like) else { return Ok(None) };
    let earlier = session.run_context(before.id, before.budget_tokens.unwrap_or(room), &O200k)?;
    Ok(first(before.id, &earlier, later))
}

fn first(run: RunId, earlier: &Context, later: &Context) -> Option<Difference> {
    let system_is_same = earlier.messages.first() == later.messages.first();
    let mut same_tokens = 0;
    let mut before = earlier.trace.segments.iter();
    for (at, now) in later.trace.segments.iter().enumerate() {
        // Items never change, so the same items in the same room are the same text; what no item holds is compared itself.
        let before = before.next();
        let is_same = match (at, before) {
            (0, _) => system_is_same,
            (_, before) if is_last(now) => before.is_some_and(is_last) && earlier.messages == later.messages,
            (_, before) => before == Some(now),
        };
        if !is_same {
            // One that is gone has the final block in its place.
            let named = before.filter(|before| is_last(now) && !is_last(before)).unwrap_or(now);
            return Some(Difference { run, segment: named.id.clone(), tier: named.tier, same_tokens });
        }
        same_tokens += now.tokens;
    }
    None
}

fn is_last(segment: &SegmentTrace) -> bool {
    segment.id == "final"
}
