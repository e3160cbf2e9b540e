//! What each call of a session has cost, from its records.

use std::collections::BTreeMap;

use quire_core::event::Event;
use quire_core::ids::{CallId, SkillId};
use quire_core::journal::Record;
use quire_core::message::Usage;
use serde::Serialize;

use crate::words::Lang;

/// One call that was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallCost {
    /// The call.
    pub call: CallId,
    /// The skill that asked; none for the main agent.
    pub skill: Option<SkillId>,
    /// The model's name at its provider.
    pub model: String,
    /// How often it was asked.
    pub attempts: u32,
    /// What it used.
    #[serde(flatten)]
    pub usage: Usage,
}

/// Lists what each answered call has cost, oldest first.
pub fn calls(records: &[Record]) -> Vec<CallCost> {
    let mut asked = BTreeMap::new();
    let mut calls = vec![];
    for record in records {
        match &record.event {
            Event::ModelAsked(ask) => drop(asked.insert(ask.call, ask)),
            Event::ModelReplied { call, reply } => {
                let ask = asked.get(call);
                calls.push(CallCost {
                    call: *call,
                    skill: ask.and_then(|ask| Some(ask.trace.as_ref()?.skill.clone())),
                    model: ask.map(|ask| ask.model.clone()).unwrap_or_default(),
                    attempts: ask.map_or(0, |ask| ask.attempt),
                    usage: reply.usage,
                });
            }
            Event::Started(_)
            | Event::User(_)
            | Event::ModelFailed { .. }
            | Event::Drawn { .. }
            | Event::ModelIgnored { .. }
            | Event::TaskEquipped(_)
            | Event::ToolAsked { .. }
            | Event::ToolAnswered { .. }
            | Event::ToolLost { .. }
            | Event::TaskOverdue { .. } => {}
        }
    }
    calls
}

/// Puts tokens and money into words, with the share of the prompt that came from the provider's cache.
pub fn words(lang: Lang, usage: Usage) -> String {
    let Usage { input_tokens, cached_tokens, output_tokens, money_micros } = usage;
    let share = (100 * cached_tokens).checked_div(input_tokens).unwrap_or_default();
    lang.usage(input_tokens, share, output_tokens, format!("{:.4}", money_micros as f64 / 1e6))
}
