//! The main agent: what it is told, and what follows from what it calls.
//!
//! It picks the next skill in a loop of rounds, bounded by the burst; it writes nothing itself. Its prompt is stable on
//! top: rules and manifest, then the log, which only grows, then the opening of the burst, then the burst's messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use super::tools::{self, AgentCall, BoundaryCall, LoopCall, RunWorker};
use super::{Asker, CauseKind, Decision, Effect, Session, Stage, Waiting};
use crate::artifact::Artifact;
use crate::blackboard::Source;
use crate::context::{ContextError, TokenCount};
use crate::ids::{CallId, Hash, Revision, SkillId, Timestamp};
use crate::message::{Finish, Message, Prompt, Reply, ToolCall, ToolSpec};
use crate::pack::{Acceptance, Pack, Skill, SkillStage};
use crate::question::{Card, Question};
use crate::reply;
use crate::tag::{Pattern, RoleId, Tag};

/// What every main agent is told first.
pub const RULES: &str = "\
You are the main agent of a writing session. You decide which skill works next; you write none of the text yourself.

How it works:
- Skills do the work. Each is declared by the pack below: what it reads, what it writes. You start one with `run_worker`. What it hands in becomes a fact only when the user accepts it, or where the pack says so beforehand.
- The blackboard holds all texts by tag. You see its index: tag, state, size. Read a text with `read_blackboard` before you speak about it; never describe a text you have not read.
- `delegate_task` lets a sub-agent dig into a question beside the session: facts, sources, a comparison. It knows nothing but what you write into the task.
- `read_blackboard`, the three `list_…` tools, `delegate_task` and `cancel_delegate_task` give you a result and you go on. `run_worker`, `ask_user`, `review_blackboard`, `declare_instance_ready` and `finish` end your turn: call one of them, alone or after the others, and call it exactly once.
- You have a limited number of rounds between two actions of the user. Do not repeat a call that gave you nothing new.
- When something failed or was refused, the result says why and what is allowed. Mend it, or ask the user.
- Ask the user only what you cannot decide from the brief, and put questions that belong together on one card.
- When all the pack is meant to make is made and accepted, tell the user, or `finish` when they have nothing more to ask.
- Speak to the user in the user's own language.";

/// Lines of the log that are dropped together, so that the prompt's beginning changes seldom.
const LOG_BLOCK_LINES: usize = 64;
/// Characters of log the agent is shown before a block is dropped.
const LOG_CHARS_MAX: usize = 24_000;
/// Lines of the index before tags are drawn together to prefixes.
const INDEX_LINES_MAX: usize = 200;
/// Grapheme clusters of the user's words in a line of the log; the opening shows more.
const LOG_LINE_GRAPHEMES_MAX: usize = 160;
/// Grapheme clusters of the user's words in the opening.
const OPENING_GRAPHEMES_MAX: usize = 4_000;
/// Characters of one result of `read_blackboard`.
const READ_CHARS_MAX: usize = 60_000;

/// What the main agent knows and is at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Agent {
    log: Vec<LogLine>,
    /// Lines the agent has been told of, in the log or in a message.
    told: usize,
    /// What the burst opened with, once it has.
    opening: Option<Opening>,
    /// What of the log no longer stands in an opening.
    left_out: LeftOut,
    /// The burst's messages, after its opening.
    messages: Vec<Message>,
    /// Calls of this burst and how often each was made.
    repeats: Vec<(String, Value, u32)>,
}

/// What a burst opened with. It is put into words when a prompt is built, always the same: reading a journal again costs
/// no words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Opening {
    /// Lines of the log above it.
    above: usize,
    /// Lines of the log up to its end: those between are news.
    until: usize,
    /// The blackboard it shows is that of then.
    at: Revision,
    stage: Stage,
    hides: bool,
}

/// The beginning of the log, which openings leave out. It only grows, so it is counted on and never counted anew.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct LeftOut {
    lines: usize,
    /// How many there were of each kind.
    kinds: BTreeMap<String, u32>,
    /// Lines looked at so far.
    seen: usize,
    /// Characters of those of them that are not left out.
    kept_chars: usize,
}

impl LeftOut {
    /// Takes note of the log up to `until`, and leaves out whole blocks until the rest has room.
    fn go_on(&mut self, log: &[LogLine], until: usize) {
        self.kept_chars += log[self.seen..until].iter().map(LogLine::chars).sum::<usize>();
        self.seen = until;
        while self.kept_chars > LOG_CHARS_MAX && until - self.lines > LOG_BLOCK_LINES {
            for line in &log[self.lines..self.lines + LOG_BLOCK_LINES] {
                self.kept_chars -= line.chars();
                *self.kinds.entry(line.kind().to_owned()).or_default() += 1;
            }
            self.lines += LOG_BLOCK_LINES;
        }
    }

    /// Says what is left of them: how many there were of each kind.
    fn digest(&self) -> String {
        let counts: Vec<String> = self.kinds.iter().map(|(kind, count)| format!("{count} of {kind}")).collect();
        format!("({} earlier lines are left out: {})\n", self.lines, counts.join(", "))
    }
}

/// One line of the session's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// The line, short.
    pub text: String,
    /// The user's whole words, where the line is too short for them.
    #[serde(skip)]
    whole: Option<Arc<str>>,
    /// Whether the agent has to be told although it has a result for its call.
    #[serde(skip)]
    is_news: bool,
}

impl Agent {
    pub(super) fn lines(&self) -> &[LogLine] {
        &self.log
    }
}

impl Session {
    /// Adds a line to the log.
    pub(super) fn log(&mut self, text: impl Into<String>) {
        self.agent.log.push(LogLine { text: text.into(), whole: None, is_news: false });
    }

    /// Adds a line to the log that the agent must hear of.
    pub(super) fn tell(&mut self, text: impl Into<String>) {
        self.agent.log.push(LogLine { text: text.into(), whole: None, is_news: true });
    }

    /// Adds a line with the user's words, which the agent must hear of.
    pub(super) fn tell_words(&mut self, what: &str, words: &str) {
        let short = one_line(words, LOG_LINE_GRAPHEMES_MAX);
        let whole = (short != words).then(|| format!("{what}: {}", shorten(words, OPENING_GRAPHEMES_MAX)).into());
        self.agent.log.push(LogLine { text: format!("{what}: {short}"), whole, is_news: true });
    }

    /// Starts a new burst. The messages go on where the agent's call has still to be answered, else it gets a new opening.
    pub(super) fn begin_burst(&mut self, messages: Messages) {
        self.burst.used = 0;
        self.agent.repeats.clear();
        match messages {
            Messages::GoOn => {}
            Messages::Anew => {
                let is_read = self.agent.messages.iter().any(|message| matches!(message, Message::Assistant { .. }));
                let opening = self.agent.opening.take();
                // What the agent never answered to is news again.
                if let Some(opening) = opening.filter(|_| !is_read) {
                    self.agent.told = opening.above;
                }
                self.agent.messages.clear();
            }
        }
    }

    /// Lets the agent have its next round.
    pub(super) fn ask_agent(&mut self) -> Vec<Effect> {
        if self.burst.is_spent() {
            let message =
                format!("the agent has used its {} rounds; retry gives it new ones, or say what you want", self.burst.max);
            return self.work_failed(Asker::Agent, CauseKind::BurstSpent, message);
        }
        if let Some(draw) = self.draw_what_is_owed() {
            return vec![draw];
        }
        self.tell_agent_news();
        self.ask(Asker::Agent)
    }

    fn tell_agent_news(&mut self) {
        let untold = &self.agent.log[self.agent.told..];
        let until = self.agent.log.len();
        if self.agent.opening.is_none() {
            let first_news = untold.iter().position(|line| line.is_news).unwrap_or(untold.len());
            let above = self.agent.told + first_news;
            self.agent.left_out.go_on(&self.agent.log, above);
            let opening = Opening { above, until, at: self.revision, stage: self.stage, hides: self.hides_now() };
            self.agent.opening = Some(opening);
        } else {
            let news: Vec<&str> = untold.iter().filter(|line| line.is_news).map(LogLine::shown).collect();
            if !news.is_empty() {
                let news = Message::user(news.join("\n"));
                self.agent.messages.push(news);
            }
        }
        self.agent.told = until;
    }

    /// The burst's first message: the log above it, what has happened since, and the index of the blackboard.
    fn opening(&self, opening: Opening) -> Message {
        let log = self.log_block(opening.above);
        let since: Vec<&str> = self.agent.log[opening.above..opening.until].iter().map(LogLine::shown).collect();
        let since = if since.is_empty() { "(nothing new)".to_owned() } else { since.join("\n") };
        let index = self.index(opening);
        let stage = opening.stage.as_str();
        let text = format!("{log}\n# Now\n\n{since}\n\n# Blackboard\n\nStage: {stage}\n{index}");
        Message::User { text: text.into(), stable_bytes: log.len() }
    }

    fn log_block(&self, above: usize) -> String {
        let left_out = &self.agent.left_out;
        let mut block = String::from("# Log\n\n");
        if left_out.lines > 0 {
            block.push_str(&left_out.digest());
        }
        for line in &self.agent.log[left_out.lines..above] {
            block.push_str(&line.text);
            block.push('\n');
        }
        block
    }

    /// Tag, state, size and source of what counts, one line a tag; too many are drawn together to prefixes.
    fn index(&self, opening: Opening) -> String {
        let view = self.board.at(opening.at);
        let entries: Vec<(&Tag, String)> = view.tags().filter_map(|tag| Some((tag, self.index_entry(opening, tag)?))).collect();
        match entries.len() {
            0 => "(empty)".to_owned(),
            count if count <= INDEX_LINES_MAX => entries.iter().map(|(tag, entry)| format!("{tag}: {entry}\n")).collect(),
            _ => collapsed(&entries),
        }
    }

    fn index_entry(&self, opening: Opening, tag: &Tag) -> Option<String> {
        let view = self.board.at(opening.at);
        let states = self.board.history(tag).rev().filter_map(|item| Some((item, view.state(item)?)));
        let (item, state) = states.into_iter().find(|(_, state)| state.stands())?;
        if opening.hides && self.pack.as_ref().is_some_and(|pack| pack.hides(tag)) {
            return Some("exists (hidden from the user)".to_owned());
        }
        let size = item.content.chars().count();
        Some(format!("{}, {size} characters, by {}", state.as_str(), self.source_word(&item.source)))
    }

    pub(super) fn source_word(&self, source: &Source) -> String {
        match source {
            Source::Run(run) => self.run(*run).title(),
            Source::Task(task) => format!("deep task {task}"),
            Source::User | Source::Runtime => source.to_string(),
        }
    }

    fn agent_tools(&self) -> Vec<&'static ToolSpec> {
        let has_design = self.pack.as_ref().is_some_and(|pack| pack.has_design());
        tools::AGENT_TOOLS.iter().filter(|tool| has_design || tool.name != "declare_instance_ready").collect()
    }

    pub(super) fn agent_prompt(&self, budget_tokens: u32, count: &dyn TokenCount) -> Result<Prompt, ContextError> {
        let pack = self.pack.as_ref().expect("an agent has a pack");
        let system = system_text(pack);
        let prefix = Hash::of(system.as_bytes());
        let mut messages = vec![Message::System { text: system.into() }];
        messages.extend(self.agent.opening.map(|opening| self.opening(opening)));
        messages.extend(self.agent.messages.iter().cloned());
        check_room(&messages, budget_tokens, count)?;
        Ok(Prompt { messages, tools: self.agent_tools(), prefix, fixed: vec![RULES.into()] })
    }

    pub(super) fn agent_replied(&mut self, now: Timestamp, reply: Reply) -> Vec<Effect> {
        let was_cut = reply.finish == Finish::Length;
        let mut calls = reply.calls;
        let mut text = reply.text;
        if calls.is_empty() {
            match reply::agent_decision(&text) {
                // The first implementation's one-shot decisions: a call in another coat.
                Some((name, arguments)) => {
                    calls = vec![ToolCall { id: String::new(), name, arguments: Value::Object(arguments).to_string().into() }];
                    text = "".into();
                }
                None if text.trim().is_empty() => return self.agent_said_nothing(),
                None => {
                    let said = Message::Assistant { text: text.clone(), reasoning: reply.reasoning, calls: vec![] };
                    self.agent.messages.push(said);
                    return self.agent_asks(text, vec![]);
                }
            }
        }
        // Loop calls first, then the boundary: so the answers stand in the calls' order.
        calls.sort_by_key(|call| tools::is_boundary(&call.name));
        name_calls(&mut calls, &self.agent.messages, self.calls);
        self.agent.messages.push(Message::Assistant { text, reasoning: reply.reasoning, calls: calls.clone() });
        let boundary_count = calls.iter().filter(|call| tools::is_boundary(&call.name)).count();
        let mut taken = None;
        let mut effects = vec![];
        for call in &calls {
            let outcome = self.agent_call(now, call, was_cut, boundary_count);
            match outcome {
                Ok(AgentOutcome::Result(result)) => self.answer_call(&call.id, result),
                Ok(AgentOutcome::Beside(result, follows)) => {
                    effects.extend(follows);
                    self.answer_call(&call.id, result);
                }
                Ok(AgentOutcome::Boundary(boundary)) => taken = Some((call.id.clone(), boundary)),
                Err(fault) => self.answer_call(&call.id, format!("error: {fault}")),
            }
        }
        effects.extend(match taken {
            Some((id, boundary)) => self.cross(now, &id, boundary),
            None => self.ask_agent(),
        });
        // A later call of the same reply may have taken back what an earlier one ordered.
        let owed = self.open_effects();
        effects.retain(|effect| owed.contains(effect) || matches!(effect, Effect::CancelModel { .. }));
        effects
    }

    fn agent_said_nothing(&mut self) -> Vec<Effect> {
        // An empty assistant message is refused by many providers: the reminder alone goes on.
        self.agent.messages.push(Message::user("Your reply was empty. Call one of your tools, or say something to the user."));
        self.ask_agent()
    }

    /// Reads one call and does what it may do. A boundary is checked here and crossed by the caller.
    fn agent_call(
        &mut self,
        now: Timestamp,
        call: &ToolCall,
        was_cut: bool,
        boundary_count: usize,
    ) -> Result<AgentOutcome, String> {
        if boundary_count > 1 && tools::is_boundary(&call.name) {
            return Err("one reply can hold only one of run_worker, ask_user, review_blackboard, declare_instance_ready and finish; none of them was done; call just one".to_owned());
        }
        let read = tools::read_agent_call(&self.agent_tools(), call, was_cut)?;
        if self.is_third_time(call) {
            return Err(format!(
                "this is the third time you call `{}` with the same arguments since the user's last action; it was not done again; do something else, or ask the user",
                call.name
            ));
        }
        match read {
            AgentCall::Loop(LoopCall::ReadBlackboard { tags }) => self.read_for_agent(&tags).map(AgentOutcome::Result),
            AgentCall::Loop(LoopCall::ListWorkers) => Ok(AgentOutcome::Result(self.list_workers())),
            AgentCall::Loop(LoopCall::ListArtifacts) => Ok(AgentOutcome::Result(self.list_artifacts())),
            AgentCall::Loop(LoopCall::DelegateTask { task, title }) => {
                self.delegate_task(now, &task, &title).map(|(result, effects)| AgentOutcome::Beside(result, effects))
            }
            AgentCall::Loop(LoopCall::CancelTask { task }) => {
                self.cancel_delegated(now, &task).map(|(result, effects)| AgentOutcome::Beside(result, effects))
            }
            AgentCall::Loop(LoopCall::ListTasks) => Ok(AgentOutcome::Result(self.list_tasks())),
            AgentCall::Boundary(boundary) => self.check_boundary(boundary).map(AgentOutcome::Boundary),
        }
    }

    fn is_third_time(&mut self, call: &ToolCall) -> bool {
        let arguments =
            reply::arguments(&call.arguments, false).map(|arguments| Value::Object(arguments.value)).unwrap_or_default();
        let seen = self.agent.repeats.iter_mut().find(|(name, seen, _)| *name == call.name && *seen == arguments);
        match seen {
            Some((_, _, times)) => {
                *times += 1;
                *times >= 3
            }
            None => {
                self.agent.repeats.push((call.name.clone(), arguments, 1));
                false
            }
        }
    }

    fn check_boundary(&self, boundary: BoundaryCall) -> Result<Boundary, String> {
        Ok(match boundary {
            BoundaryCall::RunWorker(wish) => Boundary::Run(self.check_run(wish)?),
            BoundaryCall::AskUser { assessment, questions } => {
                if assessment.trim().is_empty() && questions.is_empty() {
                    return Err("`ask_user` says nothing: give an assessment, or at least one question".to_owned());
                }
                Boundary::Ask { assessment, questions }
            }
            BoundaryCall::ReviewBlackboard { summary } => Boundary::Ask { assessment: summary, questions: vec![] },
            BoundaryCall::DeclareInstanceReady(ready) => Boundary::Ready(self.check_ready(ready)?),
            BoundaryCall::Finish { reason } => Boundary::Finish { reason },
        })
    }

    fn check_run(&self, wish: RunWorker) -> Result<RunOrder, String> {
        let pack = self.pack.as_ref().expect("an agent has a pack");
        let runnable = self.runnable();
        let names = || runnable.iter().map(|skill| skill.id.as_str()).collect::<Vec<_>>().join(", ");
        let Some(skill) = pack.skill(&wish.worker_id) else {
            return Err(format!("there is no skill `{}`; there are: {}", wish.worker_id, names()));
        };
        if !runnable.iter().any(|other| other.id == skill.id) {
            return Err(format!("`{}` does not run in this stage; these do: {}", skill.id, names()));
        }
        let role = match wish.role_id.filter(|role| !role.trim().is_empty()) {
            Some(role) => Some(RoleId::parse(&role).map_err(|error| format!("`roleId`: {error}"))?),
            None if skill.needs_role() => return Err(format!("`{}` works for a role: give its name as `roleId`", skill.id)),
            None => None,
        };
        let missing = self.required_missing(skill, role.as_ref());
        if !missing.is_empty() {
            let missing: Vec<&str> = missing.iter().map(Pattern::as_str).collect();
            return Err(format!("`{}` needs {}, which nobody has written or accepted yet", skill.id, missing.join(", ")));
        }
        if let Some(reviewed) = &skill.reviews
            && self.reviewed(reviewed, role.as_ref()).is_none()
        {
            return Err(format!("`{}` reviews what `{reviewed}` makes, and there is nothing to review yet", skill.id));
        }
        let asks_user = wish.requires_approval || skill.requires_approval;
        Ok(RunOrder { skill: skill.id.clone(), role, reason: wish.reason, asks_user })
    }

    /// The skills the agent may run now, in the manifest's order.
    fn runnable(&self) -> Vec<&Skill> {
        let pack = self.pack.as_ref().expect("an agent has a pack");
        let stage = match self.stage {
            Stage::Design => SkillStage::Design,
            Stage::Play | Stage::Done => SkillStage::Play,
        };
        let listed = |skill: &&Skill| match &self.instance {
            Some(instance) => instance.lists(&skill.id),
            None => true,
        };
        pack.skills.iter().filter(|skill| skill.runs_in(stage)).filter(listed).collect()
    }

    fn cross(&mut self, now: Timestamp, call: &str, boundary: Boundary) -> Vec<Effect> {
        match boundary {
            Boundary::Run(order) => self.order_run(call, order),
            Boundary::Ask { assessment, questions } => self.agent_asks(assessment.into(), questions),
            Boundary::Ready(ready) => self.instance_is_ready(now, ready),
            Boundary::Finish { reason } => {
                self.log(format!("agent: finish: {}", one_line(&reason, LOG_LINE_GRAPHEMES_MAX)));
                self.end(now)
            }
        }
    }

    fn order_run(&mut self, call: &str, order: RunOrder) -> Vec<Effect> {
        let RunOrder { skill, role, reason, asks_user } = order;
        let title = super::worker::title(&skill, role.as_ref());
        self.log(format!("agent: run {title}: {}", one_line(&reason, LOG_LINE_GRAPHEMES_MAX)));
        if asks_user {
            let decision = Decision { id: self.decisions.take(), skill, role, reason: reason.into(), answers: call.to_owned() };
            self.wait(Waiting::ApproveStep(decision));
            return vec![];
        }
        self.start_run(skill, role, Some(call.to_owned()))
    }

    fn agent_asks(&mut self, message: Arc<str>, questions: Vec<Question>) -> Vec<Effect> {
        self.log(format!("agent: {}", one_line(&message, LOG_LINE_GRAPHEMES_MAX)));
        let card = self.card(questions).map(Card::all_optional);
        let message = Some(message).filter(|message| !message.trim().is_empty());
        self.wait(Waiting::Input { message, cause: None, card });
        vec![]
    }

    /// Answers a call of the agent's, where the burst it belongs to still goes on.
    pub(super) fn answer_call(&mut self, call: &str, result: String) {
        let asked =
            |message: &Message| matches!(message, Message::Assistant { calls, .. } if calls.iter().any(|made| made.id == call));
        if self.agent.messages.iter().any(asked) {
            self.agent.messages.push(Message::Tool { call_id: call.to_owned(), text: result.into() });
        }
    }

    fn read_for_agent(&self, patterns: &[String]) -> Result<String, String> {
        let mut result = String::new();
        let mut shown: Vec<&Tag> = vec![];
        let mut unmatched = vec![];
        for raw in patterns {
            let pattern = Pattern::parse(raw).map_err(|error| error.to_string())?;
            let mut is_matched = false;
            for tag in self.board.tags().filter(|tag| pattern.matches(tag)) {
                let Some(item) = self.board.history(tag).rev().find(|item| self.board.state(item.number).stands()) else {
                    continue;
                };
                is_matched = true;
                if shown.contains(&tag) {
                    continue;
                }
                shown.push(tag);
                if self.is_hidden(tag) {
                    result.push_str(&format!("## {tag} (exists, hidden)\n\n"));
                    continue;
                }
                let state = self.board.state(item.number).as_str();
                result.push_str(&format!("## {tag} ({state}, item {})\n\n{}\n\n", item.number, item.content));
            }
            if !is_matched {
                unmatched.push(raw.as_str());
            }
        }
        if result.chars().count() > READ_CHARS_MAX {
            result = result.graphemes(true).take(READ_CHARS_MAX).collect();
            result.push_str("\n\n(cut here: this is too long for one reading; ask for fewer tags)\n");
        }
        if !unmatched.is_empty() {
            result.push_str(&format!("No text matches: {}\n", unmatched.join(", ")));
        }
        Ok(result)
    }

    fn list_workers(&self) -> String {
        let join = |patterns: &[Pattern]| patterns.iter().map(Pattern::as_str).collect::<Vec<_>>().join(", ");
        let describe = |skill: &&Skill| {
            let missing = self.required_missing(skill, None);
            let mut text = format!(
                "- {}: {}\n  reads: {}\n  writes: {}\n",
                skill.id,
                skill.description,
                join(&skill.input_tags),
                join(&skill.output_tags)
            );
            if !missing.is_empty() {
                text.push_str(&format!("  missing: {}\n", join(&missing)));
            }
            if skill.needs_role() {
                text.push_str("  needs a roleId\n");
            }
            text
        };
        let list: String = self.runnable().iter().map(describe).collect();
        if list.is_empty() { "no skill runs in this stage".to_owned() } else { list }
    }

    fn list_artifacts(&self) -> String {
        let describe = |artifact: &Artifact| {
            let tags: Vec<&str> = artifact.items.keys().map(Tag::as_str).collect();
            let title = super::worker::title(&artifact.skill, artifact.role.as_ref());
            let summary = self.summary_told(&artifact.items, &artifact.summary);
            format!("- {}: {title}, {}, {}: {summary}\n", artifact.id, artifact.state.as_str(), tags.join(", "))
        };
        let list: String = self.artifacts.iter().map(describe).collect();
        if list.is_empty() { "nothing has been handed in yet".to_owned() } else { list }
    }
}

/// Whether a burst's messages go on or start anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Messages {
    GoOn,
    Anew,
}

enum AgentOutcome {
    Result(String),
    /// A result, and what is to be done beside the loop.
    Beside(String, Vec<Effect>),
    Boundary(Boundary),
}

/// A boundary call that may be crossed.
enum Boundary {
    Run(RunOrder),
    Ask { assessment: String, questions: Vec<Question> },
    Ready(super::stage::Ready),
    Finish { reason: String },
}

struct RunOrder {
    skill: SkillId,
    role: Option<RoleId>,
    reason: String,
    asks_user: bool,
}

impl LogLine {
    fn shown(&self) -> &str {
        self.whole.as_deref().unwrap_or(&self.text)
    }

    fn chars(&self) -> usize {
        self.text.chars().count()
    }

    /// The line's first word, up to the colon.
    fn kind(&self) -> &str {
        let before_colon = self.text.split_once(':').map_or("other", |(kind, _)| kind);
        before_colon.split(' ').next().unwrap_or(before_colon)
    }
}

/// Counts only where it is close: a token is at least a byte long, and counting a long log takes longer than building it.
fn check_room(messages: &[Message], budget_tokens: u32, count: &dyn TokenCount) -> Result<(), ContextError> {
    let bytes: usize = messages.iter().map(|message| message.text().len()).sum();
    if bytes <= budget_tokens as usize {
        return Ok(());
    }
    let counted: Vec<u32> = messages.iter().map(|message| count.count(message.text())).collect();
    let needed_tokens = counted.iter().sum();
    if needed_tokens <= budget_tokens {
        return Ok(());
    }
    let sizes: Vec<String> =
        messages.iter().zip(counted).map(|(message, tokens)| format!("{}: {tokens}", message.role())).collect();
    Err(ContextError::NoRoom { skill: SkillId::new("main agent"), needed_tokens, budget_tokens, sizes: sizes.join(", ") })
}

fn system_text(pack: &Pack) -> String {
    let skills: String =
        pack.skills.iter().map(|skill| format!("- {}: {}{}\n", skill.id, skill.description, skill_marks(skill))).collect();
    let manifest = pack.manifest.trim();
    format!("{RULES}\n\n# Pack: {}\n\n{}\n\n# Skills\n\n{skills}\n# Manifest\n\n{manifest}", pack.name, pack.description)
}

fn skill_marks(skill: &Skill) -> String {
    let stage = match skill.stage {
        Some(SkillStage::Design) => " (design)",
        Some(SkillStage::Play) => " (play)",
        None => "",
    };
    let acceptance = match skill.acceptance {
        Acceptance::UserConfirmed => "",
        Acceptance::NoConfirmation => " (accepted without asking)",
        Acceptance::ProgrammaticReview => " (accepted by checks)",
    };
    format!("{stage}{acceptance}")
}

/// Gives each call an id that no other call among `messages` has: providers leave them empty and use them twice.
pub(super) fn name_calls(calls: &mut [ToolCall], messages: &[Message], round: CallId) {
    let mut seen: BTreeSet<String> = messages.iter().flat_map(Message::calls).map(|call| call.id.clone()).collect();
    for (index, call) in calls.iter_mut().enumerate() {
        if call.id.is_empty() || seen.contains(&call.id) {
            call.id = format!("call_{round}_{index}");
        }
        seen.insert(call.id.clone());
    }
}

/// Cuts words at a grapheme border and puts them on one line.
pub(super) fn one_line(words: &str, graphemes_max: usize) -> String {
    shorten(words.trim(), graphemes_max).replace(['\r', '\n'], " ")
}

/// Cuts words at a grapheme border.
fn shorten(words: &str, graphemes_max: usize) -> String {
    let mut short: String = words.graphemes(true).take(graphemes_max).collect();
    if short.len() < words.len() {
        short.push('…');
    }
    short
}

fn collapsed(entries: &[(&Tag, String)]) -> String {
    let depth_max = entries.iter().map(|(tag, _)| tag.parts().count()).max().unwrap_or(1);
    let groups_at = |depth: usize| {
        let mut groups: BTreeMap<String, u32> = BTreeMap::new();
        for (tag, _) in entries {
            let prefix: Vec<&str> = tag.parts().take(depth).collect();
            *groups.entry(prefix.join(".")).or_default() += 1;
        }
        groups
    };
    let fitting = (1..=depth_max).rev().map(groups_at).find(|groups| groups.len() <= INDEX_LINES_MAX);
    let groups = fitting.unwrap_or_else(|| groups_at(1));
    let total = groups.len();
    let mut lines: String =
        groups.iter().take(INDEX_LINES_MAX).map(|(prefix, count)| format!("{prefix}.*: {count} tags\n")).collect();
    if total > INDEX_LINES_MAX {
        lines.push_str(&format!("… and {} more prefixes\n", total - INDEX_LINES_MAX));
    }
    lines
}
