//! A writing session as a value: the one place where decisions meet.
//!
//! [`Session::handle`] takes one thing that happened and says what must be done, or why it is refused; a refused event
//! leaves the session as it was. What is owed follows from the state alone ([`Session::open_effects`]), so a session read
//! again from its journal goes on where it was.
//!
//! The rules stand in the files below: who may act in `phase`, what the user does in `user`, the main agent's loop in
//! `agent`, draws in `chance`, the workers' runs in `worker`, what becomes of artifacts in `review`, the step from design to play in `stage`,
//! deep tasks beside all that in `task`, and what of the book they may read in `grant`.
//! No IO, no clock: `now` comes in, effects go out.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::blackboard::{Blackboard, ItemState, NewItem, Source};
use crate::context::{ContextError, TokenCount, Trace};
use crate::deep_task::DeepTask;
use crate::effect::Effect;
use crate::event::{Budget, Event, ModelAsked, PackOffer, Start};
use crate::ids::{ArtifactId, CallId, CardId, DecisionId, Hash, ItemNumber, Revision, RunId, SessionId, SkillId, Timestamp};
use crate::journal::{Damage, Record};
use crate::message::{Failure, Finish, Prompt, Reply, Usage};
use crate::pack::{self, Pack, PackFiles};
use crate::question::{Card, Question};
use crate::tag::{RoleId, Tag};

mod agent;
mod chance;
mod grant;
mod phase;
mod review;
mod stage;
mod task;
mod tools;
mod user;
mod worker;

pub use agent::LogLine;
pub use phase::{Asker, Asking, Burst, Cause, CauseKind, Decision, Phase, Running, Stage, Verb, Waiting};
pub use review::Work;
pub use task::{TASKS_RUNNING_MAX, result_tag};
pub use worker::{Run, RunState};

use agent::Agent;
use user::Intake;

/// The tag of the user's latest words.
const LATEST_INPUT: &str = "用户.最新输入";

/// One durable run of a pack.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    id: SessionId,
    revision: Revision,
    title: String,
    profile: String,
    offer: Vec<PackOffer>,
    /// Every pack this session has had, by hash: an old run's prompt is built from its own.
    packs: BTreeMap<Hash, Arc<Pack>>,
    pack: Option<Arc<Pack>>,
    stage: Stage,
    phase: Phase,
    burst: Burst,
    burst_max_by_user: Option<u32>,
    budget: Budget,
    spent: Spent,
    turn: u32,
    /// The last turn whose draws are made.
    drawn_turn: u32,
    intake: Intake,
    board: Blackboard,
    artifacts: Vec<Artifact>,
    runs: Vec<Run>,
    works: BTreeMap<(SkillId, Option<RoleId>), Work>,
    agent: Agent,
    instance: Option<stage::Instance>,
    revealed: bool,
    incomplete: Vec<Incomplete>,
    calls: CallId,
    cards: CardId,
    decisions: DecisionId,
    answered: BTreeMap<Asker, u64>,
    tasks: Vec<DeepTask>,
}

/// What a session has spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Spent {
    /// Model rounds.
    pub rounds: u64,
    /// Tokens and money, of finished replies.
    #[serde(flatten)]
    pub usage: Usage,
    /// Milliseconds from request to reply.
    pub time_ms: u64,
}

/// Text of a call that did not finish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Incomplete {
    /// The call.
    pub call: CallId,
    /// What had come.
    pub text: Arc<str>,
    /// Why there is no more.
    pub cause: String,
}

/// Why something was not heard. The session is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What was wrong.
    pub message: String,
    /// What is pending, in words.
    pub pending: String,
    /// The names of the actions that would be heard.
    pub heard: Vec<String>,
}

impl Session {
    /// Makes a session to which nothing has happened yet.
    pub fn new(id: SessionId) -> Self {
        Self {
            id,
            revision: Revision(0),
            title: String::new(),
            profile: String::new(),
            offer: vec![],
            packs: BTreeMap::new(),
            pack: None,
            stage: Stage::Design,
            phase: Phase::Idle,
            burst: Burst { used: 0, max: Burst::MAX_DEFAULT },
            burst_max_by_user: None,
            budget: Budget::default(),
            spent: Spent::default(),
            turn: 0,
            drawn_turn: 0,
            intake: Intake::default(),
            board: Blackboard::default(),
            artifacts: vec![],
            runs: vec![],
            works: BTreeMap::new(),
            agent: Agent::default(),
            instance: None,
            revealed: false,
            incomplete: vec![],
            calls: CallId(0),
            cards: CardId(0),
            decisions: DecisionId(0),
            answered: BTreeMap::new(),
            tasks: vec![],
        }
    }

    /// Takes one thing that happened and says what must be done, or why it is refused.
    ///
    /// A refused event leaves the session as it was.
    pub fn handle(&mut self, now: Timestamp, event: Event) -> Result<Vec<Effect>, Refusal> {
        let before = self.revision;
        self.revision.take();
        let heard = match event {
            Event::Started(start) => self.started(start),
            Event::User(action) => self.user_did(now, action),
            Event::ModelAsked(asked) => self.model_asked(now, &asked),
            Event::ModelReplied { call, reply } => self.model_replied(now, call, reply),
            Event::ModelFailed { call, failure, partial } => self.model_failed(now, call, &failure, partial),
            Event::Drawn { seed } => self.drawn(now, seed),
            Event::ModelIgnored { call, text, cause } => self.model_ignored(call, text, cause),
            Event::TaskEquipped(equipped) => self.task_equipped(now, equipped),
            Event::ToolAsked { task, call, attempt } => self.tool_asked(now, task, call, attempt),
            Event::ToolAnswered { task, call, result } => self.tool_answered(now, task, call, &result),
            Event::ToolLost { task, call } => self.tool_lost(now, task, call),
            Event::TaskOverdue { task } => self.task_overdue(now, task),
        };
        if heard.is_err() {
            self.revision = before;
        }
        heard
    }

    /// Folds a path of records, from the root. A record that is not heard again ends it: the session is then in `error`.
    pub fn replay(id: SessionId, records: &[Record]) -> Self {
        let mut session = Self::new(id);
        for record in records {
            if let Err(refusal) = session.handle(record.time, record.event.clone()) {
                session.close(&Damage::Refused { record: record.id, refusal: refusal.message });
                break;
            }
        }
        session
    }

    /// Takes note that the journal cannot be read any further: the session can be looked at, and nothing else.
    pub fn close(&mut self, damage: &Damage) {
        self.phase = Phase::Error { reason: damage.to_string() };
    }

    /// Says what is owed: the same after a restart as before.
    pub fn open_effects(&self) -> Vec<Effect> {
        if let Phase::Error { .. } = self.phase {
            return vec![];
        }
        let own = self.phase.running().map(Running::owes);
        own.into_iter().chain(self.tasks.iter().filter_map(DeepTask::owes)).collect()
    }

    fn started(&mut self, start: Start) -> Heard {
        if self.phase != Phase::Idle {
            return Err(self.refuse("the session has begun already"));
        }
        let pack = start.pack.as_ref().map(|files| self.usable(files)).transpose()?;
        self.title = start.title;
        self.profile = start.profile;
        self.offer = start.offer;
        self.budget = start.budget;
        self.burst_max_by_user = start.burst_max;
        match pack {
            Some(pack) => self.begin(pack),
            None => self.wait(Waiting::SkillSelection),
        }
        Ok(vec![])
    }

    fn usable(&self, files: &PackFiles) -> Result<Arc<Pack>, Refusal> {
        let (pack, diagnostics) = pack::read(files);
        let errors: Vec<String> = (diagnostics.iter())
            .filter(|found| found.severity == crate::diagnostic::Severity::Error)
            .map(ToString::to_string)
            .collect();
        pack.map(Arc::new).ok_or_else(|| self.refuse(format!("the pack cannot be used: {}", errors.join("; "))))
    }

    fn begin(&mut self, pack: Arc<Pack>) {
        self.stage = if pack.has_design() { Stage::Design } else { Stage::Play };
        let startup = pack.startup.clone();
        self.hold(pack);
        if startup.asks_first {
            self.intake = Intake::new(startup.fields);
            self.wait(Waiting::Intake);
        } else {
            let message = Some(startup.prompt.as_str().into()).filter(|_| !startup.prompt.is_empty());
            self.wait(Waiting::Input { message, cause: None, card: None });
        }
    }

    fn hold(&mut self, pack: Arc<Pack>) {
        self.burst.max = self.burst_max_by_user.or(pack.burst_max).unwrap_or(Burst::MAX_DEFAULT);
        self.packs.insert(pack.hash.clone(), pack.clone());
        self.pack = Some(pack);
    }

    fn model_asked(&mut self, now: Timestamp, asked: &ModelAsked) -> Heard {
        if let Some(task) = self.task_asking(asked.call).map(|task| task.id) {
            return self.task_asked(now, task, asked);
        }
        let Some(running) = self.awaited(asked.call) else {
            return Err(self.refuse(format!("nobody waits for call {}", asked.call)));
        };
        let asker = running.asker;
        if asked.attempt != running.attempts + 1 {
            return Err(self.refuse(format!("attempt {} does not follow attempt {}", asked.attempt, running.attempts)));
        }
        if asked.attempt == 1 {
            self.spent.rounds += 1;
            match asker {
                Asker::Agent => self.burst.used += 1,
                Asker::Worker(run) => self.run_mut(run).round_asked(asked),
            }
        }
        let Phase::Running(Running::Asking(running)) = &mut self.phase else { unreachable!("the call was awaited") };
        running.attempts = asked.attempt;
        running.asked.get_or_insert(now);
        Ok(vec![])
    }

    fn model_replied(&mut self, now: Timestamp, call: CallId, reply: Reply) -> Heard {
        if let Some(task) = self.task_asking(call).map(|task| task.id) {
            return self.task_replied(now, task, reply);
        }
        if self.awaited(call).is_some_and(|running| running.attempts == 0) {
            return Err(self.refuse(format!("call {call} was never asked")));
        }
        let asker = self.take_answer(now, call)?;
        self.spent.usage += reply.usage;
        if reply.finish == Finish::ContentFilter {
            let words = if reply.text.is_empty() { "it gave no words".into() } else { reply.text.clone() };
            self.keep_incomplete(call, reply.text, "filtered by the provider");
            let message = format!("the provider's filter stopped the reply: {words}");
            return Ok(self.work_failed(asker, CauseKind::Failed, message));
        }
        Ok(match asker {
            Asker::Agent => self.agent_replied(now, reply),
            Asker::Worker(run) => self.worker_replied(now, run, reply),
        })
    }

    fn model_failed(&mut self, now: Timestamp, call: CallId, failure: &Failure, partial: Arc<str>) -> Heard {
        if let Some(task) = self.task_asking(call).map(|task| task.id) {
            self.keep_incomplete(call, partial, &failure.message);
            return Ok(self.task_failed(now, task, failure));
        }
        let asker = self.take_answer(now, call)?;
        self.keep_incomplete(call, partial, &failure.message);
        Ok(self.work_failed(asker, CauseKind::Failed, failure.message.clone()))
    }

    fn model_ignored(&mut self, call: CallId, text: Arc<str>, cause: String) -> Heard {
        if matches!(self.phase, Phase::Error { .. }) {
            return Err(self.refuse("nothing is written any more"));
        }
        let was_made = (1..=self.calls.0).contains(&call.0);
        if !was_made || self.awaited(call).is_some() || self.task_asking(call).is_some() {
            return Err(self.refuse(format!("call {call} is not over")));
        }
        self.keep_incomplete(call, text, &cause);
        Ok(vec![])
    }

    fn awaited(&self, call: CallId) -> Option<&Asking> {
        self.phase.asking().filter(|running| running.call == call)
    }

    /// Says who waited for `call`, and counts its time. The caller decides what phase follows.
    fn take_answer(&mut self, now: Timestamp, call: CallId) -> Result<Asker, Refusal> {
        let Some(running) = self.awaited(call) else {
            return Err(self.refuse(format!("nobody waits for call {call}")));
        };
        let asker = running.asker;
        *self.answered.entry(asker).or_default() += 1;
        self.count_time(now);
        Ok(asker)
    }

    /// Counts the time of the call under way, which ends now.
    fn count_time(&mut self, now: Timestamp) {
        let asked = self.phase.asking().and_then(|asking| asking.asked);
        self.spent.time_ms += asked.map_or(0, |asked| now.0.saturating_sub(asked.0).max(0) as u64);
    }

    fn keep_incomplete(&mut self, call: CallId, text: Arc<str>, cause: &str) {
        if !text.is_empty() {
            self.incomplete.push(Incomplete { call, text, cause: cause.to_owned() });
        }
    }

    /// Ends what `asker` was at, for the user to decide; nothing is lost.
    fn work_failed(&mut self, asker: Asker, kind: CauseKind, message: impl AsRef<str>) -> Vec<Effect> {
        let cause = Cause { kind, message: message.as_ref().into(), again: asker };
        self.log(format!("{}: {}", kind.as_str(), cause.message));
        match asker {
            Asker::Agent => self.wait(Waiting::Input { message: None, cause: Some(cause), card: None }),
            Asker::Worker(run) => self.run_failed(run, cause),
        }
        vec![]
    }

    /// Lets `asker` have its next round, if the budget allows.
    fn ask(&mut self, asker: Asker) -> Vec<Effect> {
        if let Some(limit) = self.budget_spent() {
            return self.work_failed(asker, CauseKind::BudgetSpent, limit);
        }
        let call = self.calls.take();
        self.phase = Phase::Running(Running::Asking(Asking { call, asker, attempts: 0, asked: None }));
        vec![Effect::AskModel { call }]
    }

    fn budget_spent(&self) -> Option<String> {
        let Budget { rounds, tokens, money_micros, time_ms } = self.budget;
        let Spent { usage, .. } = self.spent;
        let limits = [
            ("rounds", rounds, self.spent.rounds),
            ("tokens", tokens, usage.input_tokens + usage.output_tokens),
            ("millionths of money", money_micros, usage.money_micros),
            ("milliseconds", time_ms, self.spent.time_ms),
        ];
        let (unit, max, used) = limits.into_iter().find(|(_, max, used)| max.is_some_and(|max| *used >= max))?;
        let max = max.unwrap_or_default();
        Some(format!("the budget of {max} {unit} is spent ({used} used); raise it with set_budget, then retry"))
    }

    fn wait(&mut self, waiting: Waiting) {
        self.phase = Phase::WaitingUser(waiting);
    }

    fn card(&mut self, questions: Vec<Question>) -> Option<Card> {
        (!questions.is_empty()).then(|| Card::new(self.cards.take(), questions))
    }

    fn write(
        &mut self,
        now: Timestamp,
        tag: Tag,
        content: Arc<str>,
        source: Source,
        state: ItemState,
        from: &[ItemNumber],
    ) -> ItemNumber {
        let new = NewItem { tag, content, source, state, dependencies: from.to_vec(), turn: self.turn, time: now };
        self.board.write(self.revision, new)
    }

    fn pack_in_use(&self) -> Arc<Pack> {
        self.pack.clone().expect("only a session with a pack gets here")
    }

    fn refuse(&self, message: impl Into<String>) -> Refusal {
        let heard = Verb::ALL.iter().filter(|verb| self.hears(**verb)).map(|verb| verb.as_str().to_owned()).collect();
        Refusal { message: message.into(), pending: self.pending(), heard }
    }

    /// Says whether a user action would be heard now: where the phase hears it, and what it waits for is there.
    ///
    /// What is heard may still be refused for what it says (another artifact, a required answer left open).
    pub fn hears(&self, verb: Verb) -> bool {
        let cause = self.phase.waiting().and_then(Waiting::cause).map(|cause| cause.kind);
        let is_ready = match verb {
            Verb::ConfirmIntake => self.intake.missing().is_empty(),
            Verb::Retry => cause != Some(CauseKind::BudgetSpent) || self.budget_spent().is_none(),
            Verb::SelectPack
            | Verb::SubmitInput
            | Verb::Approve
            | Verb::RejectStep
            | Verb::Accept
            | Verb::Reject
            | Verb::Discard
            | Verb::Answer
            | Verb::Skip
            | Verb::SetBudget
            | Verb::Stop
            | Verb::Finish
            | Verb::EditItem
            | Verb::EditCell
            | Verb::ReleaseCell
            | Verb::UpgradePack
            | Verb::Reveal
            | Verb::StartTask
            | Verb::CancelTask => true,
        };
        self.phase.hears(verb) && is_ready
    }

    /// Says in words what the session is at.
    pub fn pending(&self) -> String {
        match &self.phase {
            Phase::Idle => "the session has not begun".to_owned(),
            Phase::Running(Running::Drawing) => "chance is at work".to_owned(),
            Phase::Running(Running::Asking(asking)) => match asking.asker {
                Asker::Agent => "the main agent is at work".to_owned(),
                Asker::Worker(run) => format!("{} is at work", self.run(run).title()),
            },
            Phase::WaitingUser(waiting) => self.pending_words(waiting),
            Phase::Done => "the session is done".to_owned(),
            Phase::Error { reason } => format!("the session can only be read: {reason}"),
        }
    }

    fn pending_words(&self, waiting: &Waiting) -> String {
        let artifact = |id: ArtifactId| {
            let artifact = self.artifact(id);
            let tags: Vec<&str> = artifact.items.keys().map(Tag::as_str).collect();
            format!("artifact {id} of {} ({})", artifact.skill, tags.join(", "))
        };
        let mut words = match waiting {
            Waiting::SkillSelection => "a pack is to be chosen".to_owned(),
            Waiting::Intake => match self.intake.missing().as_slice() {
                [] => "the intake waits to be confirmed".to_owned(),
                missing => format!("the intake waits for {}", missing.join(", ")),
            },
            Waiting::Input { .. } => "your words are waited for".to_owned(),
            Waiting::ApproveStep(decision) => format!("decision {} waits for approval: run {}", decision.id, decision.skill),
            Waiting::ReviewArtifact { artifact: id, .. } => format!("{} waits for your verdict", artifact(*id)),
            Waiting::WorkerQuestions { run, .. } => format!("{} asks you", self.run(*run).title()),
            Waiting::Revision { artifact: id, .. } => format!("{} waits for an instruction how to mend it", artifact(*id)),
        };
        if let Some(card) = waiting.card() {
            words.push_str(&format!("; card {} is open", card.id));
        }
        if let Some(cause) = waiting.cause() {
            words.push_str(&format!("; {}: {}", cause.kind.as_str(), cause.message));
        }
        words
    }
}

/// What can be looked at.
impl Session {
    /// The session's name.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// How many events it has heard.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Its title; empty where it has none.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The model profile that serves it where the pack names none.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// Its pack, once it has one.
    pub fn pack(&self) -> Option<&Arc<Pack>> {
        self.pack.as_ref()
    }

    /// The packs on offer, for a session that chooses one.
    pub fn offer(&self) -> &[PackOffer] {
        &self.offer
    }

    /// Its stage.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Who may act.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The agent's rounds since the user's last hard event.
    pub fn burst(&self) -> Burst {
        self.burst
    }

    /// What it may spend.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// What it has spent.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// The turn of play; 0 before the first.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// The intake's fields and values.
    pub fn intake(&self) -> &Intake {
        &self.intake
    }

    /// All items.
    pub fn board(&self) -> &Blackboard {
        &self.board
    }

    /// All artifacts, oldest first.
    pub fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    /// One artifact.
    pub fn artifact(&self, id: ArtifactId) -> &Artifact {
        &self.artifacts[id.0 as usize - 1]
    }

    fn artifact_mut(&mut self, id: ArtifactId) -> &mut Artifact {
        &mut self.artifacts[id.0 as usize - 1]
    }

    /// All runs, oldest first.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// One run.
    pub fn run(&self, id: RunId) -> &Run {
        &self.runs[id.0 as usize - 1]
    }

    fn run_mut(&mut self, id: RunId) -> &mut Run {
        &mut self.runs[id.0 as usize - 1]
    }

    /// What is to be mended, by skill and role.
    pub fn work(&self, skill: &SkillId, role: Option<&RoleId>) -> Option<&Work> {
        self.works.get(&(skill.clone(), role.cloned()))
    }

    /// A line for each user action, decision and artifact, oldest first.
    pub fn log_lines(&self) -> &[LogLine] {
        self.agent.lines()
    }

    /// Texts of calls that did not finish, oldest first.
    pub fn incomplete(&self) -> &[Incomplete] {
        &self.incomplete
    }

    /// How many calls were answered so far, by a reply or a failure: the agent's, or those of all runs like this one.
    pub fn answered(&self, asker: Asker) -> u64 {
        let is_like = |other: &Asker| match (asker, *other) {
            (Asker::Agent, Asker::Agent) => true,
            (Asker::Worker(run), Asker::Worker(other)) => {
                let (run, other) = (self.run(run), self.run(other));
                run.skill == other.skill && run.role == other.role
            }
            (Asker::Agent, Asker::Worker(_)) | (Asker::Worker(_), Asker::Agent) => false,
        };
        self.answered.iter().filter(|(other, _)| is_like(other)).map(|(_, count)| count).sum()
    }

    /// Builds the prompt of the call under way, and says how a worker's came about.
    ///
    /// `budget_tokens` is the most it may take.
    ///
    /// # Errors
    /// [`ContextError::NoRoom`] when what must stay does not fit.
    pub fn prompt(&self, budget_tokens: u32, count: &dyn TokenCount) -> Result<(Prompt, Option<Trace>), ContextError> {
        match self.phase.asking().expect("a prompt is built for a call under way").asker {
            Asker::Agent => Ok((self.agent_prompt(budget_tokens, count)?, None)),
            Asker::Worker(run) => self.worker_prompt(run, budget_tokens, count).map(|(prompt, trace)| (prompt, Some(trace))),
        }
    }

    /// Says whether the user may not read `tag` (yet).
    pub fn is_hidden(&self, tag: &Tag) -> bool {
        self.hides_now() && self.pack.as_ref().is_some_and(|pack| pack.hides(tag))
    }

    /// Says whether what the pack hides is still hidden.
    pub fn hides_now(&self) -> bool {
        let is_shown_when_done = self.pack.as_ref().is_some_and(|pack| pack.reveal_when_done);
        let is_shown = self.revealed || (self.stage == Stage::Done && is_shown_when_done);
        !is_shown
    }

    /// Returns the profile of whoever asks in the call under way.
    pub fn profile_in_use(&self) -> &str {
        let asker = self.phase.running().map(Running::asker);
        let Some(Asker::Worker(run)) = asker else { return &self.profile };
        let run = self.run(run);
        let pack = &self.packs[&run.pack];
        let skill = pack.skill(run.skill.as_str()).expect("a run's skill is in its pack");
        pack.profile(skill, run.role.as_ref()).unwrap_or(&self.profile)
    }
}

/// What [`Session::handle`] and its helpers come to.
type Heard = Result<Vec<Effect>, Refusal>;
