//! Workers' runs: from the start of one to what it hands in, asks, or fails by.
//!
//! A run's prompt shows the blackboard as it was when the run started; its later rounds add messages below and change
//! nothing above. A rerun mends an artifact: it gets the text, all notes and all answers so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::agent::{name_calls, one_line};
use super::review::Work;
use super::tools::{self, WorkerCall};
use super::{Asker, Cause, CauseKind, Effect, Session, Waiting};
use crate::artifact::{Artifact, ArtifactState};
use crate::context::{self, Assembly, Context, ContextError, FixedTexts, Note, RunInput, TokenCount};
use crate::event::ModelAsked;
use crate::ids::{ArtifactId, Hash, ItemNumber, Revision, RunId, SkillId, Timestamp};
use crate::message::{Finish, Message, Prompt, Reply};
use crate::pack::{Acceptance, Pack, Skill};
use crate::question::{Answer, Card, Question};
use crate::reply;
use crate::table::Patch;
use crate::tag::{RoleId, Tag};

/// Model rounds of one run.
const ROUNDS_MAX: u32 = 8;

/// One execution of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its number.
    pub id: RunId,
    /// The skill.
    pub skill: SkillId,
    /// The role.
    pub role: Option<RoleId>,
    /// What became of it.
    pub state: RunState,
    /// The artifact it mends, where it is a rerun.
    pub mends: Option<ArtifactId>,
    /// Model rounds asked so far.
    pub rounds: u32,
    /// The prompt's room in tokens, once a model was asked.
    pub budget_tokens: Option<u32>,
    /// The engine's own texts in its prompt, once a model was asked.
    fixed: Option<FixedTexts>,
    /// When it started: its prompt shows the blackboard of then.
    pub(super) started: Revision,
    pub(super) pack: Hash,
    variant: Option<String>,
    turn: u32,
    notes: Vec<Note>,
    answers: Vec<String>,
    draft: BTreeMap<Tag, ItemNumber>,
    /// The agent's call that waits for the outcome.
    answers_call: Option<String>,
    /// What came after its first messages.
    messages: Vec<Message>,
}

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// It works, or waits to be asked again.
    Working,
    /// It waits for answers.
    Asking,
    /// It handed in this.
    HandedIn(ArtifactId),
    /// It was given up: failed, stopped, or thrown away.
    Ended,
}

impl Run {
    /// Returns the run's name for a person: the skill, and the role where it has one.
    pub fn title(&self) -> String {
        title(&self.skill, self.role.as_ref())
    }

    /// Says whether it may still hand something in.
    pub fn is_open(&self) -> bool {
        match self.state {
            RunState::Working | RunState::Asking => true,
            RunState::HandedIn(_) | RunState::Ended => false,
        }
    }

    pub(super) fn round_asked(&mut self, asked: &ModelAsked) {
        self.rounds += 1;
        self.budget_tokens.get_or_insert(asked.budget_tokens);
        self.fixed = self.fixed.take().or_else(|| FixedTexts::read(&asked.fixed));
    }
}

pub(super) fn title(skill: &SkillId, role: Option<&RoleId>) -> String {
    match role {
        Some(role) => format!("{skill} ({role})"),
        None => skill.to_string(),
    }
}

/// What a run hands in.
struct Submission {
    outputs: BTreeMap<Tag, Arc<str>>,
    summary: String,
    questions: Vec<Question>,
}

impl Session {
    /// Starts a run; of a skill whose work waits to be mended, a rerun.
    pub(super) fn start_run(&mut self, skill: SkillId, role: Option<RoleId>, answers_call: Option<String>) -> Vec<Effect> {
        let id = RunId(self.runs.len() as u64 + 1);
        let work = self.works.entry((skill.clone(), role.clone())).or_default().clone();
        let mends = work.to_mend(&self.artifacts);
        let variant = self.instance.as_ref().and_then(|instance| instance.variant(&skill));
        self.runs.push(Run {
            id,
            state: RunState::Working,
            mends,
            rounds: 0,
            budget_tokens: None,
            fixed: None,
            started: self.revision,
            pack: self.pack_in_use().hash.clone(),
            variant,
            turn: self.turn,
            notes: if mends.is_some() { work.notes } else { vec![] },
            answers: work.answers,
            draft: mends.map(|artifact| self.artifact(artifact).items.clone()).unwrap_or_default(),
            answers_call,
            messages: vec![],
            skill,
            role,
        });
        self.ask(Asker::Worker(id))
    }

    /// Returns a run's first messages and how they came about: the same now as when it started.
    pub fn run_context(&self, run: RunId, budget_tokens: u32, count: &dyn TokenCount) -> Result<Context, ContextError> {
        let run = self.run(run);
        let (pack, skill) = self.declared(run);
        let draft = run.draft.iter().map(|(tag, number)| (tag.clone(), self.board.item(*number).content.clone())).collect();
        let input = RunInput { role: run.role.clone(), notes: run.notes.clone(), draft, answers: run.answers.clone() };
        let fixed = run.fixed.clone().unwrap_or_default();
        let assembly = Assembly {
            pack,
            skill,
            run: &input,
            board: self.board.at(run.started),
            variant: run.variant.as_deref(),
            turn: run.turn,
            budget_tokens,
            fixed: &fixed,
        };
        context::assemble(&assembly, count)
    }

    fn declared(&self, run: &Run) -> (&Pack, &Skill) {
        let pack = &self.packs[&run.pack];
        (pack, pack.skill(run.skill.as_str()).expect("a run's skill is in its pack"))
    }

    pub(super) fn worker_prompt(
        &self,
        id: RunId,
        budget_tokens: u32,
        count: &dyn TokenCount,
    ) -> Result<(Prompt, context::Trace), ContextError> {
        let Context { mut messages, trace } = self.run_context(id, budget_tokens, count)?;
        messages.extend(self.run(id).messages.iter().cloned());
        let fixed = self.run(id).fixed.clone().unwrap_or_default().list();
        let prompt = Prompt { messages, tools: tools::WORKER_TOOLS.iter().collect(), prefix: trace.prefix.clone(), fixed };
        Ok((prompt, trace))
    }

    fn ask_worker(&mut self, run: RunId) -> Vec<Effect> {
        if self.run(run).rounds >= ROUNDS_MAX {
            let message = format!(
                "{} had {ROUNDS_MAX} rounds and handed in nothing that can be used; retry, or choose another model",
                self.run(run).title()
            );
            return self.work_failed(Asker::Worker(run), CauseKind::Failed, message);
        }
        self.ask(Asker::Worker(run))
    }

    /// Goes on with a run that failed or was stopped, from its last recorded round.
    pub(super) fn resume_run(&mut self, id: RunId) -> Vec<Effect> {
        let run = self.run_mut(id);
        run.state = RunState::Working;
        run.rounds = 0;
        self.ask(Asker::Worker(id))
    }

    pub(super) fn worker_replied(&mut self, now: Timestamp, id: RunId, reply: Reply) -> Vec<Effect> {
        if reply.calls.is_empty() {
            return self.worker_wrote(now, id, &reply);
        }
        let was_cut = reply.finish == Finish::Length;
        let mut calls = reply.calls;
        name_calls(&mut calls, &self.run(id).messages, self.calls);
        let read: Vec<Result<WorkerCall, String>> = calls.iter().map(|call| tools::read_worker_call(call, was_cut)).collect();
        let submits = calls.iter().filter(|call| call.name == "submit").count();
        self.run_mut(id).messages.push(Message::Assistant { text: reply.text, reasoning: reply.reasoning, calls: calls.clone() });
        let outcome = match submits {
            0 | 1 => self.worker_means(id, &read),
            _ => Err("a run hands in once: put all outputs into one `submit`; nothing was handed in".to_owned()),
        };
        match outcome {
            Ok(Meant::Submit(submission)) => {
                for call in calls.iter().filter(|_| submission.outputs.is_empty()) {
                    self.answer_worker(id, call.id.clone(), "error: nothing was handed in: `outputs` is empty".to_owned());
                }
                self.hand_in(now, id, submission)
            }
            Ok(Meant::Ask { questions, call }) => {
                for other in calls.iter().enumerate().filter(|(index, _)| *index != call).map(|(_, other)| other.id.clone()) {
                    self.answer_worker(id, other, "not taken: the questions are asked first".to_owned());
                }
                self.run_asks(id, questions)
            }
            Err(fault) => {
                for (call, read) in calls.iter().zip(read) {
                    let fault = read.err().unwrap_or_else(|| fault.clone());
                    self.answer_worker(id, call.id.clone(), format!("error: {fault}"));
                }
                self.ask_worker(id)
            }
        }
    }

    fn answer_worker(&mut self, run: RunId, call_id: String, text: String) {
        self.run_mut(run).messages.push(Message::Tool { call_id, text: text.into() });
    }

    /// Draws a reply's calls together: a submit takes the questions beside it along.
    fn worker_means(&self, run: RunId, read: &[Result<WorkerCall, String>]) -> Result<Meant, String> {
        if let Some(fault) = read.iter().find_map(|call| call.as_ref().err()) {
            return Err(fault.clone());
        }
        let mut questions: Vec<Question> = vec![];
        let mut ask_index = 0;
        let mut submitted = None;
        for (index, call) in read.iter().flatten().enumerate() {
            match call {
                WorkerCall::Submit { outputs, summary, questions: asked } => {
                    questions.extend(asked.iter().cloned());
                    submitted = Some((outputs.clone(), summary.clone()));
                }
                WorkerCall::AskUser { questions: asked } => {
                    ask_index = index;
                    questions.extend(asked.iter().cloned());
                }
            }
        }
        match submitted {
            Some((outputs, summary)) if !outputs.is_empty() => {
                Ok(Meant::Submit(Submission { outputs: self.checked_outputs(run, outputs)?, summary, questions }))
            }
            Some(_) | None if !questions.is_empty() => Ok(Meant::Ask { questions, call: ask_index }),
            Some((_, summary)) => Ok(Meant::Submit(Submission { outputs: BTreeMap::new(), summary, questions })),
            None => Err("call `submit` with your work, or `ask_user`".to_owned()),
        }
    }

    /// Holds outputs against the run's output tags; one outside fails the whole.
    fn checked_outputs(&self, run: RunId, outputs: BTreeMap<String, String>) -> Result<BTreeMap<Tag, Arc<str>>, String> {
        let run = self.run(run);
        let (pack, skill) = self.declared(run);
        let allowed = skill.outputs_for(run.role.as_ref());
        let mut checked = BTreeMap::new();
        for (raw, text) in outputs {
            let tag = Tag::parse(&raw).map_err(|error| error.to_string())?;
            if !allowed.iter().any(|pattern| pattern.matches(&tag)) {
                let allowed: Vec<&str> = allowed.iter().map(|pattern| pattern.as_str()).collect();
                return Err(format!(
                    "`{tag}` is not one of your output tags; they are: {}; nothing was handed in",
                    allowed.join(", ")
                ));
            }
            if pack.is_table(&tag)
                && let Err(error) = serde_json::from_str::<Patch>(&text)
            {
                return Err(format!(
                    "`{tag}` is a table: hand in {{\"patch\": {{key: value}}, \"expectedRev\": {{key: rev}}}} ({error}); nothing was handed in"
                ));
            }
            checked.insert(tag, text.into());
        }
        Ok(checked)
    }

    /// Reads a reply without a call.
    fn worker_wrote(&mut self, now: Timestamp, id: RunId, reply: &Reply) -> Vec<Effect> {
        let run = self.run(id);
        let only_output = self.declared(run).1.only_output(run.role.as_ref());
        let written = reply::worker_outputs(&reply.text, only_output.as_ref());
        let was_cut = reply.finish == Finish::Length || written.as_ref().is_some_and(|written| written.cut);
        let meant = match written {
            _ if reply.text.trim().is_empty() => {
                Err("your reply was empty: call `submit` with your work, or `ask_user`".to_owned())
            }
            _ if was_cut => {
                Err("your reply was cut off at the length limit and was not taken; hand in a shorter text".to_owned())
            }
            None => Err("a reply without a call cannot be taken here: call `submit` with a text for each output tag".to_owned()),
            Some(written) if written.outputs.is_empty() && !written.questions.is_empty() => {
                Ok(Meant::Ask { questions: written.questions, call: 0 })
            }
            Some(written) => self
                .checked_outputs(id, written.outputs)
                .map(|outputs| Meant::Submit(Submission { outputs, summary: written.summary, questions: written.questions })),
        };
        if !reply.text.trim().is_empty() {
            let said = Message::Assistant { text: reply.text.clone(), reasoning: reply.reasoning.clone(), calls: vec![] };
            self.run_mut(id).messages.push(said);
        }
        match meant {
            Ok(Meant::Submit(submission)) => {
                if submission.outputs.is_empty() {
                    self.run_mut(id).messages.push(Message::user("nothing was handed in: there is no output"));
                }
                self.hand_in(now, id, submission)
            }
            Ok(Meant::Ask { questions, .. }) => self.run_asks(id, questions),
            Err(fault) => {
                if was_cut {
                    self.keep_incomplete(self.calls, reply.text.clone(), "cut off at the length limit");
                }
                self.run_mut(id).messages.push(Message::user(fault));
                self.ask_worker(id)
            }
        }
    }

    fn run_asks(&mut self, id: RunId, questions: Vec<Question>) -> Vec<Effect> {
        let title = self.run(id).title();
        self.log(format!("{title}: asks the user"));
        let card = self.card(questions).expect("an asking run has a question");
        match self.run(id).mends {
            // A rerun that asks ends: its questions go to the version before, where all are optional.
            Some(artifact) => {
                self.end_run(id, RunState::Ended);
                let card = card.all_optional();
                self.wait(Waiting::ReviewArtifact { artifact, card: Some(card), cause: None });
            }
            None => {
                self.run_mut(id).state = RunState::Asking;
                self.wait(Waiting::WorkerQuestions { run: id, card });
            }
        }
        vec![]
    }

    /// Goes on with a run that asked.
    pub(super) fn run_answered(&mut self, id: RunId, card: &Card, answers: &[Answer]) -> Vec<Effect> {
        let told = card.told(answers);
        self.tell_words(&format!("user: answered {}", self.run(id).title()), &told);
        let (skill, role) = (self.run(id).skill.clone(), self.run(id).role.clone());
        self.works.entry((skill, role)).or_default().answers.push(told.clone());
        let run = self.run_mut(id);
        run.state = RunState::Working;
        let open =
            run.messages.iter().flat_map(Message::calls).map(|call| call.id.clone()).find(|call| {
                !run.messages.iter().any(|message| matches!(message, Message::Tool { call_id, .. } if call_id == call))
            });
        match open {
            Some(call) => self.answer_worker(id, call, told),
            None => run.messages.push(Message::user(told)),
        }
        self.ask_worker(id)
    }

    fn hand_in(&mut self, now: Timestamp, id: RunId, submission: Submission) -> Vec<Effect> {
        if submission.outputs.is_empty() {
            let message = format!("{} handed in nothing: {}", self.run(id).title(), submission.summary);
            return self.work_failed(Asker::Worker(id), CauseKind::Failed, message);
        }
        let acceptance = self.declared(self.run(id)).1.acceptance;
        let artifact = self.write_artifact(now, id, submission.outputs, submission.summary);
        self.end_run(id, RunState::HandedIn(artifact));
        match acceptance {
            Acceptance::UserConfirmed => {
                let card = self.card(submission.questions).map(Card::all_optional);
                self.wait(Waiting::ReviewArtifact { artifact, card, cause: None });
                vec![]
            }
            Acceptance::NoConfirmation => {
                self.log_questions(id, &submission.questions);
                self.accept_for_pack(now, artifact, &submission.questions)
            }
            Acceptance::ProgrammaticReview if self.artifact(artifact).failed_checks.is_empty() => {
                self.log_questions(id, &submission.questions);
                self.accept_for_pack(now, artifact, &submission.questions)
            }
            Acceptance::ProgrammaticReview => self.checks_failed(artifact),
        }
    }

    fn log_questions(&mut self, id: RunId, questions: &[Question]) {
        let title = self.run(id).title();
        for question in questions {
            self.log(format!("{title}: asks: {}", one_line(&question.prompt, 160)));
        }
    }

    pub(super) fn end_run(&mut self, id: RunId, state: RunState) {
        let run = self.run_mut(id);
        run.state = state;
        run.messages.clear();
    }

    /// A run that failed or was stopped waits for the user: where it mends something, beside the version before.
    pub(super) fn run_failed(&mut self, id: RunId, cause: Cause) {
        let cause = Some(cause);
        match self.run(id).mends {
            Some(artifact) => self.wait(Waiting::ReviewArtifact { artifact, card: None, cause }),
            None => self.wait(Waiting::Input { message: None, cause, card: None }),
        }
    }

    /// Tells the agent a run's outcome, where its call still waits.
    pub(super) fn answer_for_run(&mut self, id: RunId, outcome: String) {
        if let Some(call) = self.run(id).answers_call.clone() {
            self.answer_call(&call, outcome);
        }
    }
}

enum Meant {
    Submit(Submission),
    Ask { questions: Vec<Question>, call: usize },
}

impl Work {
    /// Returns the artifact the next run has to mend.
    fn to_mend(&self, artifacts: &[Artifact]) -> Option<ArtifactId> {
        let artifact = self.artifact?;
        let is_sent_back = artifacts[artifact.0 as usize - 1].state == ArtifactState::RevisionRequested;
        (is_sent_back || !self.notes.is_empty()).then_some(artifact)
    }
}
