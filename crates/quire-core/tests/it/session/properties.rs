//! What holds after every event, whatever happens in whatever order (SPEC §3, §6, §13).
//!
//! Each step is drawn as three numbers and becomes an event that fits the session as it is, or just misses it: a wrong
//! number, a late reply, an action that is not heard. The models' replies are good and bad ones in turn.

use proptest::prelude::*;
use quire_core::blackboard::{ItemState, Source};
use quire_core::chance::Seed;
use quire_core::deep_task::{Caps, DeepTask, HostTool, TaskState, ToolEffect, ToolResult};
use quire_core::effect::Effect;
use quire_core::event::{Action, Budget, Event, ModelAsked, TaskEquipped};
use quire_core::ids::{CallId, Hash, HostCallId, ItemNumber, SessionId, TaskId};
use quire_core::message::{Failure, FailureKind, Finish, Prompt, Reply, ToolCall, Usage};
use quire_core::pack::{Acceptance, Pack, Skill};
use quire_core::question::{Answer, OTHER};
use quire_core::session::{Asker, Phase, Running, Session, Verb, Waiting};
use quire_core::tag::{Pattern, RoleId, Tag};
use quire_testkit::hand::{Estimate, Hand, asked, calls, text};
use quire_testkit::play::{pack_files, records};
use quire_testkit::transcript;
use serde_json::{Value, json};

const PACKS: [&str; 10] = ["dice", "novel", "auto", "checked", "reviewed", "roles", "staged", "tables", "hidden", "intake"];

/// What is heard in most places and leads on from none.
const EVERYWHERE: [Verb; 9] = [
    Verb::SetBudget,
    Verb::Finish,
    Verb::EditItem,
    Verb::EditCell,
    Verb::ReleaseCell,
    Verb::Reveal,
    Verb::UpgradePack,
    Verb::StartTask,
    Verb::CancelTask,
];

#[derive(Debug, Clone, Copy)]
struct Step {
    what: u8,
    which: u8,
    how: u8,
}

fn step() -> impl Strategy<Value = Step> {
    (any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(what, which, how)| Step { what, which, how })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_hold_after_every_event(pack in 0..PACKS.len(), steps in prop::collection::vec(step(), 1..120)) {
        let mut hand = Hand::start(Some(PACKS[pack]));
        for step in steps {
            let before = hand.session.clone();
            let event = event_of(&hand.session, step);
            let heard = hand.happens(event.clone());
            holds(&hand.session);
            if let Ok(effects) = heard {
                for effect in effects {
                    let is_cancel = matches!(effect, Effect::CancelModel { .. });
                    assert!(is_cancel || hand.session.open_effects().contains(&effect), "{effect:?} is not what is owed");
                }
                only_who_may_accepts(&before, &hand.session, &event);
            }
        }
        let again = Session::replay(SessionId::new("play"), &records(&hand.events));
        assert!(again == hand.session, "the journal read again gives another session");
    }
}

fn holds(session: &Session) {
    let of_tasks: Vec<Effect> = session.tasks().iter().filter_map(owed_to).collect();
    let open = session.open_effects();
    let (own, beside) = open.split_at(open.len() - of_tasks.len());
    assert_eq!(beside, of_tasks);
    for task in session.tasks().iter().filter(|task| task.asking().is_some()) {
        let (messages, _) = task.prompt();
        let prompt = Prompt { messages, tools: vec![], prefix: Hash::of(""), fixed: vec![] };
        transcript::check(&prompt).unwrap_or_else(|fault| panic!("{fault}: {prompt:#?}"));
    }
    match session.phase() {
        Phase::Running(running) => {
            let Running::Asking(asking) = running else { return assert_eq!(own, [Effect::Draw]) };
            assert_eq!(own, [Effect::AskModel { call: asking.call }]);
            let (prompt, _) = session.prompt(u32::MAX, &Estimate).expect("there is room");
            transcript::check(&prompt).unwrap_or_else(|fault| panic!("{fault}: {prompt:#?}"));
        }
        Phase::WaitingUser(waiting) => {
            assert_eq!(own, []);
            let leads_on = |verb: &Verb| session.hears(*verb) && !EVERYWHERE.contains(verb);
            assert!(Verb::ALL.iter().any(leads_on), "nothing leads on from {waiting:?}");
        }
        Phase::Idle | Phase::Done => assert_eq!(open, []),
        Phase::Error { reason } => panic!("nobody but a damaged journal leads here: {reason}"),
    }
    assert!(session.burst().used <= session.burst().max);
    for (index, item) in session.board().items().iter().enumerate() {
        assert_eq!(item.number, ItemNumber(index as u64 + 1));
    }
}

/// Drafts become facts by the user's accept or by the pack's mode, and by nothing else.
fn only_who_may_accepts(before: &Session, after: &Session, event: &Event) {
    let state_before =
        |number: ItemNumber| (number.0 <= before.board().items().len() as u64).then(|| before.board().state(number));
    for item in after.board().items() {
        let was = state_before(item.number);
        if let Some(was) = was.filter(|was| *was != ItemState::Drafted) {
            assert_eq!(after.board().state(item.number), was, "item {} was settled before", item.number);
        }
        if after.board().state(item.number) != ItemState::Accepted || was == Some(ItemState::Accepted) {
            continue;
        }
        let by_user = matches!(event, Event::User(_));
        let by_pack = match &item.source {
            Source::Run(run) => {
                let run = after.run(*run);
                let skill = after.pack().and_then(|pack| pack.skill(run.skill.as_str())).expect("its skill");
                skill.acceptance != Acceptance::UserConfirmed
            }
            Source::Runtime | Source::User | Source::Task(_) => true,
        };
        assert!(by_user || by_pack, "{} became a fact by {event:?}", item.tag);
    }
}

/// Says what a deep task that is not over is owed.
fn owed_to(task: &DeepTask) -> Option<Effect> {
    match &task.state {
        TaskState::Equipping => Some(Effect::EquipTask { task: task.id }),
        TaskState::Asking(asking) => Some(Effect::AskModel { call: asking.call }),
        TaskState::Calling(calling) => Some(Effect::CallTool { task: task.id, call: calling.id }),
        TaskState::Over(_) => None,
    }
}

/// Goes on with a deep task, rightly or not.
fn task_event(task: &DeepTask, which: u8, how: u8) -> Event {
    let id = task.id;
    match &task.state {
        TaskState::Equipping => {
            let tool = |name: &str, effect| HostTool {
                name: name.to_owned(),
                description: "".into(),
                parameters: r#"{"type":"object"}"#.into(),
                effect,
                server: "test".to_owned(),
                own_name: name.to_owned(),
            };
            let tools = vec![tool("look", ToolEffect::Reads), tool("act", ToolEffect::Acts), tool("look", ToolEffect::Acts)];
            let caps = Caps { max_rounds: u32::from(how % 6), ..Caps::default() };
            Event::TaskEquipped(TaskEquipped { task: id, caps, tools, faults: vec!["a server is away".to_owned()] })
        }
        TaskState::Asking(asking) if asking.attempts == 0 || which < 4 => {
            Event::ModelAsked(ModelAsked { task: Some(id), ..asked(asking.call, asking.attempts + 1 + u32::from(which == 3)) })
        }
        TaskState::Asking(asking) => {
            let call = asking.call;
            let failure = Failure { kind: FailureKind::NoRoom, message: "Too much.".to_owned() };
            let reply = match how % 8 {
                0 => text("Found."),
                1 => text(""),
                2 => return Event::ModelFailed { call, failure, partial: "It was".into() },
                3 => return Event::TaskOverdue { task: id },
                4 => calls(&[("submit", json!({})), ("look", json!({}))]),
                5 => cut("act", &json!({ "deep": "er" })),
                _ => calls(&[("look", json!({})), ("act", json!({})), ("search_book", json!({ "query": "x" }))]),
            };
            Event::ModelReplied { call, reply }
        }
        TaskState::Calling(calling) => {
            let call = calling.id;
            match (calling.attempts, how % 8) {
                (0, 1..) => Event::ToolAsked { task: id, call, attempt: 1 },
                (_, 0) => Event::ToolAsked { task: id, call, attempt: calling.attempts + 1 },
                (_, 1) => Event::ToolLost { task: id, call },
                (_, 2) => Event::TaskOverdue { task: id },
                (_, 3) => Event::ToolAnswered { task: id, call, result: ToolResult::error("No.") },
                _ => Event::ToolAnswered { task: id, call, result: ToolResult::fine("Yes.") },
            }
        }
        TaskState::Over(_) => Event::ToolLost { task: id, call: HostCallId(1) },
    }
}

fn event_of(session: &Session, step: Step) -> Event {
    let Step { what, which, how } = step;
    if what % 4 == 3 && !session.tasks().is_empty() {
        return task_event(&session.tasks()[usize::from(which) % session.tasks().len()], which, how);
    }
    if session.phase().running() == Some(&Running::Drawing) && what > 40 || what == 9 {
        return Event::Drawn { seed: Seed(u64::from(which)) };
    }
    match session.phase().asking().cloned() {
        Some(running) if what < 240 => {
            if running.attempts == 0 || what < 5 {
                return Event::ModelAsked(asked(running.call, running.attempts + 1 + u32::from(what == 3)));
            }
            let call = if what == 11 { CallId(running.call.0.saturating_sub(1)) } else { running.call };
            match what {
                12..18 => {
                    let failure = Failure { kind: FailureKind::Network, message: "The line is dead.".to_owned() };
                    Event::ModelFailed { call, failure, partial: "It was".into() }
                }
                18..20 => Event::ModelIgnored { call, text: "late".into(), cause: "late".into() },
                _ => Event::ModelReplied { call, reply: reply_of(session, running.asker, which, how) },
            }
        }
        None if what < 8 => Event::ModelIgnored { call: CallId(u64::from(which % 8)), text: "late".into(), cause: "late".into() },
        Some(_) | None => Event::User(action_of(session, what, which, how)),
    }
}

fn reply_of(session: &Session, asker: Asker, which: u8, how: u8) -> Reply {
    let pack = session.pack().expect("a pack").clone();
    let usage = Usage { input_tokens: 10, cached_tokens: 5, output_tokens: 3, money_micros: 1 };
    let reply = match asker {
        Asker::Agent => agent_reply(&pack, which, how),
        Asker::Worker(run) => {
            let run = session.run(run);
            worker_reply(&pack, pack.skill(run.skill.as_str()).expect("its skill"), run.role.as_ref(), which, how)
        }
    };
    Reply { usage, ..reply }
}

fn role(how: u8) -> Value {
    json!(["A", "A", "B", "A", "", "A", "B", "A.B"][usize::from(how % 8)])
}

fn agent_reply(pack: &Pack, which: u8, how: u8) -> Reply {
    let skill = &pack.skills[usize::from(how) % pack.skills.len()].id;
    let run = |reason: &str| json!({ "workerId": skill.as_str(), "reason": reason, "requiresApproval": how.is_multiple_of(7), "roleId": role(how / 16) });
    let asks = json!({ "assessment": "Hm.", "questions": [{ "prompt": "Who?", "required": true }, "When?"] });
    match which % 28 {
        0..15 => calls(&[("run_worker", run(&format!("reason {which}")))]),
        15 => calls(&[("ask_user", asks)]),
        16 => calls(&[
            ("read_blackboard", json!({ "tags": ["**", "no.*"] })),
            ("list_workers", json!({})),
            ("run_worker", run("r")),
        ]),
        17 => calls(&[("run_worker", run("r")), ("list_artifacts", json!({}))]),
        18 => calls(&[("run_worker", run("r")), ("ask_user", asks)]),
        20 => calls(&[("declare_instance_ready", json!({ "reason": "r", "skipped": [{ "skillId": "cast", "reason": "r" }] }))]),
        21 => calls(&[("dance", json!({})), ("run_worker", json!({ "workerId": "nobody", "outputTags": [] }))]),
        22 => text(["", "Words.", "{\"action\": \"list_workers\"}", "{\"action\": \"dance\"}"][usize::from(how % 4)]),
        23 => Reply { finish: Finish::ContentFilter, ..text("I cannot") },
        24 => cut("run_worker", &run("r")),
        19 => calls(&[
            ("delegate_task", json!({ "task": "Dig." })),
            ("list_delegated_tasks", json!({})),
            ("cancel_delegate_task", json!({ "taskId": how % 4 })),
        ]),
        25 => calls(&[("review_blackboard", json!({ "summary": "So far." }))]),
        26 if how.is_multiple_of(8) => calls(&[("finish", json!({ "reason": "Done." }))]),
        _ => calls(&[("ask_user", json!({ "assessment": "And now?" }))]),
    }
}

fn cut(name: &str, arguments: &Value) -> Reply {
    let arguments = arguments.to_string();
    let half: String = arguments.chars().take(arguments.chars().count() / 2).collect();
    let call = ToolCall { id: String::new(), name: name.to_owned(), arguments: half.into() };
    Reply { calls: vec![call], finish: Finish::Length, ..text("") }
}

fn worker_reply(pack: &Pack, skill: &Skill, role: Option<&RoleId>, which: u8, how: u8) -> Reply {
    let content = |tag: &Tag| match (pack.is_table(tag), skill.reviews.is_some(), how % 3) {
        (true, ..) => json!({ "patch": { "hp": how, "mp": 1 }, "expectedRev": { "mp": how % 3 } }).to_string(),
        (false, true, 0) => "verdict: pass".to_owned(),
        (false, true, 1) => "verdict: fail\nWhy not.".to_owned(),
        (false, true, _) => "Nice.".to_owned(),
        (false, false, 0) => "{\"runSkills\": [\"turn\"], \"contextProfile\": {\"turn\": {\"variant\": \"short\"}}}".to_owned(),
        (false, false, 1) => "x, therefore y".to_owned(),
        (false, false, _) => "fits".to_owned(),
    };
    let tags = skill.outputs_for(role).into_iter().filter_map(|pattern| pattern.as_tag());
    let outputs: Value = tags.skip(usize::from(how / 128)).map(|tag| (tag.as_str().to_owned(), json!(content(&tag)))).collect();
    let questions = json!([{ "prompt": "Who?", "options": ["she", "he"], "required": how.is_multiple_of(2) }]);
    match which % 16 {
        0..8 => calls(&[("submit", json!({ "outputs": outputs, "summary": "s" }))]),
        8 => calls(&[("submit", json!({ "outputs": outputs, "questions": questions }))]),
        9 | 10 => calls(&[("ask_user", json!({ "questions": questions }))]),
        11 => calls(&[("submit", json!({ "outputs": outputs })), ("ask_user", json!({ "questions": questions }))]),
        12 => calls(&[("submit", json!({ "outputs": {} })), ("dance", json!({}))]),
        13 => calls(&[("submit", json!({ "outputs": { "用户.最新输入": "mine" } }))]),
        14 => text(["", "Words.", "{\"outputs\": {}}", "{\"askUser\": [\"Who?\"]}"][usize::from(how % 4)]),
        _ => match how % 4 {
            0 => calls(&[("submit", json!({ "outputs": {} }))]),
            1 => calls(&[("submit", json!({ "outputs": outputs })), ("submit", json!({ "outputs": outputs }))]),
            2 => Reply { finish: Finish::Length, ..text("It was a dark and") },
            _ => cut("submit", &json!({ "outputs": outputs })),
        },
    }
}

fn action_of(session: &Session, what: u8, which: u8, how: u8) -> Action {
    let heard: Vec<Verb> = Verb::ALL.iter().copied().filter(|verb| session.hears(*verb) && *verb != Verb::Finish).collect();
    let leading_on: Vec<Verb> = heard.iter().copied().filter(|verb| !EVERYWHERE.contains(verb)).collect();
    let verb = match what % 16 {
        0 => Verb::ALL[usize::from(which) % Verb::ALL.len()],
        1 | 2 if !heard.is_empty() => heard[usize::from(which) % heard.len()],
        _ if leading_on.is_empty() => Verb::SubmitInput,
        _ => leading_on[usize::from(which) % leading_on.len()],
    };
    // Seldom the wrong number, often none, else the right one.
    let target = |right: Option<u64>| match how % 8 {
        0 => Some("99".to_owned()),
        1..5 => None,
        _ => right.map(|id| id.to_string()),
    };
    let waiting = session.phase().waiting();
    let artifact = target(waiting.and_then(Waiting::artifact).map(|id| id.0));
    let card = waiting.and_then(Waiting::card);
    let decision = target(match waiting {
        Some(Waiting::ApproveStep(decision)) => Some(decision.id.0),
        Some(_) | None => None,
    });
    let words = |how: u8| ["Go on.", "Idea: a\nTone: b", "", "More."][usize::from(how % 4)];
    match verb {
        Verb::SelectPack => Action::SelectPack { pack: pack_files("auto") },
        Verb::SubmitInput => Action::SubmitInput { text: words(how).into(), values: Default::default() },
        Verb::ConfirmIntake => Action::ConfirmIntake,
        Verb::Approve => Action::Approve { decision },
        Verb::RejectStep => Action::RejectStep { decision, reason: words(how).into() },
        Verb::Accept => Action::Accept { artifact },
        Verb::Reject => Action::Reject { artifact, reason: words(how / 8).into() },
        Verb::Discard => Action::Discard { artifact },
        Verb::Answer => {
            let questions = card.map(|card| card.questions.clone()).unwrap_or_default();
            let answer = |question: &quire_core::question::Question| Answer {
                question_id: question.id.clone(),
                option_id: OTHER.to_owned(),
                text: "words".to_owned(),
            };
            let answers = questions.iter().skip(usize::from(how / 128)).map(answer).collect();
            Action::Answer { card: target(card.map(|card| card.id.0)), answers }
        }
        Verb::Skip => Action::Skip { card: target(card.map(|card| card.id.0)) },
        Verb::Retry => Action::Retry,
        Verb::SetBudget => {
            let rounds = how.is_multiple_of(8).then(|| session.spent().rounds + u64::from(how / 32));
            Action::SetBudget { budget: Budget { rounds, ..Budget::default() } }
        }
        Verb::Stop => Action::Stop,
        Verb::Finish => Action::Finish,
        Verb::EditItem => {
            let tags: Vec<&Tag> = session.board().tags().collect();
            let notes = Tag::parse("notes.draft").expect("a tag");
            let tag = tags.get(usize::from(how)).map_or(notes, |tag| (*tag).clone());
            let base = session.board().newest(&tag).map(|item| item.number).filter(|_| which.is_multiple_of(2));
            Action::EditItem { tag, base, text: "x, therefore mine".into() }
        }
        Verb::EditCell | Verb::ReleaseCell => {
            let (tag, key, rev) = (Tag::parse("变量.表").expect("a tag"), "hp".to_owned(), u64::from(how % 3));
            match verb == Verb::EditCell {
                true => Action::EditCell { tag, key, value: json!(how), rev },
                false => Action::ReleaseCell { tag, key, rev },
            }
        }
        Verb::UpgradePack => Action::UpgradePack { pack: pack_files(PACKS[usize::from(how) % PACKS.len()]) },
        Verb::Reveal => Action::Reveal,
        Verb::StartTask => {
            let grants = if how.is_multiple_of(2) { vec![Pattern::parse("**").expect("a pattern")] } else { vec![] };
            Action::StartTask { task: words(how).into(), title: String::new(), grants }
        }
        Verb::CancelTask => Action::CancelTask { task: TaskId(u64::from(how % 5)) },
    }
}
