//! A session played by hand, event by event: for what the scenario language cannot say (late replies, attempts, packs).

use std::sync::Arc;

use quire_core::context::ASSEMBLY;
use quire_core::effect::Effect;
use quire_core::event::{Action, Event, ModelAsked, Start};
use quire_core::ids::{CallId, Hash, SessionId, Timestamp};
use quire_core::message::{Finish, Reply, ToolCall, Usage};
use quire_core::session::{Refusal, Session};
use serde_json::Value;

use crate::play::{pack_files, play};

pub use quire_scenario::perform::{Estimate, state};

/// A session and what it has heard.
#[derive(Debug, Clone)]
pub struct Hand {
    /// The session.
    pub session: Session,
    /// What was heard, in order.
    pub events: Vec<(Timestamp, Event)>,
}

impl Hand {
    /// Starts a session with a small pack, or without one.
    pub fn start(pack: Option<&str>) -> Self {
        let mut hand = Self { session: Session::new(SessionId::new("play")), events: vec![] };
        let start = Start {
            title: String::new(),
            pack: pack.map(pack_files),
            profile: "scripted".to_owned(),
            burst_max: None,
            budget: Default::default(),
            offer: vec![],
        };
        hand.happens(Event::Started(start)).expect("a session starts once");
        hand
    }

    /// Goes on where a scenario ends.
    pub fn after(scenario: &str) -> Self {
        let performance = play(scenario);
        Self { session: performance.session, events: performance.events }
    }

    /// Lets something happen, a second after what happened before.
    ///
    /// # Errors
    /// The refusal; the session is proven to be as it was.
    pub fn happens(&mut self, event: Event) -> Result<Vec<Effect>, Refusal> {
        let now = Timestamp(self.events.last().map_or(0, |(time, _)| time.0 + 1000));
        let before = self.session.clone();
        let heard = self.session.handle(now, event.clone());
        match &heard {
            Ok(_) => self.events.push((now, event)),
            Err(refusal) => assert!(self.session == before, "refused and changed something: {refusal:?}"),
        }
        heard
    }

    /// Lets the user do something.
    ///
    /// # Errors
    /// The refusal.
    pub fn user(&mut self, action: Action) -> Result<Vec<Effect>, Refusal> {
        self.happens(Event::User(action))
    }

    /// Lets the user say something.
    ///
    /// # Errors
    /// The refusal.
    pub fn says(&mut self, words: &str) -> Result<Vec<Effect>, Refusal> {
        self.user(Action::SubmitInput { text: words.into(), values: Default::default() })
    }

    /// Returns the call under way.
    pub fn call(&self) -> CallId {
        self.session.phase().asking().expect("a model is asked").call
    }

    /// Journals an attempt of a call.
    ///
    /// # Errors
    /// The refusal.
    pub fn asks(&mut self, call: CallId, attempt: u32) -> Result<Vec<Effect>, Refusal> {
        self.happens(Event::ModelAsked(asked(call, attempt)))
    }

    /// Journals the next attempt of the call under way, and lets its reply come.
    ///
    /// # Errors
    /// The refusal.
    pub fn replies(&mut self, reply: Reply) -> Result<Vec<Effect>, Refusal> {
        let running = self.session.phase().asking().expect("a model is asked").clone();
        self.asks(running.call, running.attempts + 1)?;
        self.happens(Event::ModelReplied { call: running.call, reply })
    }
}

/// Makes the record of an attempt.
pub fn asked(call: CallId, attempt: u32) -> ModelAsked {
    ModelAsked {
        call,
        attempt,
        profile: "scripted".to_owned(),
        model: "scripted".to_owned(),
        budget_tokens: 100_000,
        tokenizer: "estimate".to_owned(),
        assembly: ASSEMBLY,
        fixed: vec![],
        prompt: Hash::of("prompt"),
        prefix: Hash::of("prefix"),
        trace: None,
        task: None,
    }
}

/// Makes a reply of text.
pub fn text(text: &str) -> Reply {
    Reply { text: text.into(), reasoning: "".into(), calls: vec![], finish: Finish::Stop, usage: Usage::default() }
}

/// Makes a reply that calls tools: name and arguments each; every call bears the same id, as careless providers do.
pub fn calls(calls: &[(&str, Value)]) -> Reply {
    let call = |(name, arguments): &(&str, Value)| {
        let arguments: Arc<str> = arguments.to_string().into();
        ToolCall { id: "call".to_owned(), name: (*name).to_owned(), arguments }
    };
    Reply { calls: calls.iter().map(call).collect(), finish: Finish::ToolCalls, ..text("") }
}
