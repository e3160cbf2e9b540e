//! What becomes of artifacts: drafts become facts by the user's word or the pack's, or go back with notes.
//!
//! Notes of a skill (and role) gather until its work is accepted or thrown away; a rerun gets all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use unicode_segmentation::UnicodeSegmentation;

use super::agent::one_line;
use super::{Effect, Session, Waiting};
use crate::artifact::{Artifact, ArtifactState, Verdict};
use crate::blackboard::{ItemState, Source};
use crate::check;
use crate::context::{Note, NoteSource};
use crate::ids::{ArtifactId, ItemNumber, Revision, RunId, SkillId, Timestamp};
use crate::pack::{Rule, Skill};
use crate::question::Question;
use crate::table::{Patch, Table};
use crate::tag::{RoleId, Tag};

/// How often checks or reviews may fail in a row before the user is asked.
const FAILS_IN_A_ROW_MAX: u32 = 3;

/// What is to be mended of one skill's work, in one role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Work {
    /// The last artifact that was not thrown away.
    pub artifact: Option<ArtifactId>,
    /// What to mend, oldest first.
    pub notes: Vec<Note>,
    /// What the user answered under review, as text.
    pub answers: Vec<String>,
    checks_failed: u32,
    reviews_failed: u32,
}

impl Work {
    fn settle(&mut self) {
        self.notes.clear();
        self.answers.clear();
        self.checks_failed = 0;
    }

    pub(super) fn count_anew(&mut self) {
        self.checks_failed = 0;
        self.reviews_failed = 0;
    }
}

impl Session {
    pub(super) fn work_of(&mut self, artifact: ArtifactId) -> &mut Work {
        let artifact = &self.artifacts[artifact.0 as usize - 1];
        self.works.entry((artifact.skill.clone(), artifact.role.clone())).or_default()
    }

    /// Finds the work a review looks at: of the same role, else the skill's latest.
    pub(super) fn reviewed(&self, skill: &SkillId, role: Option<&RoleId>) -> Option<ArtifactId> {
        let of_role = self.work(skill, role).and_then(|work| work.artifact);
        of_role.or_else(|| match role {
            Some(_) => None,
            None => self.works.iter().filter(|((other, _), _)| other == skill).filter_map(|(_, work)| work.artifact).max(),
        })
    }

    /// Writes what a run hands in: drafts, and what it does not hand in again is carried over from the version before.
    pub(super) fn write_artifact(
        &mut self,
        now: Timestamp,
        run: RunId,
        outputs: BTreeMap<Tag, Arc<str>>,
        summary: String,
    ) -> ArtifactId {
        let id = ArtifactId(self.artifacts.len() as u64 + 1);
        let (skill, role, mends) = {
            let run = self.run(run);
            (run.skill.clone(), run.role.clone(), run.mends)
        };
        let before = mends.map(|artifact| self.artifact(artifact).items.clone()).unwrap_or_default();
        let mut items = BTreeMap::new();
        for (tag, text) in outputs {
            let replaced: Vec<ItemNumber> = before.get(&tag).copied().into_iter().collect();
            for number in replaced.iter().copied() {
                if self.board.state(number) == ItemState::Drafted {
                    self.board.settle(self.revision, number, ItemState::Superseded);
                }
            }
            let number = self.write(now, tag.clone(), text, Source::Run(run), ItemState::Drafted, &replaced);
            items.insert(tag, number);
        }
        for (tag, number) in before {
            if self.board.state(number).stands() {
                items.entry(tag).or_insert(number);
            }
        }
        if let Some(before) = mends
            && self.artifact(before).state != ArtifactState::Accepted
        {
            self.artifact_mut(before).state = ArtifactState::Superseded;
        }
        let title = super::worker::title(&skill, role.as_ref());
        let sizes = self.sizes(&items);
        let told = one_line(self.summary_told(&items, &summary), 160);
        self.log(format!("{title}: handed in artifact {id} ({sizes}): {told}"));
        self.artifacts.push(Artifact {
            id,
            run,
            skill,
            role,
            items,
            summary: summary.into(),
            state: ArtifactState::Drafted,
            failed_checks: vec![],
            verdict: None,
        });
        self.look_at(id);
        self.work_of(id).artifact = Some(id);
        id
    }

    /// Says in words how long an artifact's texts are. Of hidden ones the agent learns only that they exist.
    fn sizes(&self, items: &BTreeMap<Tag, ItemNumber>) -> String {
        let size = |(tag, number): (&Tag, &ItemNumber)| match self.is_hidden(tag) {
            true => format!("{tag}: hidden"),
            false => format!("{tag}: {} characters", self.board.item(*number).content.graphemes(true).count()),
        };
        items.iter().map(size).collect::<Vec<_>>().join(", ")
    }

    /// Returns what the worker says of an artifact, unless that might tell of a hidden text.
    pub(super) fn summary_told<'a>(&self, items: &BTreeMap<Tag, ItemNumber>, summary: &'a str) -> &'a str {
        let may_tell = items.keys().any(|tag| self.is_hidden(tag)) && !summary.is_empty();
        if may_tell { "(hidden)" } else { summary }
    }

    /// Holds an artifact's present texts against its skill's checks, and reads a review's verdict.
    pub(super) fn look_at(&mut self, id: ArtifactId) {
        let artifact = self.artifact(id);
        let texts: BTreeMap<Tag, Arc<str>> =
            artifact.items.iter().map(|(tag, number)| (tag.clone(), self.board.item(*number).content.clone())).collect();
        let pack = self.pack_in_use();
        let Some(skill) = pack.skill(artifact.skill.as_str()) else { return };
        let mut failed = check::failed(&skill.checks, &texts);
        let verdict = skill.reviews.is_some().then(|| check::verdict(texts.values().map(AsRef::as_ref))).flatten();
        if needs_verdict(skill) && verdict.is_none() {
            failed.push("no text begins with a line `verdict: pass` or `verdict: fail`".to_owned());
        }
        let artifact = self.artifact_mut(id);
        artifact.failed_checks = failed;
        artifact.verdict = verdict;
    }

    /// Accepts for the pack, and lets the agent go on.
    pub(super) fn accept_for_pack(&mut self, now: Timestamp, id: ArtifactId, questions: &[Question]) -> Vec<Effect> {
        let unwritten = self.accept(now, id);
        let report: String = unwritten.iter().map(|sentence| format!("\nnot written: {sentence}")).collect();
        let run = self.artifact(id).run;
        let asked: String = questions.iter().map(|question| format!("\nquestion: {}", question.prompt)).collect();
        let Artifact { items, summary, .. } = self.artifact(id);
        let outcome =
            format!("artifact {id} accepted ({}): {}{report}{asked}", self.sizes(items), self.summary_told(items, summary));
        self.log(format!("artifact {id}: accepted by the pack"));
        for sentence in unwritten {
            self.log(format!("artifact {id}: not written: {sentence}"));
        }
        self.answer_for_run(run, outcome);
        self.after_acceptance(id)
    }

    /// Makes an artifact's drafts facts and writes their promotions. Says of each cell of a table why it was passed by.
    pub(super) fn accept(&mut self, now: Timestamp, id: ArtifactId) -> Vec<String> {
        let artifact = self.artifact(id).clone();
        let mut unwritten = vec![];
        for (tag, number) in &artifact.items {
            if self.board.state(*number) != ItemState::Drafted {
                continue;
            }
            if self.pack_in_use().is_table(tag) {
                unwritten.extend(self.merge_patch(now, artifact.run, tag, *number));
                continue;
            }
            self.board.settle(self.revision, *number, ItemState::Accepted);
            self.promote(now, tag, *number);
        }
        self.artifact_mut(id).state = ArtifactState::Accepted;
        self.work_of(id).settle();
        unwritten
    }

    /// Writes the confirmed text of an accepted draft.
    pub(super) fn promote(&mut self, now: Timestamp, tag: &Tag, draft: ItemNumber) {
        if let Some(promotion) = tag.promotion() {
            let text = self.board.item(draft).content.clone();
            self.write(now, promotion, text, Source::Runtime, ItemState::Accepted, &[draft]);
        }
    }

    fn merge_patch(&mut self, now: Timestamp, run: RunId, tag: &Tag, number: ItemNumber) -> Vec<String> {
        let patch: Patch = match serde_json::from_str(&self.board.item(number).content) {
            Ok(patch) => patch,
            Err(error) => {
                // An upgraded pack may have made a table of a tag whose draft was carried over.
                self.board.settle(self.revision, number, ItemState::Rejected);
                return vec![format!("{tag} is not a patch of a table: {error}")];
            }
        };
        let started = self.run(run).started;
        let seen = self.table_at(tag, started);
        let (mut table, base) = self.table(tag);
        let passed_by = table.merge(&patch, &seen);
        self.board.settle(self.revision, number, ItemState::Superseded);
        let from: Vec<ItemNumber> = base.into_iter().chain([number]).collect();
        self.write(now, tag.clone(), table.content().into(), Source::Run(run), ItemState::Accepted, &from);
        match self.is_hidden(tag) {
            true => passed_by.iter().take(1).map(|_| format!("{tag}: {} cells", passed_by.len())).collect(),
            false => passed_by.into_iter().map(|sentence| format!("{tag}: {sentence}")).collect(),
        }
    }

    /// Returns a table's newest accepted version, and its item.
    pub(super) fn table(&self, tag: &Tag) -> (Table, Option<ItemNumber>) {
        let item = self.board.accepted(tag);
        let table = Table::read(item.map(|item| item.content.as_ref())).unwrap_or_default();
        (table, item.map(|item| item.number))
    }

    fn table_at(&self, tag: &Tag, at: Revision) -> Table {
        let view = self.board.at(at);
        let item = self.board.history(tag).rev().find(|item| view.state(item) == Some(ItemState::Accepted));
        Table::read(item.map(|item| item.content.as_ref())).unwrap_or_default()
    }

    /// What follows an acceptance: a review's verdict counts, then the agent goes on.
    pub(super) fn after_acceptance(&mut self, id: ArtifactId) -> Vec<Effect> {
        let artifact = self.artifact(id);
        let (Some(verdict), role) = (artifact.verdict, artifact.role.clone()) else { return self.ask_agent() };
        let pack = self.pack_in_use();
        let skill = artifact.skill.clone();
        let reviewed = pack.skill(skill.as_str()).and_then(|skill| skill.reviews.clone());
        let Some(reviewed) = reviewed.and_then(|reviewed| self.reviewed(&reviewed, role.as_ref())) else {
            return self.ask_agent();
        };
        let words: Vec<String> = artifact.items.values().map(|number| self.board.item(*number).content.to_string()).collect();
        match verdict {
            Verdict::Pass => {
                self.tell(format!("{skill}: pass"));
                self.work_of(reviewed).reviews_failed = 0;
                self.ask_agent()
            }
            Verdict::Fail => {
                let note = Note { from: NoteSource::Review(skill.clone()), text: words.join("\n\n").into() };
                let work = self.work_of(reviewed);
                work.notes.push(note);
                work.reviews_failed += 1;
                let is_third = work.reviews_failed >= FAILS_IN_A_ROW_MAX;
                let of = self.artifact(reviewed).skill.clone();
                self.tell(format!("{skill}: fail: the next run of {of} mends artifact {reviewed}"));
                if is_third {
                    self.wait(Waiting::Revision { artifact: reviewed, cause: None });
                    return vec![];
                }
                self.ask_agent()
            }
        }
    }

    /// The skill's checks do not hold: back to the agent, the third time in a row to the user.
    pub(super) fn checks_failed(&mut self, id: ArtifactId) -> Vec<Effect> {
        let failed = self.artifact(id).failed_checks.clone();
        self.artifact_mut(id).state = ArtifactState::RevisionRequested;
        let work = self.work_of(id);
        work.notes.extend(failed.iter().map(|check| Note { from: NoteSource::Check, text: check.as_str().into() }));
        work.checks_failed += 1;
        let is_third = work.checks_failed >= FAILS_IN_A_ROW_MAX;
        let hidden: Vec<&Tag> = self.artifact(id).items.keys().filter(|tag| self.is_hidden(tag)).collect();
        // A sentence may quote what it is about.
        let told = |sentence: &String| match hidden.iter().find(|tag| sentence.contains(tag.as_str())) {
            Some(tag) => format!("a check does not hold of `{tag}`, which is hidden"),
            None => sentence.clone(),
        };
        let sentences = failed.iter().map(told).collect::<Vec<_>>().join("; ");
        self.log(format!("artifact {id}: sent back by its checks: {}", one_line(&sentences, 160)));
        if is_third {
            self.wait(Waiting::Revision { artifact: id, cause: None });
            return vec![];
        }
        let run = self.artifact(id).run;
        self.answer_for_run(
            run,
            format!("artifact {id} was sent back by its checks: {sentences}. Run the skill again to have it mended."),
        );
        self.ask_agent()
    }

    /// Notes what the user wants mended.
    pub(super) fn send_back(&mut self, id: ArtifactId, note: Option<Arc<str>>) {
        if self.artifact(id).state != ArtifactState::Accepted {
            self.artifact_mut(id).state = ArtifactState::RevisionRequested;
        }
        let notes = note.map(|text| Note { from: NoteSource::User, text });
        self.work_of(id).notes.extend(notes);
    }

    /// Throws an artifact away; one that is a fact already stays one.
    pub(super) fn throw_away(&mut self, id: ArtifactId) {
        let artifact = self.artifact(id).clone();
        self.work_of(id).settle();
        if artifact.state == ArtifactState::Accepted {
            return;
        }
        for number in artifact.items.values() {
            if self.board.state(*number) == ItemState::Drafted {
                self.board.settle(self.revision, *number, ItemState::Rejected);
            }
        }
        self.artifact_mut(id).state = ArtifactState::Rejected;
        let stands = |other: &&Artifact| {
            let is_alike = other.skill == artifact.skill && other.role == artifact.role;
            is_alike && !matches!(other.state, ArtifactState::Rejected | ArtifactState::Superseded)
        };
        let before = self.artifacts.iter().rev().find(stands).map(|other| other.id);
        self.work_of(id).artifact = before;
    }

    /// Clears the notes and answers of a run that was thrown away.
    pub(super) fn clear_notes(&mut self, run: RunId) {
        let (skill, role) = (self.run(run).skill.clone(), self.run(run).role.clone());
        self.works.entry((skill, role)).or_default().settle();
    }
}

fn needs_verdict(skill: &Skill) -> bool {
    // A skill with the rule among its checks is told by that check.
    skill.reviews.is_some() && !skill.checks.iter().any(|check| check.rule == Rule::VerdictLine)
}
