//! Commands that act for the user: each posts one action and stays until the session waits again, is done or has failed.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;

use anyhow::{Context, Result};
use quire_core::event::{Action, Budget, Start};
use quire_core::ids::{ItemNumber, SessionId};
use quire_core::session::{CauseKind, Phase, Refusal, Waiting};
use quire_core::table::Table;
use quire_core::tag::Tag;
use quire_runtime::driver::Opened;
use quire_runtime::ports::{Answered, Models as _};
use serde_json::Value;

use super::progress::{How, Progress};
use super::{Desk, new_session_id, screen};
use crate::options::{Answer, Command, Edit, EditCell, New, Reject, ReleaseCell, Say, SetBudget, UpgradePack};
use crate::report::{self, Unknown, Usage};
use crate::wire;
use crate::words::{self, Lang};

/// Starts a session.
pub async fn new(desk: &Desk, new: New) -> Result<ExitCode> {
    let id = start(desk, new).await?;
    let opened = desk.fleet.look(&id).await?;
    if !desk.is_json {
        println!("{}", desk.lang.session_line(&id));
    }
    screen::tell(desk, &opened);
    warn_of_model(desk, &opened);
    Ok(ExitCode::from(report::FINE))
}

/// Says what is still missing before a session's models can be asked, its pack's too.
pub(super) fn warn_of_model(desk: &Desk, opened: &Opened) {
    let bound = opened.session.pack().map(|pack| pack.profiles()).unwrap_or_default();
    for profile in std::iter::once(opened.session.profile()).chain(bound) {
        if let Err(failure) = desk.models.provider(profile) {
            eprintln!("{}", desk.lang.error_line(desk.lang.model_missing(failure.message)));
        }
    }
}

/// Starts a session and returns its id.
pub(super) async fn start(desk: &Desk, new: New) -> Result<SessionId> {
    let profile = match &new.model {
        Some(named) => desk.models.check(named).map_err(|failure| Unknown(failure.message))?,
        None => desk.models.chosen(),
    };
    let pack = new.pack.as_deref().map(|pack| readable(desk, pack)).transpose()?;
    if let Some(pack) = &pack {
        check_bindings(desk, pack)?;
    }
    let offer = if pack.is_some() { vec![] } else { desk.packs.offer() };
    let start =
        Start { title: new.title.unwrap_or_default(), pack, profile, burst_max: new.burst, budget: Budget::default(), offer };
    let id = new_session_id();
    desk.fleet.start(&id, start).await?;
    Ok(id)
}

/// Reads a pack that can be used, or tells what is wrong with it.
pub(super) fn readable(desk: &Desk, name_or_folder: &str) -> Result<quire_core::pack::PackFiles> {
    let found = desk.packs.find(name_or_folder).map_err(|error| Unknown(format!("{error:#}")))?;
    super::pack::refuse_unreadable(desk.lang, &found)?;
    Ok(found.files)
}

/// A pack whose bindings name profiles that are not there does not start: it would fail in the middle.
pub(super) fn check_bindings(desk: &Desk, files: &quire_core::pack::PackFiles) -> Result<()> {
    let (pack, _) = quire_core::pack::read(files);
    for profile in pack.iter().flat_map(|pack| pack.profiles()) {
        desk.models.check(profile).map_err(|failure| Unknown(desk.lang.pack_binds(profile, &failure.message)))?;
    }
    Ok(())
}

/// Acts on a session.
pub async fn act(desk: &Desk, command: Command) -> Result<ExitCode> {
    let id = SessionId::new(session_of(&command));
    let goes_on_with_tasks = matches!(command, Command::Resume(_));
    let opened = desk.fleet.look(&id).await?;
    let action = match action_of(desk, command, &opened) {
        Ok(action) => action,
        Err(error) => match error.downcast::<Unknown>() {
            Ok(Unknown(message)) => return refused(desk, &id, None, &report::refused(&opened.session, message)).await,
            Err(error) => return Err(error),
        },
    };
    let progress = Progress::begin(desk, &opened, How::of(desk));
    if let Some(action) = action
        && let Answered::Refused { refusal } = desk.fleet.act(&id, &action).await?
    {
        progress.end().await;
        return refused(desk, &id, Some(&action), &refusal).await;
    }
    desk.fleet.settled(&id).await?;
    if goes_on_with_tasks {
        desk.fleet.tasks_settled(&id, None).await?;
    }
    progress.end().await;
    let opened = desk.fleet.look(&id).await?;
    screen::tell(desk, &opened);
    Ok(ExitCode::from(if has_failed(&opened) { report::FAILED } else { report::FINE }))
}

pub(super) async fn refused(desk: &Desk, id: &SessionId, action: Option<&Action>, refusal: &Refusal) -> Result<ExitCode> {
    let opened = desk.fleet.look(id).await?;
    report::refusal(desk.lang, &opened.session, action, refusal);
    if desk.is_json {
        let mut view = wire::session(&opened);
        view["refusal"] = report::refusal_json(refusal);
        println!("{view}");
    }
    Ok(ExitCode::from(report::REFUSED))
}

fn has_failed(opened: &Opened) -> bool {
    match opened.session.phase() {
        Phase::WaitingUser(waiting) => waiting.cause().is_some_and(|cause| cause.kind == CauseKind::Failed),
        Phase::Error { .. } => true,
        Phase::Idle | Phase::Running(_) | Phase::Done => false,
    }
}

fn session_of(command: &Command) -> &str {
    match command {
        Command::Say(Say { session, .. })
        | Command::Reject(Reject { session, .. })
        | Command::Answer(Answer { session, .. })
        | Command::Edit(Edit { session, .. })
        | Command::EditCell(EditCell { session, .. })
        | Command::ReleaseCell(ReleaseCell { session, .. })
        | Command::SetBudget(SetBudget { session, .. })
        | Command::UpgradePack(UpgradePack { session, .. }) => session,
        Command::Select(select) => &select.session,
        Command::Approve(on) => &on.session,
        Command::Accept(on) | Command::Discard(on) => &on.session,
        Command::Skip(on) => &on.session,
        Command::Confirm(on)
        | Command::Retry(on)
        | Command::Stop(on)
        | Command::Finish(on)
        | Command::Reveal(on)
        | Command::Resume(on)
        | Command::Show(on)
        | Command::Journal(on)
        | Command::Watch(on) => &on.session,
        Command::Context(context) => &context.session,
        Command::Chat(_)
        | Command::Demo(_)
        | Command::New(_)
        | Command::List
        | Command::Model(_)
        | Command::Pack(_)
        | Command::Task(_)
        | Command::Tool(_)
        | Command::Mcp(_) => unreachable!("these act on no session"),
    }
}

/// Makes the action that a command means. `resume` is none: it goes on with what is owed.
pub(super) fn action_of(desk: &Desk, command: Command, opened: &Opened) -> Result<Option<Action>> {
    let lang = desk.lang;
    Ok(Some(match command {
        Command::Say(say) => said(lang, say)?,
        Command::Confirm(_) => Action::ConfirmIntake,
        Command::Approve(on) => Action::Approve { decision: on.decision.or_else(|| seen_decision(opened)) },
        Command::Reject(reject) => rejected(reject, opened),
        Command::Accept(on) => Action::Accept { artifact: on.artifact.or_else(|| seen_artifact(opened)) },
        Command::Discard(on) => Action::Discard { artifact: on.artifact.or_else(|| seen_artifact(opened)) },
        Command::Answer(answer) => answered(lang, answer, opened)?,
        Command::Skip(on) => Action::Skip { card: on.card.or_else(|| seen_card(opened)) },
        Command::Retry(_) => Action::Retry,
        Command::Stop(_) => Action::Stop,
        Command::Finish(_) => Action::Finish,
        Command::Edit(edit) => edited(lang, edit)?,
        Command::EditCell(edit) => {
            let tag = tag(lang, &edit.tag)?;
            let rev = edit.rev.map_or_else(|| present_rev(opened, &tag, &edit.key), Ok)?;
            let value = serde_json::from_str(&edit.value).unwrap_or(Value::String(edit.value));
            Action::EditCell { tag, key: edit.key, value, rev }
        }
        Command::ReleaseCell(release) => {
            let tag = tag(lang, &release.tag)?;
            let rev = release.rev.map_or_else(|| present_rev(opened, &tag, &release.key), Ok)?;
            Action::ReleaseCell { tag, key: release.key, rev }
        }
        Command::Select(select) => {
            let pack = readable(desk, &select.pack)?;
            check_bindings(desk, &pack)?;
            Action::SelectPack { pack }
        }
        Command::SetBudget(set) => Action::SetBudget { budget: budget(lang, set, opened.session.budget())? },
        Command::UpgradePack(upgrade) => {
            let own = opened.session.pack().map(|pack| pack.name.clone());
            let name = upgrade.pack.or(own).ok_or_else(|| Usage(lang.no_pack_yet()))?;
            let pack = readable(desk, &name)?;
            check_bindings(desk, &pack)?;
            Action::UpgradePack { pack }
        }
        Command::Reveal(_) => Action::Reveal,
        Command::Resume(_) => match opened.session.phase() {
            Phase::Error { reason } => return Err(Unknown(lang.pending_error(reason)).into()),
            Phase::Idle | Phase::Running(_) | Phase::WaitingUser(_) | Phase::Done => return Ok(None),
        },
        Command::Chat(_)
        | Command::Demo(_)
        | Command::New(_)
        | Command::Show(_)
        | Command::Journal(_)
        | Command::Context(_)
        | Command::List
        | Command::Watch(_)
        | Command::Model(_)
        | Command::Task(_)
        | Command::Tool(_)
        | Command::Mcp(_)
        | Command::Pack(_) => unreachable!("these are no actions"),
    }))
}

fn said(lang: Lang, say: Say) -> Result<Action> {
    let mut values = BTreeMap::new();
    for value in &say.values {
        let (field, value) = value.split_once('=').ok_or_else(|| Usage(lang.write_field_value(value)))?;
        values.insert(field.trim().to_owned(), value.to_owned());
    }
    let text = if say.text.is_empty() && values.is_empty() { read_stdin(lang)? } else { say.text.join(" ") };
    Ok(Action::SubmitInput { text: text.into(), values })
}

fn rejected(reject: Reject, opened: &Opened) -> Action {
    let reason = reject.reason.unwrap_or_default().into();
    let waits_for_leave = matches!(opened.session.phase().waiting(), Some(Waiting::ApproveStep(_)));
    if reject.decision.is_some() || (waits_for_leave && reject.artifact.is_none()) {
        Action::RejectStep { decision: reject.decision.or_else(|| seen_decision(opened)), reason }
    } else {
        Action::Reject { artifact: reject.artifact.or_else(|| seen_artifact(opened)), reason }
    }
}

fn answered(lang: Lang, answer: Answer, opened: &Opened) -> Result<Action> {
    let session = &opened.session;
    let Some(card) = session.phase().waiting().and_then(Waiting::card) else {
        // The session itself says what is pending.
        return Ok(Action::Answer { card: answer.card, answers: vec![] });
    };
    let mut answers = vec![];
    for pair in &answer.answers {
        let (question, value) = pair.split_once('=').ok_or_else(|| Usage(lang.write_question_answer(pair)))?;
        // Another card's questions are not this one's to judge: the session refuses the card.
        let is_other_card = answer.card.as_ref().is_some_and(|named| *named != card.id.to_string());
        if is_other_card {
            continue;
        }
        answers.push(card.answer(question.trim(), value).map_err(|fault| Unknown(words::session::answer_error(lang, &fault)))?);
    }
    Ok(Action::Answer { card: answer.card.or_else(|| seen_card(opened)), answers })
}

// What is not named is what was pending when the command looked: what comes after that its user has not seen.

fn seen_decision(opened: &Opened) -> Option<String> {
    let Some(Waiting::ApproveStep(decision)) = opened.session.phase().waiting() else { return None };
    Some(decision.id.to_string())
}

fn seen_artifact(opened: &Opened) -> Option<String> {
    opened.session.phase().waiting().and_then(Waiting::artifact).map(|artifact| artifact.to_string())
}

fn seen_card(opened: &Opened) -> Option<String> {
    opened.session.phase().waiting().and_then(Waiting::card).map(|card| card.id.to_string())
}

fn edited(lang: Lang, edit: Edit) -> Result<Action> {
    let tag = tag(lang, &edit.tag)?;
    let base = edit.base.as_deref().map(|raw| item_number(lang, raw)).transpose()?;
    let text = edit.text.map_or_else(|| read_stdin(lang), Ok)?;
    Ok(Action::EditItem { tag, base, text: text.into() })
}

fn item_number(lang: Lang, raw: &str) -> Result<ItemNumber> {
    let number = raw.parse().map_err(|_| Unknown(lang.no_such_item(raw)))?;
    Ok(ItemNumber(number))
}

fn tag(lang: Lang, raw: &str) -> Result<Tag> {
    Tag::parse(raw).map_err(|error| Usage(lang.bad_tag(raw, error)).into())
}

fn present_rev(opened: &Opened, tag: &Tag, key: &str) -> Result<u64> {
    let item = opened.session.board().accepted(tag);
    let table = Table::read(item.map(|item| item.content.as_ref())).unwrap_or_default();
    Ok(table.rev(key))
}

fn budget(lang: Lang, set: SetBudget, present: Budget) -> Result<Budget> {
    if [&set.rounds, &set.tokens, &set.money, &set.time].iter().all(|limit| limit.is_none()) {
        return Err(Usage(lang.name_a_limit()).into());
    }
    Ok(Budget {
        rounds: limit(lang, set.rounds.as_deref(), present.rounds, whole)?,
        tokens: limit(lang, set.tokens.as_deref(), present.tokens, whole)?,
        money_micros: limit(lang, set.money.as_deref(), present.money_micros, micros)?,
        time_ms: limit(lang, set.time.as_deref(), present.time_ms, milliseconds)?,
    })
}

fn limit(lang: Lang, given: Option<&str>, present: Option<u64>, read: impl Fn(&str) -> Option<u64>) -> Result<Option<u64>> {
    match given {
        None => Ok(present),
        Some("none") => Ok(None),
        Some(text) => read(text).map(Some).ok_or_else(|| Usage(lang.no_limit(text)).into()),
    }
}

fn whole(text: &str) -> Option<u64> {
    text.replace(['_', ','], "").parse().ok()
}

/// Reads an amount of money, in millionths.
pub fn micros(text: &str) -> Option<u64> {
    let amount: f64 = text.parse().ok()?;
    (amount >= 0.0 && amount.is_finite()).then(|| (amount * 1e6).round() as u64)
}

pub(super) fn milliseconds(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1.0),
        None => match text.char_indices().next_back()? {
            (at, 's') => (text.get(..at)?, 1e3),
            (at, 'm') => (text.get(..at)?, 60e3),
            (at, 'h') => (text.get(..at)?, 3600e3),
            _ => (text, 1e3),
        },
    };
    let amount: f64 = number.trim().parse().ok()?;
    (amount >= 0.0 && amount.is_finite()).then(|| (amount * unit).round() as u64)
}

pub(super) fn read_stdin(lang: Lang) -> Result<String> {
    if std::io::stdin().is_terminal() {
        eprintln!("{}", lang.type_until_end());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context(lang.stdin_unreadable())?;
    Ok(text)
}
