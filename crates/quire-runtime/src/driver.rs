//! Drives one session: hears an event, has it written, and only then carries out what follows.
//!
//! After a crash the session is the fold of its journal, and what is owed is asked again with one attempt more: recovery is
//! the normal path. When a write fails, the session in memory is ahead of the disk; it is dropped and read again.
//!
//! What is under way are flights: at most one of the session's own, and one of each deep task. Each belongs to an effect
//! that the session owes; one that is no longer owed is dropped, and that breaks it off.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future;
use quire_core::context::{ASSEMBLY, TokenCount, Trace};
use quire_core::deep_task::{Caps, INSTRUCTIONS, ToolResult};
use quire_core::effect::Effect;
use quire_core::event::{Event, ModelAsked, Start, TaskEquipped};
use quire_core::ids::{CallId, Hash, HostCallId, RecordId, SessionId, TaskId, Timestamp};
use quire_core::journal::{self, Damage, Record};
use quire_core::message::{Failure, FailureKind, Message, OfferedTool, Prompt, Reply};
use quire_core::session::{Asker as CoreAsker, Refusal, Session};
use tokio::sync::{Notify, broadcast};

use crate::ports::{
    Answered, Append, Asker, Chance, Clock, Delta, Lease, ModelError, ModelProvider, ModelRequest, Models, RuntimeContext, Store,
    StoreError, Summary, Ticket, ToolHost, Toolbox,
};
use crate::retry::RetryPolicy;
use crate::tokens::O200k;
use crate::watch::Watched;

/// How long an owner at work goes without looking into the inbox for what other processes post.
const INBOX_PAUSE: Duration = Duration::from_millis(50);

/// Everything a driver needs from the outside.
#[derive(Clone)]
pub struct Ports {
    /// Where journals lie.
    pub store: Arc<dyn Store>,
    /// Who answers.
    pub models: Arc<dyn Models>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What draws follow from.
    pub chance: Arc<dyn Chance>,
    /// How often a failed attempt is made again.
    pub retry: RetryPolicy,
    /// What deep tasks work with.
    pub tools: Arc<dyn ToolHost>,
    /// What a deep task may use.
    pub task_caps: Caps,
}

/// A session as it stands, and its place in the journal.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The session at its head.
    pub session: Session,
    /// The head: the record it stands at.
    pub head: RecordId,
    /// The head's hash, which the next record covers.
    head_hash: Hash,
    /// The newest record of any branch.
    newest: RecordId,
    /// When it began.
    started: Timestamp,
}

/// Reads a session. What is damaged ends its path; the session is then in `error` and can only be looked at.
pub async fn open(store: &dyn Store, id: &SessionId) -> Result<Opened, StoreError> {
    let (path, damage, newest) = read(store, id).await?;
    let mut session = Session::replay(id.clone(), &path);
    if let Some(damage) = damage {
        session.close(&damage);
    }
    let head = path.last().map(|record| record.id).unwrap_or_default();
    let head_hash = path.last().map_or_else(|| Hash::of(""), |record| record.hash.clone());
    let started = path.first().map(|record| record.time).unwrap_or_default();
    Ok(Opened { session, head, head_hash, newest, started })
}

/// Reads what has happened, from the root to the head, and what ends it early.
pub async fn history(store: &dyn Store, id: &SessionId) -> Result<(Vec<Record>, Option<Damage>), StoreError> {
    let (path, damage, _) = read(store, id).await?;
    Ok((path, damage))
}

async fn read(store: &dyn Store, id: &SessionId) -> Result<(Vec<Record>, Option<Damage>, RecordId), StoreError> {
    let stored = store.load(id).await?;
    let (path, damage) = journal::read_path(id, &stored.records, &stored.texts, stored.head);
    let newest = stored.records.last().map(|record| record.id).unwrap_or_default();
    Ok((path, damage, newest))
}

/// Why a session could not be started.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StartError {
    /// The core does not begin with this.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Begins a session and gives it up again: it waits for its user.
pub async fn start(ports: &Ports, id: &SessionId, start: Start) -> Result<(), StartError> {
    let now = ports.clock.now();
    let event = Event::Started(start);
    let mut session = Session::new(id.clone());
    session.handle(now, event.clone())?;
    let (record, texts) = journal::encode(id, None, RecordId(1), now, &event);
    let summary = summary(&session, now, now);
    let lease = ports.store.create(id, Append { record, texts, summary, answers: None }).await?;
    ports.store.release(&lease).await?;
    Ok(())
}

/// How a drive ended.
#[derive(Debug)]
pub enum Drive {
    /// Nothing is owed and nothing lies in the inbox; the session as it stands then.
    Quiet(Box<Opened>),
    /// Another process has the session.
    Elsewhere,
}

/// What somebody drives a session for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errand {
    /// To have posted actions answered. What a stopped process left is gone on with only if one of them is heard: a
    /// refused action must not set models to work.
    Answer,
    /// To go on with whatever is owed.
    GoOn,
}

/// Drives a session until nothing is owed: takes what lies in the inbox, carries out effects, brings their outcome back.
///
/// `known` is the session as it stood when it was last let go; it is read again where somebody has written since. `nudge`
/// says that something was posted; posts of other processes are found by looking from time to time.
pub async fn drive(
    ports: &Ports,
    id: &SessionId,
    known: Option<Opened>,
    errand: Errand,
    nudge: &Notify,
    watch: &broadcast::Sender<Watched>,
) -> Result<Drive, StoreError> {
    let Some(lease) = ports.store.claim(id).await? else { return Ok(Drive::Elsewhere) };
    let driven = async {
        let opened = match known {
            Some(known) if known.is_present(ports.store.as_ref()).await? => known,
            Some(_) | None => open(ports.store.as_ref(), id).await?,
        };
        let mut driver = Driver { ports, watch, lease: &lease, opened, flights: BTreeMap::new() };
        driver.run(errand, nudge).await?;
        Ok(driver.opened)
    };
    match driven.await {
        Ok(opened) => {
            ports.store.release(&lease).await?;
            Ok(Drive::Quiet(Box::new(opened)))
        }
        Err(StoreError::Fenced(_)) => Ok(Drive::Elsewhere),
        Err(error) => {
            // What the store cannot write it may not be able to release either; a later claim replaces this one.
            ports.store.release(&lease).await.ok();
            Err(error)
        }
    }
}

impl Opened {
    /// Says whether the journal has not grown since.
    pub(crate) async fn is_present(&self, store: &dyn Store) -> Result<bool, StoreError> {
        Ok(store.newest(self.session.id()).await? == self.newest)
    }
}

struct Driver<'a> {
    ports: &'a Ports,
    watch: &'a broadcast::Sender<Watched>,
    lease: &'a Lease,
    opened: Opened,
    flights: BTreeMap<FlightKey, Flight>,
}

/// The effect a flight carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FlightKey {
    Model(CallId),
    Tool(TaskId, HostCallId),
    Tools(TaskId),
}

/// Something under way, or the pause before its next attempt.
struct Flight {
    attempt: u32,
    partial: Arc<Mutex<String>>,
    arrival: Pin<Box<dyn Future<Output = Arrival> + Send>>,
}

enum Arrival {
    Reply(Result<Reply, ModelError>),
    PauseOver,
    Result(ToolResult),
    Tools(Toolbox),
    Overdue(TaskId),
}

impl FlightKey {
    /// Returns the key of the flight that an effect needs; none where it is done at once.
    fn of(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::AskModel { call } => Some(Self::Model(*call)),
            Effect::CallTool { task, call } => Some(Self::Tool(*task, *call)),
            Effect::EquipTask { task } => Some(Self::Tools(*task)),
            Effect::Draw | Effect::CancelModel { .. } => None,
        }
    }
}

impl Driver<'_> {
    async fn run(&mut self, errand: Errand, nudge: &Notify) -> Result<(), StoreError> {
        let head_before = self.opened.head;
        loop {
            self.take_inbox().await?;
            if errand == Errand::GoOn || self.opened.head != head_before {
                self.carry_out_what_is_owed().await?;
            }
            if self.flights.is_empty() {
                if self.ports.store.inbox(&self.lease.session).await?.is_empty() {
                    return Ok(());
                }
                continue;
            }
            tokio::select! {
                (key, arrival) = first_arrival(&mut self.flights) => self.arrived(key, arrival).await?,
                () = nudge.notified() => {}
                () = tokio::time::sleep(INBOX_PAUSE) => {}
            }
        }
    }

    /// Starts what the session owes and is not under way, and drops what it does not owe any more.
    async fn carry_out_what_is_owed(&mut self) -> Result<(), StoreError> {
        loop {
            let owed = self.opened.session.open_effects();
            self.flights.retain(|key, _| owed.iter().any(|effect| FlightKey::of(effect) == Some(*key)));
            let Some(effect) = self.first_on_the_ground(owed) else { return Ok(()) };
            self.carry_out(effect).await?;
        }
    }

    /// Returns the first effect that nothing under way carries out.
    fn first_on_the_ground(&self, owed: Vec<Effect>) -> Option<Effect> {
        owed.into_iter().find(|effect| FlightKey::of(effect).is_none_or(|key| !self.flights.contains_key(&key)))
    }

    async fn take_inbox(&mut self) -> Result<(), StoreError> {
        for (ticket, action) in self.ports.store.inbox(&self.lease.session).await? {
            self.hear(Event::User(action), Some(ticket)).await?;
        }
        Ok(())
    }

    /// Hears an event, writes it, and carries out what follows; what is refused is answered and changes nothing.
    async fn hear(&mut self, event: Event, ticket: Option<Ticket>) -> Result<(), StoreError> {
        let now = self.ports.clock.now();
        match (self.opened.session.handle(now, event.clone()), ticket) {
            (Ok(effects), ticket) => {
                self.append(now, event, ticket).await?;
                for effect in effects {
                    Box::pin(self.carry_out(effect)).await?;
                }
                Ok(())
            }
            (Err(refusal), Some(ticket)) => {
                self.ports.store.refuse(self.lease, ticket, Answered::Refused { refusal }).await?;
                self.tell(Watched::Refused { session: self.lease.session.clone() });
                Ok(())
            }
            (Err(refusal), None) => unreachable!("the driver's own event is refused: {refusal}"),
        }
    }

    async fn append(&mut self, now: Timestamp, event: Event, ticket: Option<Ticket>) -> Result<(), StoreError> {
        let Opened { session, head, head_hash, newest, started } = &mut self.opened;
        let id = RecordId(newest.0 + 1);
        let (record, texts) = journal::encode(session.id(), Some((*head, head_hash)), id, now, &event);
        let hash = record.hash.clone();
        let summary = summary(session, *started, now);
        let answers = ticket.map(|ticket| (ticket, Answered::Heard { record: id }));
        self.ports.store.append(self.lease, Append { record, texts, summary, answers }).await?;
        (*head, *head_hash, *newest) = (id, hash, id);
        self.tell(Watched::Recorded { session: self.lease.session.clone(), record: id, event: Arc::new(event) });
        Ok(())
    }

    async fn carry_out(&mut self, effect: Effect) -> Result<(), StoreError> {
        match effect {
            Effect::AskModel { call } => self.ask(call).await,
            Effect::Draw => self.hear(Event::Drawn { seed: self.ports.chance.seed() }, None).await,
            Effect::CancelModel { call } => self.cancel(call).await,
            Effect::EquipTask { task } => {
                self.look_up_tools(task);
                Ok(())
            }
            Effect::CallTool { task, call } => self.call_tool(task, call).await,
        }
    }

    /// Sends the call's next attempt, once it is journaled.
    async fn ask(&mut self, call: CallId) -> Result<(), StoreError> {
        let profile = match self.opened.session.task_asking(call) {
            Some(_) => self.opened.session.profile().to_owned(),
            None => self.opened.session.profile_in_use().to_owned(),
        };
        let provider = match self.ports.models.provider(&profile) {
            Ok(provider) => provider,
            Err(failure) => return self.give_up(call, failure, String::new()).await,
        };
        let wanted = match self.wanted(call, provider.prompt_tokens_max()) {
            Ok(wanted) => wanted,
            Err(message) => {
                return self.give_up(call, Failure { kind: FailureKind::NoRoom, message }, String::new()).await;
            }
        };
        let Wanted { messages, tools, output_tags, prefix, fixed, trace, attempt, asker, answered_before, time_left } = wanted;
        let task = match asker {
            Asker::Task { task } => Some(task),
            Asker::Agent | Asker::Worker { .. } => None,
        };
        let asked = ModelAsked {
            call,
            attempt,
            profile,
            model: provider.model().to_owned(),
            budget_tokens: provider.prompt_tokens_max(),
            tokenizer: O200k::NAME.to_owned(),
            assembly: ASSEMBLY,
            fixed,
            prompt: prompt_hash(&messages, &tools),
            prefix,
            trace,
            task,
        };
        self.hear(Event::ModelAsked(asked), None).await?;
        let round = self.round(&asker);
        let session = self.lease.session.clone();
        self.tell(Watched::Asked { session: session.clone(), call, attempt, asker: asker.clone(), round });
        let request = ModelRequest { session, call, asker, answered_before, messages, tools, output_tags };
        let partial = Arc::new(Mutex::new(String::new()));
        let arrival = attempt_of(provider, request, attempt, partial.clone(), self.watch.clone());
        let arrival = match task {
            Some(task) => within(time_left, arrival, task),
            None => arrival,
        };
        self.flights.insert(FlightKey::Model(call), Flight { attempt, partial, arrival });
        Ok(())
    }

    /// Says what a call wants asked, or why its prompt has no room.
    fn wanted(&self, call: CallId, budget_tokens: u32) -> Result<Wanted, String> {
        let session = &self.opened.session;
        if let Some(task) = session.task_asking(call) {
            let (messages, tools) = task.prompt();
            let tokens = messages.iter().map(message_tokens).sum::<u32>();
            if tokens > budget_tokens {
                return Err(format!(
                    "deep task {} has gathered {tokens} tokens, and the model takes {budget_tokens}; choose a model with more room, or a narrower task",
                    task.id
                ));
            }
            let attempts = task.asking().map_or(0, |asking| asking.attempts);
            return Ok(Wanted {
                prefix: Hash::of(messages.first().map(Message::text).unwrap_or_default()),
                fixed: vec![INSTRUCTIONS.into()],
                messages,
                tools,
                output_tags: vec![],
                trace: None,
                attempt: attempts + 1,
                asker: Asker::Task { task: task.id },
                answered_before: task.answered,
                time_left: task.time_left_ms().map(Duration::from_millis),
            });
        }
        let (prompt, trace) = session.prompt(budget_tokens, &O200k).map_err(|error| error.to_string())?;
        let Prompt { messages, tools, prefix, fixed } = prompt;
        let running = session.phase().asking().expect("a call under way");
        let asker = match running.asker {
            CoreAsker::Agent => Asker::Agent,
            CoreAsker::Worker(run) => {
                let run = session.run(run);
                Asker::Worker { skill: run.skill.clone(), role: run.role.as_ref().map(ToString::to_string) }
            }
        };
        Ok(Wanted {
            messages,
            tools: tools.into_iter().map(OfferedTool::from).collect(),
            output_tags: self.output_tags(running.asker),
            prefix,
            fixed,
            trace,
            attempt: running.attempts + 1,
            asker,
            answered_before: session.answered(running.asker),
            time_left: None,
        })
    }

    /// Returns how many rounds the asker has used, this one too.
    fn round(&self, asker: &Asker) -> u32 {
        let session = &self.opened.session;
        match asker {
            Asker::Task { task } => session.task(*task).map_or(0, |task| task.rounds),
            Asker::Agent => session.burst().used,
            Asker::Worker { .. } => match session.phase().asking().map(|asking| asking.asker) {
                Some(CoreAsker::Worker(run)) => session.run(run).rounds,
                Some(CoreAsker::Agent) | None => 0,
            },
        }
    }

    fn look_up_tools(&mut self, task: TaskId) {
        let host = self.ports.tools.clone();
        let arrival = Box::pin(async move { Arrival::Tools(host.tools(RuntimeContext::Background).await) });
        self.flights.insert(FlightKey::Tools(task), Flight { attempt: 1, partial: Arc::default(), arrival });
    }

    /// Calls a tool, once the attempt is journaled; where an earlier one is lost and may have acted, says so instead.
    async fn call_tool(&mut self, task: TaskId, call: HostCallId) -> Result<(), StoreError> {
        let deep_task = self.opened.session.task(task).expect("only a task owes a call");
        let calling = deep_task.calling().expect("a call is owed while it is made").clone();
        if calling.is_lost() {
            return self.hear(Event::ToolLost { task, call }, None).await;
        }
        let time_left = deep_task.time_left_ms().map(Duration::from_millis);
        let attempt = calling.attempts + 1;
        self.hear(Event::ToolAsked { task, call, attempt }, None).await?;
        let host = self.ports.tools.clone();
        let arrival = Box::pin(async move { Arrival::Result(host.call(&calling.tool, &calling.arguments).await) });
        let arrival = within(time_left, arrival, task);
        self.flights.insert(FlightKey::Tool(task, call), Flight { attempt, partial: Arc::default(), arrival });
        Ok(())
    }

    async fn arrived(&mut self, key: FlightKey, arrival: Arrival) -> Result<(), StoreError> {
        if let Arrival::Overdue(task) = arrival {
            // The flight stays until it is cancelled: what has come of a reply is kept.
            return self.hear(Event::TaskOverdue { task }, None).await;
        }
        let flight = self.flights.remove(&key).expect("something arrived from it");
        match (key, arrival) {
            (FlightKey::Model(call), Arrival::PauseOver) => self.ask(call).await,
            (FlightKey::Model(call), Arrival::Reply(Ok(reply))) => self.hear(Event::ModelReplied { call, reply }, None).await,
            (FlightKey::Model(call), Arrival::Reply(Err(error))) => self.failed(call, flight, error).await,
            (FlightKey::Tool(task, call), Arrival::Result(result)) => {
                self.hear(Event::ToolAnswered { task, call, result }, None).await
            }
            (FlightKey::Tools(task), Arrival::Tools(Toolbox { tools, faults })) => {
                let caps = self.ports.task_caps;
                self.hear(Event::TaskEquipped(TaskEquipped { task, caps, tools, faults }), None).await
            }
            (FlightKey::Model(_) | FlightKey::Tool(..) | FlightKey::Tools(_), _) => {
                unreachable!("each kind of flight has arrivals of its own")
            }
        }
    }

    /// The tags the asker must hand in; none where a pattern leaves it open.
    fn output_tags(&self, asker: CoreAsker) -> Vec<String> {
        let CoreAsker::Worker(run) = asker else { return vec![] };
        let run = self.opened.session.run(run);
        let skill = self.opened.session.pack().and_then(|pack| pack.skill(run.skill.as_str()));
        let patterns = skill.map(|skill| skill.outputs_for(run.role.as_ref())).unwrap_or_default();
        let tags: Option<Vec<String>> = patterns.iter().map(|pattern| Some(pattern.as_tag()?.as_str().to_owned())).collect();
        tags.unwrap_or_default()
    }

    async fn failed(&mut self, call: CallId, flight: Flight, error: ModelError) -> Result<(), StoreError> {
        let salt = self.ports.clock.now().0.unsigned_abs() ^ call.0;
        let pause = self.ports.retry.pause_after(flight.attempt, error.retry_after, salt).filter(|_| error.may_retry);
        let Some(pause) = pause else {
            return self.give_up(call, error.failure, take_partial(&flight)).await;
        };
        let session = self.lease.session.clone();
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self.tell(Watched::Retrying { session, message: error.failure.message, pause_ms });
        let arrival = Box::pin(async move {
            tokio::time::sleep(pause).await;
            Arrival::PauseOver
        });
        self.flights.insert(FlightKey::Model(call), Flight { arrival, ..flight });
        Ok(())
    }

    async fn give_up(&mut self, call: CallId, failure: Failure, partial: String) -> Result<(), StoreError> {
        Box::pin(self.hear(Event::ModelFailed { call, failure, partial: partial.into() }, None)).await
    }

    /// Breaks the request off by dropping it; what had come is kept.
    async fn cancel(&mut self, call: CallId) -> Result<(), StoreError> {
        let Some(flight) = self.flights.remove(&FlightKey::Model(call)) else { return Ok(()) };
        let text = take_partial(&flight);
        drop(flight);
        let event = Event::ModelIgnored { call, text: text.into(), cause: "stopped by you".to_owned() };
        self.hear(event, None).await
    }

    fn tell(&self, watched: Watched) {
        // Nobody may be watching.
        self.watch.send(watched).ok();
    }
}

/// What is asked of a model.
struct Wanted {
    messages: Vec<Message>,
    tools: Vec<OfferedTool>,
    output_tags: Vec<String>,
    prefix: Hash,
    fixed: Vec<Arc<str>>,
    trace: Option<Trace>,
    attempt: u32,
    asker: Asker,
    answered_before: u64,
    /// How long a deep task may still work.
    time_left: Option<Duration>,
}

/// Waits for the first flight that arrives.
async fn first_arrival(flights: &mut BTreeMap<FlightKey, Flight>) -> (FlightKey, Arrival) {
    let arrivals = flights.iter_mut().map(|(key, flight)| {
        let (key, arrival) = (*key, &mut flight.arrival);
        Box::pin(async move { (key, arrival.await) })
    });
    future::select_all(arrivals).await.0
}

/// Lets a deep task's flight last no longer than the task may.
fn within(
    time_left: Option<Duration>,
    arrival: Pin<Box<dyn Future<Output = Arrival> + Send>>,
    task: TaskId,
) -> Pin<Box<dyn Future<Output = Arrival> + Send>> {
    let Some(time_left) = time_left else { return arrival };
    Box::pin(async move { tokio::time::timeout(time_left, arrival).await.unwrap_or(Arrival::Overdue(task)) })
}

fn message_tokens(message: &Message) -> u32 {
    let calls = message.calls().iter().map(|call| O200k.count(&call.arguments)).sum::<u32>();
    O200k.count(message.text()) + calls
}

fn take_partial(flight: &Flight) -> String {
    std::mem::take(&mut flight.partial.lock().unwrap_or_else(PoisonError::into_inner))
}

fn attempt_of(
    provider: Arc<dyn ModelProvider>,
    request: ModelRequest,
    attempt: u32,
    partial: Arc<Mutex<String>>,
    watch: broadcast::Sender<Watched>,
) -> Pin<Box<dyn Future<Output = Arrival> + Send>> {
    Box::pin(async move {
        let (session, call) = (request.session.clone(), request.call);
        let pass_on = move |delta: Delta| {
            if let Delta::Text(text) | Delta::Arguments { text, .. } = &delta {
                partial.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
            }
            watch.send(Watched::Streamed { session: session.clone(), call, attempt, delta }).ok();
        };
        Arrival::Reply(provider.ask(&request, &pass_on).await)
    })
}

fn prompt_hash(messages: &[Message], tools: &[OfferedTool]) -> Hash {
    let messages = serde_json::to_string(messages).expect("messages are plain data");
    let tools: String = tools.iter().map(|tool| format!("{}\n{}\n", tool.name, tool.parameters)).collect();
    Hash::of(format!("{messages}\n{tools}"))
}

fn summary(session: &Session, started: Timestamp, changed: Timestamp) -> Summary {
    Summary {
        session: session.id().clone(),
        title: session.title().to_owned(),
        pack: session.pack().map(|pack| pack.name.clone()).unwrap_or_default(),
        phase: session.phase().as_str().to_owned(),
        reason: session.phase().waiting().map(|waiting| waiting.as_str().to_owned()).unwrap_or_default(),
        stage: session.stage().as_str().to_owned(),
        started,
        changed,
    }
}

/// Says whether a session's models are at work.
pub fn is_running(summary: &Summary) -> bool {
    summary.phase == "running"
}
