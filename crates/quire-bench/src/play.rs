//! A play of many turns through the real driver and store: what a turn costs, and whether it grows with the history.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail, ensure};
use async_trait::async_trait;
use quire_adapters::stores::sqlite::SqliteStore;
use quire_core::chance::Seed;
use quire_core::deep_task::Caps;
use quire_core::event::{Action, Event, Start};
use quire_core::ids::{SessionId, Timestamp};
use quire_core::message::{Failure, Finish, Reply, ToolCall, Usage};
use quire_core::pack::PackFiles;
use quire_runtime::driver::Ports;
use quire_runtime::fleet::Fleet;
use quire_runtime::ports::{
    Answered, Asker, Chance, Clock, Delta, ModelError, ModelProvider, ModelRequest, Models, NoTools, Store,
};
use quire_runtime::retry::RetryPolicy;

use crate::report::{Page, median, rate, time};

/// Turns of the long play.
const TURNS: usize = 1_000;
/// Turns at each end whose median stands for that end.
const WINDOW: usize = 20;
/// Turns over which prompts are compared.
const PROMPT_TURNS: usize = 50;
/// Turns that the worker reads, as its skill says.
const TURNS_READ: usize = 20;

/// Measures, and adds its section.
pub async fn measure(page: &mut Page) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let model = Arc::new(Narrator::default());
    let (fleet, store) = fleet(folder.path(), Arc::clone(&model)).await?;
    let id = SessionId::new("long play");
    fleet.start(&id, start()).await?;
    let mut times = vec![];
    for turn in 0..TURNS {
        let before = Instant::now();
        take_turn(&fleet, &id, turn).await?;
        times.push(before.elapsed().as_secs_f64());
    }
    let prompts = model.prompts.lock().expect("no test of ours panics with it").clone();

    page.section(
        "A turn late in a play",
        "One session: the user speaks, the agent runs a worker, its text is accepted at once, the agent asks again. The first and the \
         last twenty of 1,000 turns; the fleet lets go of the session after each.",
    );
    let (first, last) = (median(times[..WINDOW].to_vec()), median(times[TURNS - WINDOW..].to_vec()));
    page.line("time of a turn, the first", time(Duration::from_secs_f64(first)), "");
    page.line("time of a turn, the last", time(Duration::from_secs_f64(last)), "");
    page.line("the last against the first, in time", format!("{:.2}", last / first), "≤ 1.1");

    let journal = store.load(&id).await?;
    let bytes = bytes_of_turns(&journal);
    let (first, last) = (median(bytes[1..=WINDOW].to_vec()), median(bytes[TURNS - WINDOW..].to_vec()));
    page.line("bytes of a turn, the first", format!("{first:.0}"), "");
    page.line("bytes of a turn, the last", format!("{last:.0}"), "");
    page.line("the last against the first, in bytes", format!("{:.2}", last / first), "≤ 1.1");
    page.line("records of the play", journal.records.len().to_string(), "");
    let whole = Duration::from_secs_f64(times.iter().sum());
    page.line("events through driver, journal and disk", rate(journal.records.len(), whole), "");

    page.section(
        "What a provider's cache can keep",
        "How much of a worker's prompt is, byte for byte, the beginning of its previous one, in the first 50 turns of the same play. The \
         worker reads the last twenty turns: until then its prompt grows at the end, from then on what it reads moves on with each turn, \
         and only the static beginning stays.",
    );
    let shares: Vec<f64> = prompts.windows(2).map(|pair| shared(&pair[0], &pair[1])).collect();
    ensure!(shares.len() == PROMPT_TURNS - 1, "a prompt is missing");
    let (growing, moving) = shares.split_at(TURNS_READ);
    page.line("share of the prompt, while it grows", format!("{:.0} %", 100.0 * median(growing.to_vec())), "");
    page.line("share of the prompt, while it moves on", format!("{:.0} %", 100.0 * median(moving.to_vec())), "");
    Ok(())
}

/// Does one turn and waits until the user is waited for again.
pub async fn take_turn(fleet: &Fleet, id: &SessionId, turn: usize) -> Result<()> {
    let text = format!("I climb the stairs for the {turn}th time and look for the boat.").into();
    let said = fleet.act(id, &Action::SubmitInput { text, values: BTreeMap::new() }).await?;
    if let Answered::Refused { refusal } = said {
        bail!("turn {turn} was refused: {refusal}");
    }
    let summary = fleet.settled(id).await?;
    ensure!(summary.reason == "input", "turn {turn} ended at {} {}", summary.phase, summary.reason);
    Ok(())
}

/// Opens a fleet on a folder, with a model that answers at once.
pub async fn fleet(folder: &Path, model: Arc<Narrator>) -> Result<(Fleet, Arc<dyn Store>)> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder).await?);
    let models = Arc::new(OneModel(model));
    let ports = Ports {
        store: Arc::clone(&store),
        models,
        clock: Arc::new(WallClock),
        chance: Arc::new(NoDice),
        retry: RetryPolicy::default(),
        tools: Arc::new(NoTools),
        task_caps: Caps::default(),
    };
    Ok((Fleet::new(ports), store))
}

/// Begins a session of the measured pack.
pub fn start() -> Start {
    let files = [
        ("orchestrator.md", include_str!("../pack/orchestrator.md")),
        ("shared-context.md", include_str!("../pack/shared-context.md")),
        ("workers/turn/SKILL.md", include_str!("../pack/workers/turn/SKILL.md")),
    ];
    let files = files.into_iter().map(|(path, text)| (path.to_owned(), text.into())).collect();
    Start {
        title: "a play".to_owned(),
        pack: Some(PackFiles(files)),
        profile: "narrator".to_owned(),
        burst_max: None,
        budget: Default::default(),
        offer: vec![],
    }
}

/// Bytes on disk of each turn: its records, and the long texts it was the first to name.
fn bytes_of_turns(journal: &quire_runtime::ports::StoredJournal) -> Vec<f64> {
    let mut seen = std::collections::BTreeSet::new();
    let mut turns = vec![0.0];
    for record in &journal.records {
        if record.body.contains("\"action\":\"submit_input\"") {
            turns.push(0.0);
        }
        let named = quire_core::journal::texts_named(&record.body).into_iter().filter(|hash| seen.insert(hash.clone()));
        let texts: usize = named.filter_map(|hash| journal.texts.get(&hash)).map(|text| text.len()).sum();
        *turns.last_mut().expect("it begins with one") += (record.body.len() + texts) as f64;
    }
    turns
}

fn shared(before: &str, after: &str) -> f64 {
    let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    same as f64 / after.len() as f64
}

/// A model that plays both parts of every turn, and remembers what its workers were shown.
#[derive(Debug, Default)]
pub struct Narrator {
    prompts: Mutex<Vec<String>>,
}

#[async_trait]
impl ModelProvider for Narrator {
    async fn ask(&self, request: &ModelRequest, _deltas: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, ModelError> {
        let number = request.answered_before;
        let (tool, arguments) = match &request.asker {
            Asker::Agent if number.is_multiple_of(2) => {
                ("run_worker", r#"{"workerId":"turn","reason":"The user acts.","requiresApproval":false}"#.to_owned())
            }
            Asker::Agent => ("ask_user", r#"{"assessment":"What do you do?"}"#.to_owned()),
            Asker::Task { task } => unreachable!("deep task {task} was never started"),
            Asker::Worker { .. } => {
                let mut prompts = self.prompts.lock().expect("no test of ours panics with it");
                if prompts.len() < PROMPT_TURNS {
                    prompts.push(request.messages.iter().map(|message| message.text()).collect());
                }
                ("submit", serde_json::json!({"outputs": {"剧情.草稿": story(number)}, "summary": "A step up."}).to_string())
            }
        };
        let call = ToolCall { id: format!("call {number}"), name: tool.to_owned(), arguments: arguments.into() };
        Ok(Reply {
            text: "".into(),
            reasoning: "".into(),
            calls: vec![call],
            finish: Finish::ToolCalls,
            usage: Usage { input_tokens: 900, cached_tokens: 700, output_tokens: 120, money_micros: 0 },
        })
    }

    fn model(&self) -> &str {
        "narrator"
    }

    fn prompt_tokens_max(&self) -> u32 {
        128_000
    }
}

fn story(number: u64) -> String {
    format!(
        "The stair takes a breath for every step of yours; you count {number} and lose the rest. At the top the glass is warm, though \
         the lamp has been dark since spring. Someone has written the date into the log and nothing after it. Down on the water a \
         lantern moves, too slow for a boat, too steady for a gull, and behind you on the stairs a foot is set down with care. 灯塔里没有别人。"
    )
}

struct OneModel(Arc<Narrator>);

impl Models for OneModel {
    fn provider(&self, _profile: &str) -> Result<Arc<dyn ModelProvider>, Failure> {
        let narrator: Arc<dyn ModelProvider> = Arc::clone(&self.0) as _;
        Ok(narrator)
    }
}

struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The measured pack draws nothing.
struct NoDice;

impl Chance for NoDice {
    fn seed(&self) -> Seed {
        Seed(0)
    }
}

/// Returns the events of a play of so many records, as its journal tells them.
pub async fn events(count: usize) -> Result<Vec<(Timestamp, Event)>> {
    let folder = tempfile::tempdir()?;
    let (fleet, _store) = fleet(folder.path(), Arc::default()).await?;
    let id = SessionId::new("play");
    fleet.start(&id, start()).await?;
    for turn in 0..count.div_ceil(7) {
        take_turn(&fleet, &id, turn).await?;
    }
    let (records, _) = fleet.history(&id).await?;
    Ok(records.into_iter().take(count).map(|record| (record.time, record.event)).collect())
}
