//! One scenario through every wire: what is stored is the same, whoever spoke.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quire_adapters::providers::anthropic::{Anthropic, AnthropicConfig};
use quire_adapters::providers::gemini::{Gemini, GeminiConfig};
use quire_adapters::providers::openai::{OpenAi, OpenAiConfig};
use quire_adapters::providers::scripted::Scripted;
use quire_adapters::stores::sqlite::SqliteStore;
use quire_core::chance::Seed;
use quire_core::deep_task::Caps;
use quire_core::event::{Event, ModelAsked, Start};
use quire_core::ids::{SessionId, Timestamp};
use quire_core::message::{Failure, Usage};
use quire_runtime::driver::Ports;
use quire_runtime::fleet::Fleet;
use quire_runtime::ports::{Chance, Clock, ModelProvider, Models, NoTools};
use quire_runtime::retry::RetryPolicy;
use quire_scenario::{LineKind, ModelLine, Scenario, UserLine};
use quire_testkit::fake_model::{FakeModel, FakeReply, Wire};
use quire_testkit::play::pack_files;

/// Leaves the prompt as much room as a scripted model gives it.
const CONTEXT_TOKENS: u32 = 136_192;

const SCENARIO: &str = "
    pack    short-story
    user    A story about a lighthouse. 灯塔 👩‍👩‍👧‍👦 e\u{301}
    user    Length: 300 words
    user    confirm
    agent   read_blackboard user.brief
     and    list_workers
    agent   call no_such_tool {}
    agent   call list_workers {\"broken
    agent   run_worker outline: The brief stands.
    worker  text: I had rather talk first.
    user    reject: Just write.
    worker  submit outline.draft: 一个守塔人，最后一夜。
            summary: One night.
    user    accept
    agent   run_worker draft: The outline is accepted.
    worker  submit story.draft: 她上了发条。
    user    accept
    agent   ask_user: Is there anything else?
    user    finish
";

struct Ticks(AtomicI64);

impl Clock for Ticks {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// The scenario's pack throws none.
struct NoDice;

impl Chance for NoDice {
    fn seed(&self) -> Seed {
        Seed(0)
    }
}

struct Only(Arc<dyn ModelProvider>);

impl Models for Only {
    fn provider(&self, _profile: &str) -> Result<Arc<dyn ModelProvider>, Failure> {
        Ok(self.0.clone())
    }
}

/// Plays the scenario's user against a model and returns what was journaled, without what only says who spoke.
async fn journal(scenario: &Scenario, provider: Arc<dyn ModelProvider>) -> Vec<Event> {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(folder.path()).await.expect("a store");
    let retry = RetryPolicy { attempts_max: 1, ..RetryPolicy::default() };
    let ports = Ports {
        store: Arc::new(store),
        models: Arc::new(Only(provider)),
        clock: Arc::new(Ticks(AtomicI64::new(1))),
        chance: Arc::new(NoDice),
        retry,
        tools: Arc::new(NoTools),
        task_caps: Caps::default(),
    };
    let fleet = Fleet::new(ports);
    let id = SessionId::new("s");
    let start = Start {
        title: String::new(),
        pack: scenario.pack.as_deref().map(pack_files),
        profile: "any".to_owned(),
        burst_max: None,
        budget: scenario.options.budget,
        offer: vec![],
    };
    fleet.start(&id, start).await.expect("a session");
    for line in &scenario.lines {
        if let LineKind::User(UserLine::Act(action)) = &line.kind {
            fleet.act(&id, action).await.expect("a store that works");
            fleet.settled(&id).await.expect("a store that works");
        }
    }
    let (records, damage) = fleet.history(&id).await.expect("a store that works");
    assert_eq!(damage, None);
    records.into_iter().map(|record| without_the_speaker(record.event)).collect()
}

/// The prompt's hash stays: the transcript was the same at each step.
fn without_the_speaker(event: Event) -> Event {
    match event {
        Event::ModelAsked(asked) => Event::ModelAsked(ModelAsked { model: String::new(), ..asked }),
        Event::ModelReplied { call, mut reply } => {
            reply.usage = Usage::default();
            Event::ModelReplied { call, reply }
        }
        Event::Started(_)
        | Event::User(_)
        | Event::Drawn { .. }
        | Event::ModelFailed { .. }
        | Event::ModelIgnored { .. }
        | Event::TaskEquipped(_)
        | Event::ToolAsked { .. }
        | Event::ToolAnswered { .. }
        | Event::ToolLost { .. }
        | Event::TaskOverdue { .. } => event,
    }
}

async fn fake(wire: Wire, scenario: &Scenario) -> FakeModel {
    let server = FakeModel::speaking(wire).await;
    for line in &scenario.lines {
        match &line.kind {
            LineKind::Agent(ModelLine::Reply(reply)) | LineKind::Worker { reply: ModelLine::Reply(reply), .. } => {
                server.reply(FakeReply::reply(reply));
            }
            LineKind::Agent(ModelLine::Failure(_))
            | LineKind::Worker { .. }
            | LineKind::User(_)
            | LineKind::Task { .. }
            | LineKind::Tool { .. } => {}
        }
    }
    server
}

#[tokio::test]
async fn the_same_scenario_through_every_wire_is_stored_the_same() {
    let scenario = Scenario::parse("test.scenario", SCENARIO).expect("the scenario has no faults");
    let scripted = journal(&scenario, Arc::new(Scripted::new(scenario.clone()))).await;
    assert!(scripted.iter().filter(|event| matches!(event, Event::ModelReplied { .. })).count() >= 8, "{scripted:#?}");
    for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Gemini] {
        let server = fake(wire, &scenario).await;
        let url = server.url();
        let provider: Arc<dyn ModelProvider> = match wire {
            Wire::OpenAi => Arc::new(OpenAi::new(OpenAiConfig::new(url, "m", CONTEXT_TOKENS)).expect("a provider")),
            Wire::Anthropic => Arc::new(Anthropic::new(AnthropicConfig::new(url, "m", CONTEXT_TOKENS)).expect("a provider")),
            Wire::Gemini => Arc::new(Gemini::new(GeminiConfig::new(url, "m", CONTEXT_TOKENS)).expect("a provider")),
        };
        let events = journal(&scenario, provider).await;
        assert_eq!(events.len(), scripted.len(), "{wire:?}: {events:#?}");
        for (index, (event, other)) in events.iter().zip(&scripted).enumerate() {
            assert_eq!(event, other, "{wire:?}, event {index}");
        }
    }
}
