//! Drives one session: hears an event, has it written, and only then carries out what follows.
//!
//! After a crash the session is the fold of its journal, and what is owed is asked again with one attempt more: recovery is
//! the normal path. When a write fails, the session in memory is ahead of the disk; it is dropped and read again.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quire_core::context::ASSEMBLY;
use quire_core::effect::Effect;
use quire_core::event::{Event, ModelAsked, Start};
use quire_core::ids::{CallId, Hash, RecordId, SessionId, Timestamp};
use quire_core::journal::{self, Damage, Record};
use quire_core::message::{Failure, FailureKind, Prompt, Reply};
use quire_core::session::{Asker as CoreAsker, Refusal, Session};
use tokio::sync::{Notify, broadcast};

use crate::ports::{
    Answered, Append, Asker, Chance, Clock, Delta, Lease, ModelError, ModelProvider, ModelRequest, Models, Store, StoreError,
    Summary, Ticket,
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
        let mut driver = Driver { ports, watch, lease: &lease, opened, flight: None };
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
    flight: Option<Flight>,
}

/// The one request under way, or the pause before its next attempt.
struct Flight {
    call: CallId,
    attempt: u32,
    partial: Arc<Mutex<String>>,
    arrival: Pin<Box<dyn Future<Output = Arrival> + Send>>,
}

enum Arrival {
    Reply(Result<Reply, ModelError>),
    PauseOver,
}

impl Driver<'_> {
    async fn run(&mut self, errand: Errand, nudge: &Notify) -> Result<(), StoreError> {
        let head_before = self.opened.head;
        loop {
            self.take_inbox().await?;
            let goes_on = errand == Errand::GoOn || self.opened.head != head_before;
            if self.flight.is_none() && goes_on {
                for effect in self.opened.session.open_effects() {
                    self.carry_out(effect).await?;
                }
            }
            let Some(flight) = &mut self.flight else {
                if self.ports.store.inbox(&self.lease.session).await?.is_empty() {
                    return Ok(());
                }
                continue;
            };
            tokio::select! {
                arrival = &mut flight.arrival => self.arrived(arrival).await?,
                () = nudge.notified() => {}
                () = tokio::time::sleep(INBOX_PAUSE) => {}
            }
        }
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
        }
    }

    /// Sends the call's next attempt, once it is journaled.
    async fn ask(&mut self, call: CallId) -> Result<(), StoreError> {
        let profile = self.opened.session.profile_in_use().to_owned();
        let provider = match self.ports.models.provider(&profile) {
            Ok(provider) => provider,
            Err(failure) => return self.give_up(call, failure, String::new()).await,
        };
        let budget_tokens = provider.prompt_tokens_max();
        let (prompt, trace) = match self.opened.session.prompt(budget_tokens, &O200k) {
            Ok(built) => built,
            Err(error) => {
                let failure = Failure { kind: FailureKind::NoRoom, message: error.to_string() };
                return self.give_up(call, failure, String::new()).await;
            }
        };
        let running = self.opened.session.phase().asking().expect("a call under way").clone();
        let attempt = running.attempts + 1;
        let asked = ModelAsked {
            call,
            attempt,
            profile,
            model: provider.model().to_owned(),
            budget_tokens,
            tokenizer: O200k::NAME.to_owned(),
            assembly: ASSEMBLY,
            fixed: prompt.fixed.clone(),
            prompt: prompt_hash(&prompt),
            prefix: prompt.prefix.clone(),
            trace,
        };
        self.hear(Event::ModelAsked(asked), None).await?;
        let (asker, round) = self.describe(running.asker);
        let answered_before = self.opened.session.answered(running.asker);
        let session = self.lease.session.clone();
        self.tell(Watched::Asked { session: session.clone(), call, attempt, asker: asker.clone(), round });
        let output_tags = self.output_tags(running.asker);
        let (messages, tools) = (prompt.messages, prompt.tools);
        let request = ModelRequest { session, call, asker, answered_before, messages, tools, output_tags };
        let partial = Arc::new(Mutex::new(String::new()));
        let arrival = attempt_of(provider, request, attempt, partial.clone(), self.watch.clone());
        self.flight = Some(Flight { call, attempt, partial, arrival });
        Ok(())
    }

    fn describe(&self, asker: CoreAsker) -> (Asker, u32) {
        match asker {
            CoreAsker::Agent => (Asker::Agent, self.opened.session.burst().used),
            CoreAsker::Worker(run) => {
                let run = self.opened.session.run(run);
                let role = run.role.as_ref().map(ToString::to_string);
                (Asker::Worker { skill: run.skill.clone(), role }, run.rounds)
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

    async fn arrived(&mut self, arrival: Arrival) -> Result<(), StoreError> {
        let flight = self.flight.take().expect("something arrived from it");
        match arrival {
            Arrival::PauseOver => self.ask(flight.call).await,
            Arrival::Reply(Ok(reply)) => Box::pin(self.hear(Event::ModelReplied { call: flight.call, reply }, None)).await,
            Arrival::Reply(Err(error)) => self.failed(flight, error).await,
        }
    }

    async fn failed(&mut self, flight: Flight, error: ModelError) -> Result<(), StoreError> {
        let salt = self.ports.clock.now().0.unsigned_abs() ^ flight.call.0;
        let pause = self.ports.retry.pause_after(flight.attempt, error.retry_after, salt).filter(|_| error.may_retry);
        let Some(pause) = pause else {
            return self.give_up(flight.call, error.failure, take_partial(&flight)).await;
        };
        let session = self.lease.session.clone();
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self.tell(Watched::Retrying { session, message: error.failure.message, pause_ms });
        let arrival = Box::pin(async move {
            tokio::time::sleep(pause).await;
            Arrival::PauseOver
        });
        self.flight = Some(Flight { arrival, ..flight });
        Ok(())
    }

    async fn give_up(&mut self, call: CallId, failure: Failure, partial: String) -> Result<(), StoreError> {
        Box::pin(self.hear(Event::ModelFailed { call, failure, partial: partial.into() }, None)).await
    }

    /// Breaks the request off by dropping it; what had come is kept.
    async fn cancel(&mut self, call: CallId) -> Result<(), StoreError> {
        let Some(flight) = self.flight.take_if(|flight| flight.call == call) else { return Ok(()) };
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

fn prompt_hash(prompt: &Prompt) -> Hash {
    let messages = serde_json::to_string(&prompt.messages).expect("messages are plain data");
    let tools: String = prompt.tools.iter().map(|tool| format!("{}\n{}\n", tool.name, tool.parameters)).collect();
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
