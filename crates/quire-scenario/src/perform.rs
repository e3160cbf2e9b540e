//! Performs a scenario on a session, line by line, and tells after each what a person would see.
//!
//! Pure: the clock ticks once a line, tokens are estimated. What is told is a session as text ([`state`]), the same for
//! every performance of the same scenario, so that it can be kept beside it and compared.

use std::fmt::Write as _;

use quire_core::chance::Seed;
use quire_core::context::{ASSEMBLY, ContextError, TokenCount};
use quire_core::deep_task::{Caps, DeepTask, HostTool, INSTRUCTIONS, TaskState};
use quire_core::event::{Action, Event, ModelAsked, Start, TaskEquipped};
use quire_core::ids::{CallId, Hash, SessionId, TaskId, Timestamp};
use quire_core::message::{Message, Prompt};
use quire_core::pack::PackFiles;
use quire_core::question::Card;
use quire_core::session::{Asker, Asking, Phase, Running, Session, Waiting};
use quire_core::tag::Tag;

use crate::{Line, LineKind, ModelLine, Scenario, UserLine};

/// Most tokens of a performed prompt; no scenario comes near it.
const PROMPT_TOKENS_MAX: u32 = 128_000;
/// Characters of a text in a told line.
const TOLD_CHARS_MAX: usize = 200;

/// What came of a scenario.
#[derive(Debug, Clone)]
pub struct Performance {
    /// What was seen after the start, and after each line.
    pub told: Vec<String>,
    /// Every prompt that was asked, in order.
    pub prompts: Vec<PromptSeen>,
    /// What was journaled, in order.
    pub events: Vec<(Timestamp, Event)>,
    /// The session at the end.
    pub session: Session,
}

/// One prompt.
#[derive(Debug, Clone)]
pub struct PromptSeen {
    /// Who was asked: `agent`, or the worker's skill and role.
    pub asker: String,
    /// The messages as text.
    pub text: String,
}

/// Estimates tokens: three characters each. Enough where no model is near.
#[derive(Debug, Clone, Copy)]
pub struct Estimate;

impl TokenCount for Estimate {
    fn count(&self, text: &str) -> u32 {
        u32::try_from(text.chars().count().div_ceil(3)).unwrap_or(u32::MAX)
    }
}

/// Performs a scenario with the pack it names; `pack` is none for a session without one.
pub fn perform(scenario: &Scenario, pack: Option<PackFiles>) -> Performance {
    let mut player = Player::new(scenario, pack);
    for line in &scenario.lines {
        player.play(line);
    }
    player.performance
}

impl Performance {
    /// Returns what was told, a line each.
    pub fn text(&self) -> String {
        self.told.iter().map(|told| format!("{told}\n")).collect()
    }
}

struct Player {
    performance: Performance,
    clock: Timestamp,
    tools: Vec<HostTool>,
    task_caps: Caps,
}

impl Player {
    fn new(scenario: &Scenario, pack: Option<PackFiles>) -> Self {
        let session = Session::new(SessionId::new("play"));
        let performance = Performance { told: vec![], prompts: vec![], events: vec![], session };
        let options = &scenario.options;
        let mut player = Self { performance, clock: Timestamp(0), tools: scenario.tools.clone(), task_caps: options.task_caps };
        let start = Start {
            title: options.title.clone(),
            pack,
            profile: "scripted".to_owned(),
            burst_max: options.burst_max,
            budget: options.budget,
            offer: vec![],
        };
        player.tell(Event::Started(start));
        player
    }

    fn play(&mut self, line: &Line) {
        self.clock.0 += 1000;
        match &line.kind {
            LineKind::User(UserLine::Act(action)) => self.tell(Event::User(action.clone())),
            LineKind::User(UserLine::Answer { card, answers }) => {
                match resolve(self.performance.session.phase().waiting().and_then(Waiting::card), answers) {
                    Ok(answers) => self.tell(Event::User(Action::Answer { card: card.clone(), answers })),
                    Err(fault) => self.performance.told.push(format!("refused: {fault}")),
                }
            }
            LineKind::Agent(reply) => self.answer(line, reply, |asker| asker == Asker::Agent),
            LineKind::Worker { reply, .. } => self.answer(line, reply, |asker| matches!(asker, Asker::Worker(_))),
            LineKind::Task { task, reply } => self.answer_task(line, *task, reply),
            LineKind::Tool { tool, result } => {
                let calls = |other: &&DeepTask| other.calling().is_some_and(|calling| calling.tool.name == *tool);
                let Some((task, call)) = self.first_task(calls).and_then(|task| Some((task.id, task.calling()?.id))) else {
                    return self.unasked(line);
                };
                self.record(Event::ToolAsked { task, call, attempt: 1 }).expect("the call is owed");
                self.tell(Event::ToolAnswered { task, call, result: result.clone() });
            }
        }
    }

    fn first_task(&self, is_meant: impl Fn(&&DeepTask) -> bool) -> Option<&DeepTask> {
        self.performance.session.tasks().iter().find(is_meant)
    }

    fn unasked(&mut self, line: &Line) {
        let fault = format!("line {} is not asked for: {}", line.number, self.performance.session.pending());
        self.performance.told.push(fault);
    }

    fn answer_task(&mut self, line: &Line, task: Option<TaskId>, reply: &ModelLine) {
        let asks = |other: &&DeepTask| other.asking().is_some() && task.is_none_or(|task| task == other.id);
        let Some((task, call)) = self.first_task(asks).and_then(|task| Some((task, task.asking()?.call))) else {
            return self.unasked(line);
        };
        let (id, (messages, tools)) = (task.id, task.prompt());
        let text = messages_text(&messages, tools.iter().map(|tool| tool.name.as_ref()));
        let asked = ModelAsked {
            call,
            attempt: 1,
            profile: self.performance.session.profile().to_owned(),
            model: "scripted".to_owned(),
            budget_tokens: PROMPT_TOKENS_MAX,
            tokenizer: "estimate".to_owned(),
            assembly: ASSEMBLY,
            prompt: Hash::of(&text),
            prefix: Hash::of(""),
            fixed: vec![INSTRUCTIONS.into()],
            trace: None,
            task: Some(id),
        };
        self.performance.prompts.push(PromptSeen { asker: format!("task {id}"), text });
        self.record(Event::ModelAsked(asked)).expect("the call is under way");
        self.reply(call, reply);
    }

    fn reply(&mut self, call: CallId, reply: &ModelLine) {
        self.tell(match reply.clone() {
            ModelLine::Reply(reply) => Event::ModelReplied { call, reply },
            ModelLine::Failure(failure) => Event::ModelFailed { call, failure, partial: "".into() },
        });
    }

    fn answer(&mut self, line: &Line, reply: &ModelLine, is_meant: impl Fn(Asker) -> bool) {
        let session = &self.performance.session;
        let Some(running) = session.phase().asking().filter(|asking| is_meant(asking.asker)).cloned() else {
            return self.unasked(line);
        };
        let Some(asked) = self.ask(&running) else { return };
        self.record(Event::ModelAsked(asked)).expect("the call is under way");
        self.reply(running.call, reply);
    }

    /// Builds the prompt as a driver would; where there is no room for it, the call fails.
    fn ask(&mut self, running: &Asking) -> Option<ModelAsked> {
        let session = &self.performance.session;
        match session.prompt(PROMPT_TOKENS_MAX, &Estimate) {
            Ok((prompt, trace)) => {
                let asker = match running.asker {
                    Asker::Agent => "agent".to_owned(),
                    Asker::Worker(run) => session.run(run).title(),
                };
                let text = prompt_text(&prompt);
                let asked = ModelAsked {
                    call: running.call,
                    attempt: running.attempts + 1,
                    profile: session.profile_in_use().to_owned(),
                    model: "scripted".to_owned(),
                    budget_tokens: PROMPT_TOKENS_MAX,
                    tokenizer: "estimate".to_owned(),
                    assembly: ASSEMBLY,
                    fixed: prompt.fixed.clone(),
                    prompt: Hash::of(&text),
                    prefix: prompt.prefix.clone(),
                    trace,
                    task: None,
                };
                self.performance.prompts.push(PromptSeen { asker, text });
                Some(asked)
            }
            Err(error @ ContextError::NoRoom { .. }) => {
                self.performance.told.push(format!("no prompt: {error}"));
                None
            }
        }
    }

    /// Lets an event happen, and tells what is seen then.
    fn tell(&mut self, event: Event) {
        let items_before = self.performance.session.board().items().len();
        let is_of_task = |call: CallId| self.performance.session.task_asking(call).is_some();
        let is_model = matches!(event, Event::ModelReplied { call, .. } if !is_of_task(call));
        let tasks_before: Vec<DeepTask> = self.performance.session.tasks().to_vec();
        let told = match self.record(event).and_then(|()| self.draw()).and_then(|()| self.equip()) {
            Ok(()) => {
                let session = &self.performance.session;
                let mut told = state(session);
                for item in &session.board().items()[items_before..] {
                    if session.board().state(item.number) == quire_core::blackboard::ItemState::Accepted {
                        let _ = write!(told, "; {} written", item.tag);
                    }
                }
                if is_model {
                    told.push_str(&results(session));
                }
                let changed = session.tasks().iter().filter(|task| !tasks_before.contains(task));
                told.extend(changed.map(task_text));
                told
            }
            Err(refused) => refused,
        };
        self.performance.told.push(told);
    }

    /// Makes the draws of a turn that begins; the turn's number is the seed, so that a scenario can be read.
    fn draw(&mut self) -> Result<(), String> {
        match self.performance.session.phase() {
            Phase::Running(Running::Drawing) => {
                let seed = Seed(u64::from(self.performance.session.turn()));
                self.record(Event::Drawn { seed })
            }
            Phase::Running(Running::Asking(_)) | Phase::Idle | Phase::WaitingUser(_) | Phase::Done | Phase::Error { .. } => {
                Ok(())
            }
        }
    }

    /// Gives each deep task that begins the scenario's tools.
    fn equip(&mut self) -> Result<(), String> {
        while let Some(task) = self.first_task(|task| task.state == TaskState::Equipping).map(|task| task.id) {
            let equipped = TaskEquipped { task, caps: self.task_caps, tools: self.tools.clone(), faults: vec![] };
            self.record(Event::TaskEquipped(equipped))?;
        }
        Ok(())
    }

    fn record(&mut self, event: Event) -> Result<(), String> {
        match self.performance.session.handle(self.clock, event.clone()) {
            Ok(_) => {
                self.performance.events.push((self.clock, event));
                Ok(())
            }
            Err(refusal) => Err(format!("refused: {}", refusal.message)),
        }
    }
}

/// Makes answers of what a person typed.
pub fn resolve(card: Option<&Card>, answers: &[(String, String)]) -> Result<Vec<quire_core::question::Answer>, String> {
    let card = card.ok_or("no question is open")?;
    answers.iter().map(|(question, value)| card.answer(question, value).map_err(|fault| fault.to_string())).collect()
}

/// Tells a session's phase in a line.
pub fn state(session: &Session) -> String {
    let burst = session.burst();
    match session.phase() {
        Phase::Idle => "idle".to_owned(),
        Phase::Running(running) => {
            let asker = match running {
                Running::Drawing => "chance".to_owned(),
                Running::Asking(Asking { asker: Asker::Agent, .. }) => "agent".to_owned(),
                Running::Asking(Asking { asker: Asker::Worker(run), .. }) => format!("worker {}", session.run(*run).title()),
            };
            format!("running burst {}/{}, {asker}", burst.used, burst.max)
        }
        Phase::WaitingUser(waiting) => format!("waiting_user {}", waiting_text(session, waiting)),
        Phase::Done => "done".to_owned(),
        Phase::Error { reason } => format!("error: {reason}"),
    }
}

fn waiting_text(session: &Session, waiting: &Waiting) -> String {
    let artifact = |id| {
        let tags: Vec<&str> = session.artifact(id).items.keys().map(Tag::as_str).collect();
        format!("artifact {id}: {}", tags.join(", "))
    };
    let mut text = match waiting {
        Waiting::SkillSelection => "skill_selection".to_owned(),
        Waiting::Intake => match session.intake().missing().as_slice() {
            [] => "intake, complete".to_owned(),
            missing => format!("intake, missing {}", missing.join(", ")),
        },
        Waiting::Input { message: Some(message), .. } => format!("input: {}", shorten(message)),
        Waiting::Input { message: None, .. } => "input".to_owned(),
        Waiting::ApproveStep(decision) => format!("approval of decision {}: {}", decision.id, decision.skill),
        Waiting::ReviewArtifact { artifact: id, .. } => format!("review of {}", artifact(*id)),
        Waiting::WorkerQuestions { run, .. } => format!("questions of {}", session.run(*run).title()),
        Waiting::Revision { artifact: id, .. } => format!("revision of {}", artifact(*id)),
    };
    if let Some(failed) = waiting.artifact().map(|id| &session.artifact(id).failed_checks).filter(|failed| !failed.is_empty()) {
        let _ = write!(text, "; checks: {}", failed.join("; "));
    }
    if let Some(card) = waiting.card() {
        let questions: Vec<String> =
            card.questions.iter().map(|question| format!("{} {}", question.id, question.prompt)).collect();
        let _ = write!(text, "; card {}: {}", card.id, questions.join(" / "));
    }
    if let Some(cause) = waiting.cause() {
        let _ = write!(text, "; {}: {}", cause.kind.as_str(), shorten(&cause.message));
    }
    text
}

/// Tells what the models' calls came to, where the loop goes on.
fn results(session: &Session) -> String {
    let Ok((Prompt { messages, .. }, _)) =
        session.phase().asking().map_or(Err(()), |_| session.prompt(PROMPT_TOKENS_MAX, &Estimate).map_err(|_| ()))
    else {
        return String::new();
    };
    let after =
        messages.iter().rposition(|message| matches!(message, Message::Assistant { .. })).map_or(messages.len(), |last| last + 1);
    messages[after..].iter().map(|message| format!("; told: {}", shorten(message.text()))).collect()
}

fn shorten(text: &str) -> String {
    let line = text.trim().replace('\n', " ⏎ ");
    let mut short: String = line.chars().take(TOLD_CHARS_MAX).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// Tells what a deep task is at, since that has changed.
fn task_text(task: &DeepTask) -> String {
    let state = match &task.state {
        TaskState::Equipping => "looks up its tools".to_owned(),
        TaskState::Asking(_) => format!("thinks, round {}", task.rounds + 1),
        TaskState::Calling(calling) => format!("calls {}", calling.tool.name),
        TaskState::Over(ending) => match ending {
            quire_core::deep_task::Ending::CutOff(cap) => format!("cut_off by {}", cap.as_str()),
            other => other.as_str().to_owned(),
        },
    };
    format!("; task {} {state}", task.id)
}

/// Shows a prompt as a person would read it.
pub fn prompt_text(prompt: &Prompt) -> String {
    messages_text(&prompt.messages, prompt.tools.iter().map(|tool| tool.name))
}

fn messages_text<'a>(messages: &[Message], tools: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for message in messages {
        let _ = writeln!(text, "=== {} ===", message.role());
        if !message.text().is_empty() {
            let _ = writeln!(text, "{}", message.text());
        }
        for call in message.calls() {
            let _ = writeln!(text, "[calls {} {}]", call.name, call.arguments);
        }
    }
    let tools: Vec<&str> = tools.collect();
    let _ = writeln!(text, "=== tools: {} ===", tools.join(", "));
    text
}
