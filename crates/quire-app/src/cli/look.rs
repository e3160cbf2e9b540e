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
use unicode_width::UnicodeWidthStr;

use super::paint::printable;
use super::{Desk, prefix, screen};
use crate::options::Context;
use crate::report::{self, Unknown};
use crate::words::{self, Lang};
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
    screen::head(desk.lang, &opened);
    if let Some(last) = calls.last() {
        let who = last.skill.as_ref().map_or_else(|| desk.lang.agent(), ToString::to_string);
        println!("{}", desk.lang.spent_last(last.call, who, spending::words(desk.lang, last.usage)));
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
            println!("{}", screen::record(desk.lang, record));
        }
    }
    if !desk.is_json {
        println!("{}", desk.lang.spent_in_all(spending::words(desk.lang, spent)));
    }
    if let Some(damage) = damage {
        eprintln!("{}", desk.lang.error_line(damage));
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
        println!("{}", desk.lang.no_session_yet());
    }
    for line in sessions {
        let waits = words::session::listed(desk.lang, &line.phase, &line.reason);
        let line = format!("{}  {} {} {}", line.session, padded(&waits, 24), padded(&line.pack, 16), line.title);
        println!("{}", printable(&line));
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
            RunId(number.ok_or_else(|| Unknown(desk.lang.no_such_run(named, session.runs().len())))?)
        }
        None => session.runs().last().map(|run| run.id).ok_or_else(|| Unknown(desk.lang.no_run_yet()))?,
    };
    let budget_tokens = session.run(run).budget_tokens.unwrap_or(BUDGET_TOKENS);
    let assembled = session.run_context(run, budget_tokens, &O200k)?;
    let difference = prefix::difference(session, run, &assembled, BUDGET_TOKENS)?;
    let Assembled { messages, trace } = assembled;
    let holds_hidden =
        session.hides_now() && trace.segments.iter().flat_map(|segment| &segment.items).any(|(tag, _)| session.is_hidden(tag));
    let may_show = !holds_hidden && !wire::writes_hidden(session, &trace.skill);
    if context.prompt && !may_show {
        return Err(Unknown(desk.lang.prompt_hidden(run, &context.session)).into());
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
            println!("=== {} ===\n{}", message.role(), printable(message.text()));
        }
        return Ok(ExitCode::from(report::FINE));
    }
    let lang = desk.lang;
    println!("{}", lang.run_head(run, words::session::run_name(session, run), trace.tokens, trace.budget_tokens));
    let stable = messages.iter().find_map(|message| match message {
        Message::User { stable_bytes, .. } => Some(*stable_bytes),
        Message::System { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
    });
    println!("{}", lang.run_stable(trace.prefix_tokens, stable.unwrap_or_default()));
    if let Some(prefix::Difference { run, segment, tier, same_tokens }) = difference {
        let held = match tier {
            Tier::Static => lang.prefix_broken(),
            Tier::Dynamic => lang.prefix_held(),
        };
        println!("{}", lang.run_differs(run, segment, same_tokens, held));
    }
    for segment in &trace.segments {
        let cut = if segment.cut { lang.segment_cut() } else { String::new() };
        let tokens = lang.segment_tokens(format!("{:>7}", segment.tokens));
        println!("  {} {tokens}{cut}", padded(&segment.id, 24));
        for (tag, range) in &segment.items {
            if range.count == 1 {
                println!("{}", lang.segment_item(tag, range.last));
            } else {
                println!("{}", lang.segment_items(tag, range.count, range.first, range.last));
            }
        }
    }
    if !trace.omitted.is_empty() {
        println!("{}", lang.left_out());
    }
    for omission in &trace.omitted {
        println!("  {} {}: {}", padded(&omission.segment, 24), omission.tag, reason(lang, omission.why));
    }
    Ok(ExitCode::from(report::FINE))
}

fn reason(lang: Lang, why: OmissionReason) -> String {
    match why {
        OmissionReason::Isolation => lang.omitted_isolation(),
        OmissionReason::Policy => lang.omitted_policy(),
        OmissionReason::Budget => lang.omitted_budget(),
        OmissionReason::NotAccepted => lang.omitted_not_accepted(),
        OmissionReason::NoMatch => lang.omitted_no_match(),
        OmissionReason::ShownAbove => lang.omitted_shown_above(),
    }
}

/// Fills text up to a width in columns: a Chinese character takes two.
fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}
