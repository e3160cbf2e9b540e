//! What the user does. Which action is heard when is said by [`Phase::hears`] and [`Session::hears`]; here stands what follows.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::agent::Messages;
use super::{Asker, CauseKind, Effect, Heard, LATEST_INPUT, Phase, Refusal, RunState, Session, Stage, Waiting};
use crate::artifact::ArtifactState;
use crate::blackboard::{ItemState, Source};
use crate::event::{Action, Budget, Target};
use crate::ids::{ArtifactId, CardId, ItemNumber, Timestamp};
use crate::pack::{IntakeField, PackFiles};
use crate::question::{Answer, Card};
use crate::table::{CellError, Table};
use crate::tag::Tag;

/// The intake's fields and what the user has said to them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Intake {
    /// The fields, in order.
    pub fields: Vec<IntakeField>,
    /// Values by field id.
    pub values: BTreeMap<String, String>,
    /// What fits no field.
    pub notes: Vec<String>,
    #[serde(skip)]
    is_confirmed: bool,
    #[serde(skip)]
    is_missing_named: bool,
}

impl Intake {
    pub(super) fn new(fields: Vec<IntakeField>) -> Self {
        Self { fields, ..Self::default() }
    }

    /// Returns the labels of required fields without a value.
    pub fn missing(&self) -> Vec<&str> {
        self.missing_fields().map(|field| field.label.as_str()).collect()
    }

    fn missing_fields(&self) -> impl Iterator<Item = &IntakeField> {
        self.fields.iter().filter(|field| field.required && !self.values.contains_key(&field.id))
    }

    /// Reads the user's words: `label: value` lines; else the one missing field; else a note.
    fn read(&mut self, text: &str) {
        let mut is_lines = false;
        let mut rest = vec![];
        for line in text.lines() {
            let field = line.split_once([':', '：']).and_then(|(label, value)| Some((self.field(label)?, value.trim())));
            match field {
                Some((id, value)) if !value.is_empty() => {
                    is_lines = true;
                    self.values.insert(id, value.to_owned());
                }
                Some(_) | None => rest.push(line),
            }
        }
        let rest = rest.join("\n").trim().to_owned();
        let missing: Vec<String> = self.missing_fields().map(|field| field.id.clone()).collect();
        match missing.as_slice() {
            _ if rest.is_empty() => {}
            [only] if !is_lines => {
                self.values.insert(only.clone(), rest);
            }
            _ => self.notes.push(rest),
        }
    }

    fn field(&self, label: &str) -> Option<String> {
        let label = label.trim().trim_start_matches(['-', '*', '•']).trim().to_lowercase();
        let is_meant = |field: &&IntakeField| field.label.to_lowercase() == label || field.id.to_lowercase() == label;
        self.fields.iter().find(is_meant).map(|field| field.id.clone())
    }

    /// The confirmed text: `label: value` lines in the fields' order, then the notes.
    fn text(&self) -> String {
        let values = self.fields.iter().filter_map(|field| Some(format!("{}: {}", field.label, self.values.get(&field.id)?)));
        values.chain(self.notes.iter().cloned()).collect::<Vec<_>>().join("\n")
    }
}

impl Session {
    pub(super) fn user_did(&mut self, now: Timestamp, action: Action) -> Heard {
        if !self.phase.hears(action.verb()) {
            return Err(self.refuse(format!("`{}` is not heard now", action.verb().as_str())));
        }
        match action {
            Action::SelectPack { pack } => self.selected_pack(&pack),
            Action::SubmitInput { text, values } => self.submitted_input(now, text, values),
            Action::ConfirmIntake => self.confirmed_intake(now),
            Action::Approve { decision } => self.approved(&decision),
            Action::RejectStep { decision, reason } => self.rejected_step(&decision, &reason),
            Action::Accept { artifact } => self.accepted(now, &artifact),
            Action::Reject { artifact, reason } => self.rejected(&artifact, reason),
            Action::Discard { artifact } => self.discarded(&artifact),
            Action::Answer { card, answers } => self.answered_card(&card, &answers),
            Action::Skip { card } => self.skipped_card(&card),
            Action::Retry => self.retried(),
            Action::SetBudget { budget } => Ok(self.budget_set(budget)),
            Action::Stop => Ok(self.stopped(now)),
            Action::Finish => Ok(self.finished(now)),
            Action::EditItem { tag, base, text } => self.edited_item(now, tag, base, text),
            Action::EditCell { tag, key, value, rev } => self.edited_cell(now, &tag, |table| table.edit(&key, value, rev)),
            Action::ReleaseCell { tag, key, rev } => self.edited_cell(now, &tag, |table| table.release(&key, rev)),
            Action::UpgradePack { pack } => self.upgraded_pack(&pack),
            Action::Reveal => Ok(self.show_hidden()),
            Action::StartTask { task, title, grants } => self.started_task(now, &task, &title, grants),
            Action::CancelTask { task } => self.cancelled_task(now, task),
        }
    }

    fn selected_pack(&mut self, files: &PackFiles) -> Heard {
        let pack = self.usable(files)?;
        self.log(format!("user: chose the pack {}", pack.name));
        self.begin(pack);
        Ok(vec![])
    }

    fn submitted_input(&mut self, now: Timestamp, text: Arc<str>, values: BTreeMap<String, String>) -> Heard {
        let waiting = self.waiting().clone();
        if text.trim().is_empty() && values.is_empty() {
            return Err(self.refuse("nothing was said"));
        }
        if !values.is_empty() && waiting != Waiting::Intake {
            return Err(self.refuse("there are no fields to fill now"));
        }
        match waiting {
            Waiting::Intake => self.filled_intake(&text, values),
            Waiting::Input { .. } => Ok(self.said(now, text)),
            Waiting::ApproveStep(_) => self.rejected_step(&None, &text),
            Waiting::ReviewArtifact { .. } => self.rejected(&None, text),
            Waiting::WorkerQuestions { run, card } => {
                self.begin_burst(Messages::GoOn);
                Ok(self.run_answered(run, &card, &card.answer_all(&text)))
            }
            Waiting::Revision { artifact, .. } => Ok(self.sent_back(artifact, Some(text))),
            Waiting::SkillSelection => unreachable!("words are not heard while a pack is chosen"),
        }
    }

    fn filled_intake(&mut self, text: &str, values: BTreeMap<String, String>) -> Heard {
        if let Some(unknown) = values.keys().find(|id| !self.intake.fields.iter().any(|field| field.id == **id)) {
            let ids: Vec<&str> = self.intake.fields.iter().map(|field| field.id.as_str()).collect();
            return Err(self.refuse(format!("there is no field `{unknown}`; there are: {}", ids.join(", "))));
        }
        self.log("user: filled in the intake");
        self.intake.values.extend(values.into_iter().filter(|(_, value)| !value.trim().is_empty()));
        self.intake.read(text);
        let missing = self.intake.missing().join(", ");
        if !missing.is_empty() && !self.intake.is_missing_named {
            self.intake.is_missing_named = true;
            self.log(format!("intake: still open: {missing}"));
        }
        Ok(vec![])
    }

    fn confirmed_intake(&mut self, now: Timestamp) -> Heard {
        let missing = self.intake.missing().join(", ");
        if !missing.is_empty() {
            return Err(self.refuse(format!("the intake still needs: {missing}")));
        }
        let text = self.intake.text();
        self.intake.is_confirmed = true;
        if let Some(target) = self.pack_in_use().startup.target.clone() {
            self.write(now, target, text.as_str().into(), Source::User, ItemState::Accepted, &[]);
        }
        self.tell_words("user: confirmed the intake", &text);
        self.begin_burst(Messages::Anew);
        Ok(self.ask_agent())
    }

    fn said(&mut self, now: Timestamp, text: Arc<str>) -> Vec<Effect> {
        if self.stage == Stage::Play {
            self.turn += 1;
        }
        let latest = Tag::parse(LATEST_INPUT).expect("a tag of our own");
        let is_first = self.board.newest(&latest).is_none() && !self.intake.is_confirmed;
        let target = self.pack_in_use().startup.target.clone().filter(|target| is_first && *target != latest);
        for tag in [Some(latest), target].into_iter().flatten() {
            self.write(now, tag, text.clone(), Source::User, ItemState::Accepted, &[]);
        }
        self.tell_words("user", &text);
        self.new_burst()
    }

    /// Starts a burst with a new opening; a run that waited for `retry` is given up.
    fn new_burst(&mut self) -> Vec<Effect> {
        self.give_up_waiting_run();
        self.begin_burst(Messages::Anew);
        self.ask_agent()
    }

    /// Ends the run that waits to be retried, where one does.
    fn give_up_waiting_run(&mut self) {
        if let Some(Asker::Worker(run)) = self.phase.waiting().and_then(Waiting::cause).map(|cause| cause.again) {
            self.end_run(run, RunState::Ended);
        }
    }

    fn approved(&mut self, decision: &Target) -> Heard {
        let Waiting::ApproveStep(pending) = self.waiting().clone() else { unreachable!("heard only here") };
        self.check_named(decision, "decision", pending.id.0)?;
        self.log(format!("user: approved decision {}", pending.id));
        self.begin_burst(Messages::GoOn);
        Ok(self.start_run(pending.skill, pending.role, Some(pending.answers)))
    }

    fn rejected_step(&mut self, decision: &Target, reason: &str) -> Heard {
        let Waiting::ApproveStep(pending) = self.waiting().clone() else { unreachable!("heard only here") };
        self.check_named(decision, "decision", pending.id.0)?;
        let what = format!("user: does not want {} to run now", pending.skill);
        if reason.trim().is_empty() {
            self.tell(what);
        } else {
            self.tell_words(&what, reason);
        }
        Ok(self.new_burst())
    }

    fn accepted(&mut self, now: Timestamp, artifact: &Target) -> Heard {
        let id = self.pending_artifact(artifact)?;
        self.leave_revision(id);
        if self.artifact(id).state == ArtifactState::Accepted {
            self.throw_away(id);
            self.tell(format!("user: keeps artifact {id} as it is"));
            return Ok(self.new_burst());
        }
        self.tell(format!("user: accepted artifact {id} of {}", self.artifact(id).skill));
        self.give_up_waiting_run();
        for sentence in self.accept(now, id) {
            self.tell(format!("artifact {id}: not written: {sentence}"));
        }
        self.begin_burst(Messages::Anew);
        Ok(self.after_acceptance(id))
    }

    fn rejected(&mut self, artifact: &Target, reason: Arc<str>) -> Heard {
        let id = self.pending_artifact(artifact)?;
        if !reason.trim().is_empty() {
            return Ok(self.sent_back(id, Some(reason)));
        }
        let cause = self.waiting().cause().cloned();
        self.send_back(id, None);
        self.log(format!("user: rejected artifact {id}"));
        self.wait(Waiting::Revision { artifact: id, cause });
        Ok(vec![])
    }

    /// Sends an artifact back with a note, and has it mended at once.
    fn sent_back(&mut self, id: ArtifactId, note: Option<Arc<str>>) -> Vec<Effect> {
        if let Some(note) = &note {
            self.tell_words(&format!("user: sent artifact {id} back"), note);
        }
        self.give_up_waiting_run();
        self.leave_revision(id);
        self.send_back(id, note);
        self.begin_burst(Messages::Anew);
        let artifact = self.artifact(id);
        let (skill, role) = (artifact.skill.clone(), artifact.role.clone());
        self.start_run(skill, role, None)
    }

    fn leave_revision(&mut self, id: ArtifactId) {
        if matches!(self.waiting(), Waiting::Revision { .. }) {
            self.work_of(id).count_anew();
        }
    }

    fn discarded(&mut self, artifact: &Target) -> Heard {
        if let Waiting::WorkerQuestions { run, .. } = self.waiting() {
            let run = *run;
            if let Some(named) = artifact {
                return Err(self.refuse(format!("artifact {named} is not pending; a run asks you")));
            }
            self.end_run(run, RunState::Ended);
            self.clear_notes(run);
            self.tell(format!("user: cancelled {}", self.run(run).title()));
            return Ok(self.new_burst());
        }
        let id = self.pending_artifact(artifact)?;
        self.leave_revision(id);
        let skill = self.artifact(id).skill.clone();
        match self.artifact(id).state {
            ArtifactState::Accepted => self.tell(format!("user: keeps artifact {id} of {skill} as it is")),
            _ => self.tell(format!("user: discarded artifact {id} of {skill}")),
        }
        self.throw_away(id);
        Ok(self.new_burst())
    }

    fn answered_card(&mut self, card: &Target, answers: &[Answer]) -> Heard {
        let pending = self.pending_card(card)?;
        pending.check(answers).map_err(|fault| self.refuse(fault.to_string()))?;
        match self.waiting().clone() {
            Waiting::Input { .. } => {
                self.tell_words("user: answered", &pending.told(answers));
                Ok(self.new_burst())
            }
            Waiting::ReviewArtifact { artifact, .. } => {
                self.tell_words(&format!("user: answered the questions to artifact {artifact}"), &pending.told(answers));
                self.work_of(artifact).answers.push(pending.told(answers));
                Ok(self.sent_back(artifact, None))
            }
            Waiting::WorkerQuestions { run, .. } => {
                self.begin_burst(Messages::GoOn);
                Ok(self.run_answered(run, &pending, answers))
            }
            Waiting::SkillSelection | Waiting::Intake | Waiting::ApproveStep(_) | Waiting::Revision { .. } => {
                unreachable!("no card is open here")
            }
        }
    }

    fn skipped_card(&mut self, card: &Target) -> Heard {
        let pending = self.pending_card(card)?;
        pending.check(&[]).map_err(|fault| self.refuse(fault.to_string()))?;
        if let Waiting::WorkerQuestions { run, .. } = self.waiting() {
            let run = *run;
            self.begin_burst(Messages::GoOn);
            return Ok(self.run_answered(run, &pending, &[]));
        }
        self.tell("user: skipped the questions");
        let Phase::WaitingUser(Waiting::Input { card, .. } | Waiting::ReviewArtifact { card, .. }) = &mut self.phase else {
            unreachable!("no card is open here")
        };
        *card = None;
        Ok(vec![])
    }

    fn retried(&mut self) -> Heard {
        let cause = self.waiting().cause().cloned().expect("heard only with a cause");
        if cause.kind == CauseKind::BudgetSpent
            && let Some(limit) = self.budget_spent()
        {
            return Err(self.refuse(limit));
        }
        if let Some(artifact) = self.waiting().artifact() {
            self.leave_revision(artifact);
        }
        self.log("user: retry");
        match cause.again {
            Asker::Agent => {
                self.begin_burst(if cause.kind == CauseKind::BurstSpent { Messages::Anew } else { Messages::GoOn });
                Ok(self.ask_agent())
            }
            Asker::Worker(run) => {
                self.begin_burst(Messages::GoOn);
                Ok(self.resume_run(run))
            }
        }
    }

    fn budget_set(&mut self, budget: Budget) -> Vec<Effect> {
        self.budget = budget;
        self.log("user: set the budget");
        vec![]
    }

    fn stopped(&mut self, now: Timestamp) -> Vec<Effect> {
        self.count_time(now);
        let running = self.phase.running().cloned().expect("heard only while something runs");
        self.work_failed(running.asker(), CauseKind::Stopped, "stopped by you; retry goes on");
        running.broken_off_by().into_iter().collect()
    }

    fn finished(&mut self, now: Timestamp) -> Vec<Effect> {
        self.log("user: finish");
        self.count_time(now);
        let running = self.phase.running().cloned();
        for run in self.runs.iter().filter(|run| run.is_open()).map(|run| run.id).collect::<Vec<_>>() {
            self.end_run(run, RunState::Ended);
        }
        let broken_off = running.and_then(|running| running.broken_off_by());
        broken_off.into_iter().chain(self.end(now)).collect()
    }

    /// Ends the session, when nothing of its own runs any more; deep tasks are cancelled and what they found is kept.
    pub(super) fn end(&mut self, now: Timestamp) -> Vec<Effect> {
        let effects = self.cancel_tasks(now);
        self.phase = Phase::Done;
        self.stage = Stage::Done;
        effects
    }

    fn edited_item(&mut self, now: Timestamp, tag: Tag, base: Option<ItemNumber>, text: Arc<str>) -> Heard {
        if self.pack.as_ref().is_some_and(|pack| pack.is_table(&tag)) {
            return Err(self.refuse(format!("`{tag}` is a table; edit one cell of it with edit_cell")));
        }
        if self.is_hidden(&tag) {
            return Err(self.refuse(format!("`{tag}` is hidden from you; reveal it first")));
        }
        let newest = self.board.newest(&tag).map(|item| item.number);
        if let Some(base) = base
            && Some(base) != newest.or(Some(ItemNumber(0)))
        {
            let newest = newest.map_or("none".to_owned(), |number| number.to_string());
            return Err(self.refuse(format!(
                "`{tag}` was changed since: its newest item is {newest}, not {base}; look at it and edit that one"
            )));
        }
        match self.draft_under_review(&tag) {
            Some((artifact, draft)) => self.edit_draft(now, &tag, artifact, draft, text),
            None => {
                let from: Vec<ItemNumber> = newest.into_iter().collect();
                let number = self.write(now, tag.clone(), text, Source::User, ItemState::Accepted, &from);
                self.promote(now, &tag, number);
            }
        }
        self.tell(format!("user: edited {tag}"));
        Ok(vec![])
    }

    fn draft_under_review(&self, tag: &Tag) -> Option<(ArtifactId, ItemNumber)> {
        let artifact = self.waiting().artifact()?;
        let draft = *self.artifact(artifact).items.get(tag)?;
        (self.board.state(draft) == ItemState::Drafted).then_some((artifact, draft))
    }

    /// The user's version takes the draft's place in its artifact, which is looked at anew.
    fn edit_draft(&mut self, now: Timestamp, tag: &Tag, artifact: ArtifactId, draft: ItemNumber, text: Arc<str>) {
        self.board.settle(self.revision, draft, ItemState::Superseded);
        let number = self.write(now, tag.clone(), text, Source::User, ItemState::Drafted, &[draft]);
        self.artifact_mut(artifact).items.insert(tag.clone(), number);
        self.look_at(artifact);
        self.give_up_waiting_run();
        if let Phase::WaitingUser(Waiting::ReviewArtifact { cause, .. } | Waiting::Revision { cause, .. }) = &mut self.phase {
            *cause = None;
        }
    }

    fn edited_cell(&mut self, now: Timestamp, tag: &Tag, edit: impl FnOnce(&mut Table) -> Result<(), CellError>) -> Heard {
        if !self.pack.as_ref().is_some_and(|pack| pack.is_table(tag)) {
            return Err(self.refuse(format!("`{tag}` is not a table; edit it with edit_item")));
        }
        if self.is_hidden(tag) {
            return Err(self.refuse(format!("`{tag}` is hidden from you; reveal it first")));
        }
        let (mut table, base) = self.table(tag);
        edit(&mut table).map_err(|error| self.refuse(format!("`{tag}`: {error}")))?;
        let from: Vec<ItemNumber> = base.into_iter().collect();
        self.write(now, tag.clone(), table.content().into(), Source::User, ItemState::Accepted, &from);
        self.tell(format!("user: edited a cell of {tag}"));
        Ok(vec![])
    }

    fn upgraded_pack(&mut self, files: &PackFiles) -> Heard {
        let pack = self.usable(files)?;
        if self.pack.as_ref().is_some_and(|present| present.hash == pack.hash) {
            return Err(self.refuse("the session has this very version of the pack already"));
        }
        self.tell(format!("user: moved to {} {} ({})", pack.name, pack.version, pack.hash));
        if self.stage == Stage::Design && !pack.has_design() {
            self.stage = Stage::Play;
        }
        self.hold(pack);
        Ok(vec![])
    }

    fn show_hidden(&mut self) -> Vec<Effect> {
        self.revealed = true;
        self.log("user: revealed what was hidden");
        vec![]
    }

    fn waiting(&self) -> &Waiting {
        self.phase.waiting().expect("heard only in waiting_user")
    }

    fn pending_artifact(&self, named: &Target) -> Result<ArtifactId, Refusal> {
        let id = self.waiting().artifact().expect("heard only where an artifact waits");
        self.check_named(named, "artifact", id.0)?;
        Ok(id)
    }

    fn pending_card(&self, named: &Target) -> Result<Card, Refusal> {
        let card = self.waiting().card().cloned().expect("heard only where a card is open");
        let CardId(id) = card.id;
        self.check_named(named, "card", id)?;
        Ok(card)
    }

    fn check_named(&self, named: &Target, what: &str, pending: u64) -> Result<(), Refusal> {
        match named {
            Some(named) if *named != pending.to_string() => {
                Err(self.refuse(format!("{what} {named} is not the pending one; {what} {pending} is")))
            }
            Some(_) | None => Ok(()),
        }
    }
}
