//! What a session is at, and why it refuses, as sentences in the person's language.
//!
//! They are put together from the session's own data, not from the engine's English words. What has no such data (a
//! provider's message, a fault of the machine) is passed on as it is, and said to be so.

use quire_core::blackboard::ItemState;
use quire_core::event::{Action, Budget};
use quire_core::ids::{ArtifactId, ItemNumber, RunId, SkillId};
use quire_core::question::AnswerError;
use quire_core::session::{Asker, Cause, CauseKind, Phase, Refusal, Running, Session, Stage, TASKS_RUNNING_MAX, Verb, Waiting};
use quire_core::table::{CellError, Table};
use quire_core::tag::{RoleId, Tag};

use super::Lang;
use crate::out::printable;

/// Says in a clause what the session is at.
pub fn pending(lang: Lang, session: &Session) -> String {
    match session.phase() {
        Phase::Idle => lang.pending_idle(),
        Phase::Running(Running::Drawing) => lang.pending_chance(),
        Phase::Running(Running::Asking(asking)) => match asking.asker {
            Asker::Agent => lang.pending_agent(),
            Asker::Worker(run) => lang.pending_at_work(run_name(session, run)),
        },
        Phase::WaitingUser(waiting) => pending_waiting(lang, session, waiting),
        Phase::Done => lang.pending_done(),
        Phase::Error { reason } => lang.pending_error(reason),
    }
}

fn pending_waiting(lang: Lang, session: &Session, waiting: &Waiting) -> String {
    let artifact = |id: ArtifactId| {
        let artifact = session.artifact(id);
        let tags: Vec<&str> = artifact.items.keys().map(Tag::as_str).collect();
        lang.pending_artifact(id, name(session, &artifact.skill, artifact.role.as_ref()), tags.join(&lang.comma()))
    };
    let mut words = match waiting {
        Waiting::SkillSelection => lang.pending_pack(),
        Waiting::Intake => match session.intake().missing().as_slice() {
            [] => lang.pending_intake(),
            missing => lang.pending_intake_missing(missing.join(&lang.comma())),
        },
        Waiting::Input { .. } => lang.pending_input(),
        Waiting::ApproveStep(decision) => {
            lang.pending_decision(decision.id, name(session, &decision.skill, decision.role.as_ref()))
        }
        Waiting::ReviewArtifact { artifact: id, .. } => lang.pending_review(artifact(*id)),
        Waiting::WorkerQuestions { run, .. } => lang.pending_questions(run_name(session, *run)),
        Waiting::Revision { artifact: id, .. } => lang.pending_revision(artifact(*id)),
    };
    if let Some(card) = waiting.card() {
        words.push_str(&lang.pending_card(card.id));
    }
    if let Some(why) = waiting.cause() {
        words.push_str(&lang.pending_cause(cause(lang, session, why)));
    }
    words
}

/// Says why work stopped short, in the provider's own words where there are some.
pub fn cause(lang: Lang, session: &Session, cause: &Cause) -> String {
    match cause.kind {
        CauseKind::Failed => lang.cause_failed(&cause.message),
        CauseKind::Stopped => lang.cause_stopped(),
        CauseKind::BurstSpent => lang.cause_burst_spent(session.burst().max),
        CauseKind::BudgetSpent => budget_spent(lang, session).unwrap_or_else(|| lang.cause_failed(&cause.message)),
    }
}

/// Says which limit is reached; none where none is (any more).
fn budget_spent(lang: Lang, session: &Session) -> Option<String> {
    let Budget { rounds, tokens, money_micros, time_ms } = session.budget();
    let spent = session.spent();
    let used_tokens = spent.usage.input_tokens + spent.usage.output_tokens;
    let whole = |number: u64| number.to_string();
    let money = |micros: u64| format!("{:.4}", micros as f64 / 1e6);
    let seconds = |milliseconds: u64| format!("{:.1}", milliseconds as f64 / 1e3);
    if let Some(max) = rounds.filter(|max| spent.rounds >= *max) {
        return Some(lang.cause_budget_spent(whole(max), lang.unit_rounds(), whole(spent.rounds)));
    }
    if let Some(max) = tokens.filter(|max| used_tokens >= *max) {
        return Some(lang.cause_budget_spent(whole(max), lang.unit_tokens(), whole(used_tokens)));
    }
    if let Some(max) = money_micros.filter(|max| spent.usage.money_micros >= *max) {
        return Some(lang.cause_budget_spent(money(max), lang.unit_money(), money(spent.usage.money_micros)));
    }
    let max = time_ms.filter(|max| spent.time_ms >= *max)?;
    Some(lang.cause_budget_spent(seconds(max), lang.unit_time(), seconds(spent.time_ms)))
}

/// Says why an action was refused.
pub fn refusal(lang: Lang, session: &Session, action: &Action, refusal: &Refusal) -> String {
    match lang {
        Lang::En if !session.phase().hears(action.verb()) => lang.not_heard(verb(lang, action.verb())),
        Lang::En => refusal.message.clone(),
        Lang::Zh => found_out(lang, session, action).unwrap_or_else(|| lang.engine_says(&refusal.message)),
    }
}

/// Finds out from the session and the action what the refusal was about.
fn found_out(lang: Lang, session: &Session, action: &Action) -> Option<String> {
    if !session.phase().hears(action.verb()) {
        return Some(lang.not_heard(verb(lang, action.verb())));
    }
    let waiting = session.phase().waiting();
    match action {
        Action::SubmitInput { text, values } => {
            if text.trim().is_empty() && values.is_empty() {
                return Some(lang.nothing_said());
            }
            if !values.is_empty() && !matches!(waiting, Some(Waiting::Intake)) {
                return Some(lang.no_fields_now());
            }
            let fields = &session.intake().fields;
            let unknown = values.keys().find(|id| !fields.iter().any(|field| field.id == **id))?;
            let ids: Vec<&str> = fields.iter().map(|field| field.id.as_str()).collect();
            Some(lang.no_such_field(unknown, ids.join(&lang.comma())))
        }
        Action::ConfirmIntake => {
            let missing = session.intake().missing();
            (!missing.is_empty()).then(|| lang.intake_needs(missing.join(&lang.comma())))
        }
        Action::Approve { decision } | Action::RejectStep { decision, .. } => {
            let Some(Waiting::ApproveStep(pending)) = waiting else { return None };
            Some(lang.not_pending_decision(decision.as_ref()?, pending.id))
        }
        Action::Accept { artifact } | Action::Reject { artifact, .. } | Action::Discard { artifact } => {
            Some(lang.not_pending_artifact(artifact.as_ref()?, waiting?.artifact()?))
        }
        Action::Answer { card, answers } => card_refusal(lang, session, card.as_ref(), |card| card.check(answers)),
        Action::Skip { card } => card_refusal(lang, session, card.as_ref(), |card| card.check(&[])),
        Action::Retry => budget_spent(lang, session),
        Action::EditItem { tag, base, .. } => edit_refusal(lang, session, tag, *base),
        Action::EditCell { tag, key, value, rev } => {
            cell_refusal(lang, session, tag, |table| table.edit(key, value.clone(), *rev))
        }
        Action::ReleaseCell { tag, key, rev } => cell_refusal(lang, session, tag, |table| table.release(key, *rev)),
        Action::UpgradePack { pack } => {
            let is_same = session.pack().is_some_and(|present| present.hash == pack.hash());
            is_same.then(|| lang.same_pack())
        }
        Action::StartTask { task, .. } if task.trim().is_empty() => Some(lang.nothing_said()),
        Action::StartTask { .. } => {
            let running = session.tasks().iter().filter(|task| task.is_running()).count();
            (running >= TASKS_RUNNING_MAX).then(|| lang.too_many_tasks(running))
        }
        Action::CancelTask { task } => Some(match session.task(*task) {
            Some(_) => lang.task_over(task),
            None => lang.no_such_task(task),
        }),
        Action::SelectPack { .. } | Action::SetBudget { .. } | Action::Stop | Action::Finish | Action::Reveal => None,
    }
}

fn card_refusal(
    lang: Lang,
    session: &Session,
    named: Option<&String>,
    check: impl FnOnce(&quire_core::question::Card) -> Result<(), AnswerError>,
) -> Option<String> {
    let card = session.phase().waiting()?.card()?;
    if let Some(named) = named.filter(|named| **named != card.id.to_string()) {
        return Some(lang.not_pending_card(named, card.id));
    }
    check(card).err().map(|error| answer_error(lang, &error))
}

/// Says what is wrong with an answer.
pub fn answer_error(lang: Lang, error: &AnswerError) -> String {
    match error {
        AnswerError::UnknownQuestion { question, asked } => lang.answer_unknown(question, asked),
        AnswerError::NotOffered { question, option, offered } => lang.answer_not_offered(option, question, offered),
        AnswerError::Rewritten { question, option, label } => lang.answer_rewritten(option, question, label),
        AnswerError::Empty { question } => lang.answer_empty(question),
        AnswerError::Twice { question } => lang.answer_twice(question),
        AnswerError::RequiredOpen { questions } => lang.answer_required_open(questions),
    }
}

fn edit_refusal(lang: Lang, session: &Session, tag: &Tag, base: Option<ItemNumber>) -> Option<String> {
    if session.pack().is_some_and(|pack| pack.is_table(tag)) {
        return Some(lang.is_table(tag));
    }
    if session.is_hidden(tag) {
        return Some(lang.is_hidden(tag));
    }
    let newest = session.board().newest(tag).map_or_else(|| lang.none(), |item| item.number.to_string());
    Some(lang.changed_since(tag, newest, base?))
}

fn cell_refusal(
    lang: Lang,
    session: &Session,
    tag: &Tag,
    edit: impl FnOnce(&mut Table) -> Result<(), CellError>,
) -> Option<String> {
    if !session.pack().is_some_and(|pack| pack.is_table(tag)) {
        return Some(lang.is_no_table(tag));
    }
    if session.is_hidden(tag) {
        return Some(lang.is_hidden(tag));
    }
    let mut table = Table::read(session.board().accepted(tag).map(|item| item.content.as_ref())).ok()?;
    let error = edit(&mut table).err()?;
    Some(match error {
        CellError::Unknown(key) => lang.cell_unknown(key),
        CellError::Stale { key, seen, rev, value } => lang.cell_stale(key, rev, value, seen),
        CellError::NotEditable(key) => lang.cell_not_editable(key),
        CellError::NotYours(key) => lang.cell_not_yours(key),
    })
}

/// Names what would be heard now, as the commands that do it are called.
pub fn heard(lang: Lang, session: &Session) -> String {
    let mut verbs: Vec<String> = Verb::ALL.iter().filter(|verb| session.hears(**verb)).map(|heard| verb(lang, *heard)).collect();
    verbs.dedup();
    verbs.join(&lang.comma())
}

/// Names an action by the command that does it, in Chinese with its meaning.
fn verb(lang: Lang, verb: Verb) -> String {
    let (command, chinese) = match verb {
        Verb::SelectPack => ("select", "选技能包"),
        Verb::SubmitInput => ("say", "说话"),
        Verb::ConfirmIntake => ("confirm", "确认"),
        Verb::Approve => ("approve", "同意"),
        Verb::RejectStep => ("reject", "不同意"),
        Verb::Accept => ("accept", "接受"),
        Verb::Reject => ("reject", "退回"),
        Verb::Discard => ("discard", "丢弃"),
        Verb::Answer => ("answer", "回答"),
        Verb::Skip => ("skip", "跳过"),
        Verb::Retry => ("retry", "重试"),
        Verb::SetBudget => ("set-budget", "设预算"),
        Verb::Stop => ("stop", "停下"),
        Verb::Finish => ("finish", "结束"),
        Verb::EditItem => ("edit", "编辑"),
        Verb::EditCell => ("edit-cell", "改格"),
        Verb::ReleaseCell => ("release-cell", "还格"),
        Verb::UpgradePack => ("upgrade-pack", "升级技能包"),
        Verb::Reveal => ("reveal", "揭示"),
        Verb::StartTask => ("task start", "开深挖任务"),
        Verb::CancelTask => ("task cancel", "取消深挖任务"),
    };
    match lang {
        Lang::En => command.to_owned(),
        Lang::Zh => format!("{chinese} {command}"),
    }
}

/// Names a skill for a person, with its role where it has one.
pub fn name(session: &Session, skill: &SkillId, role: Option<&RoleId>) -> String {
    let name = session.pack().and_then(|pack| pack.skill(skill.as_str())).map(|skill| skill.name.as_str());
    let name = name.filter(|name| !name.is_empty()).unwrap_or(skill.as_str());
    match role {
        Some(role) => printable(&format!("{name} ({role})")),
        None => printable(name),
    }
}

/// Names a run for a person.
pub fn run_name(session: &Session, run: RunId) -> String {
    let run = session.run(run);
    name(session, &run.skill, run.role.as_ref())
}

/// Names a stage.
pub fn stage(lang: Lang, stage: Stage) -> String {
    match stage {
        Stage::Design => lang.stage_design(),
        Stage::Play => lang.stage_play(),
        Stage::Done => lang.stage_done(),
    }
}

/// Names what an item counts as.
pub fn state(lang: Lang, state: ItemState) -> String {
    match state {
        ItemState::Drafted => lang.state_drafted(),
        ItemState::Accepted => lang.state_accepted(),
        ItemState::Rejected => lang.state_rejected(),
        ItemState::Superseded => lang.state_superseded(),
    }
}

/// Names a phase and a reason as they stand in the list of sessions; what this program does not know stays as it is.
pub fn listed(lang: Lang, phase: &str, reason: &str) -> String {
    let phase_words = match phase {
        "idle" => lang.phase_idle(),
        "running" => lang.phase_running(),
        "waiting_user" => lang.phase_waiting(),
        "done" => lang.phase_done(),
        "error" => lang.phase_error(),
        other => other.to_owned(),
    };
    let reason_words = match reason {
        "" => return phase_words,
        "skill_selection" => lang.reason_skill_selection(),
        "intake" => lang.reason_intake(),
        "input" => lang.reason_input(),
        "approve_step" => lang.reason_approve_step(),
        "review_artifact" => lang.reason_review_artifact(),
        "worker_questions" => lang.reason_worker_questions(),
        "revision" => lang.reason_revision(),
        other => other.to_owned(),
    };
    match lang {
        Lang::En => format!("{phase_words} ({reason_words})"),
        Lang::Zh => format!("{phase_words}（{reason_words}）"),
    }
}
