//! Commands that only look.

use std::process::ExitCode;

use anyhow::Result;
use quire_core::context::{Context as Assembled, OmissionReason};
use quire_core::event::Event;
use quire_core::ids::{RunId, SessionId};
use quire_core::message::{Message, Usage};
use quire_core::pack::Tier;
use quire_runtime::tokens::O200k;
use serde_json::json;

use super::{Desk, prefix, screen};
use crate::options::Context;
use crate::report::{self, Unknown};
use crate::{spending, wire};

/// A prompt's room, for a run that no model was asked for yet.
const BUDGET_TOKENS: u32 = 1_000_000;

/// Shows where a session stands.
pub async fn show(desk: &Desk, session: &str) -> Result<ExitCode> {
    let id = SessionId::new(session);
    let opened = desk.fleet.look(&id).await?;
    let (records, _) = desk.fleet.history(&id).await?;
    let calls = spending::calls(&records);
    if desk.is_json {
        let mut view = wire::session(&opened);
        view["calls"] = json!(calls);
        println!("{view}");
        return Ok(ExitCode::from(report::FINE));
    }
    screen::head(&opened);
    if let Some(last) = calls.last() {
        let who = last.skill.as_ref().map_or("agent", |skill| skill.as_str());
        println!("Last call: {} by {who}, {}", last.call, spending::words(last.usage));
    }
    screen::tell(desk, &opened);
    Ok(ExitCode::from(report::FINE))
}

/// Shows what has happened, a record a line; a reply tells what it cost, and as JSON what was spent up to then.
pub async fn journal(desk: &Desk, session: &str) -> Result<ExitCode> {
    let id = SessionId::new(session);
    let opened = desk.fleet.look(&id).await?;
    let (records, damage) = desk.fleet.history(&id).await?;
    let masked = wire::Masked::of(&opened.session, &records);
    let mut spent = Usage::default();
    for record in &records {
        if let Event::ModelReplied { reply, .. } = &record.event {
            spent += reply.usage;
        }
        if desk.is_json {
            let mut view = masked.record(record);
            if matches!(record.event, Event::ModelReplied { .. }) {
                view["spent"] = json!(spent);
            }
            println!("{view}");
        } else {
            println!("{}", screen::record(record));
        }
    }
    if !desk.is_json {
        println!("Spent in all: {}", spending::words(spent));
    }
    if let Some(damage) = damage {
        eprintln!("quire: {damage}");
    }
    Ok(ExitCode::from(report::FINE))
}

/// Lists sessions.
pub async fn list(desk: &Desk) -> Result<ExitCode> {
    let sessions = desk.store.list().await?;
    if desk.is_json {
        println!("{}", json!({ "sessions": sessions }));
        return Ok(ExitCode::from(report::FINE));
    }
    if sessions.is_empty() {
        println!("There is no session yet; `quire new short-story` starts one.");
    }
    for line in sessions {
        let waits = if line.reason.is_empty() { line.phase } else { format!("{} ({})", line.phase, line.reason) };
        println!("{}", format!("{}  {waits:<31}  {:<16}  {}", line.session, line.pack, line.title).trim_end());
    }
    Ok(ExitCode::from(report::FINE))
}

/// Shows what a worker got to see.
pub async fn context(desk: &Desk, context: &Context) -> Result<ExitCode> {
    let opened = desk.fleet.look(&SessionId::new(&context.session)).await?;
    let session = &opened.session;
    let run = match &context.run {
        Some(named) => {
            let number = named.parse().ok().filter(|number| (1..=session.runs().len() as u64).contains(number));
            RunId(
                number
                    .ok_or_else(|| Unknown(format!("there is no run `{named}`; the session has had {}", session.runs().len())))?,
            )
        }
        None => session.runs().last().map(|run| run.id).ok_or_else(|| Unknown("no worker has run yet".to_owned()))?,
    };
    let budget_tokens = session.run(run).budget_tokens.unwrap_or(BUDGET_TOKENS);
    let assembled = session.run_context(run, budget_tokens, &O200k)?;
    let difference = prefix::difference(session, run, &assembled, BUDGET_TOKENS)?;
    let Assembled { messages, trace } = assembled;
    let holds_hidden =
        session.hides_now() && trace.segments.iter().flat_map(|segment| &segment.items).any(|(tag, _)| session.is_hidden(tag));
    let may_show = !holds_hidden && !wire::writes_hidden(session, &trace.skill);
    if context.prompt && !may_show {
        return Err(Unknown(format!(
            "the prompt of run {run} holds texts that are hidden from you; `quire reveal {}` shows them",
            context.session
        ))
        .into());
    }
    if desk.is_json {
        let messages = context.prompt.then_some(&messages);
        println!(
            "{}",
            json!({ "session": session.id(), "run": run, "trace": trace, "messages": messages, "firstDifference": difference })
        );
        return Ok(ExitCode::from(report::FINE));
    }
    if context.prompt {
        for message in &messages {
            println!("=== {} ===\n{}", message.role(), message.text());
        }
        return Ok(ExitCode::from(report::FINE));
    }
    println!("Run {run}: {}, {} tokens of {}", session.run(run).title(), trace.tokens, trace.budget_tokens);
    let stable = messages.iter().find_map(|message| match message {
        Message::User { stable_bytes, .. } => Some(*stable_bytes),
        Message::System { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
    });
    println!("The same from run to run: {} tokens ({} bytes of segments)", trace.prefix_tokens, stable.unwrap_or_default());
    if let Some(prefix::Difference { run, segment, tier, same_tokens }) = difference {
        let held = match tier {
            Tier::Static => "a part that should stay the same has changed",
            Tier::Dynamic => "the stable beginning has held",
        };
        println!("Differs from run {run} first in {segment}, after {same_tokens} tokens: {held}");
    }
    for segment in &trace.segments {
        let cut = if segment.cut { ", cut" } else { "" };
        println!("  {:<24} {:>7} tokens{cut}", segment.id, segment.tokens);
        for (tag, range) in &segment.items {
            if range.count == 1 {
                println!("      {tag}: item {}", range.last);
            } else {
                println!("      {tag}: {} items, {} to {}", range.count, range.first, range.last);
            }
        }
    }
    if !trace.omitted.is_empty() {
        println!("Left out:");
    }
    for omission in &trace.omitted {
        println!("  {:<24} {}: {}", omission.segment, omission.tag, reason(omission.why));
    }
    Ok(ExitCode::from(report::FINE))
}

fn reason(why: OmissionReason) -> &'static str {
    match why {
        OmissionReason::Isolation => "the skill's isolation keeps it away",
        OmissionReason::Policy => "the segment's policy shows less than there is",
        OmissionReason::Budget => "no room",
        OmissionReason::NotAccepted => "not a fact (yet)",
        OmissionReason::NoMatch => "nothing has such a tag",
        OmissionReason::ShownAbove => "a segment above shows it",
    }
}
