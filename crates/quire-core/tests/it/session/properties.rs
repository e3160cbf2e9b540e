//! What holds after every event, whatever happens in whatever order (SPEC §3, §6, §13).
//!
//! Each step is drawn as three numbers and becomes an event that fits the session as it is, or just misses it: a wrong
//! number, a late reply, an action that is not heard. The models' replies are good and bad ones in turn.

use proptest::prelude::*;
use quire_core::blackboard::{ItemState, Source};
use quire_core::effect::Effect;
use quire_core::event::{Action, Budget, Event};
use quire_core::ids::{CallId, ItemNumber, SessionId};
use quire_core::message::{Failure, FailureKind, Finish, Reply, ToolCall, Usage};
use quire_core::pack::{Acceptance, Pack, Skill};
use quire_core::question::{Answer, OTHER};
use quire_core::session::{Asker, Phase, Running, Session, Verb, Waiting};
use quire_core::tag::{RoleId, Tag};
use quire_testkit::hand::{Estimate, Hand, asked, calls, text};
use quire_testkit::play::{pack_files, records};
use quire_testkit::transcript;
use serde_json::{Value, json};

const PACKS: [&str; 9] = ["novel", "auto", "checked", "reviewed", "roles", "staged", "tables", "hidden", "intake"];

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
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_hold_after_every_event(pack in 0..PACKS.len(), steps in prop::collection::vec(step(), 1..90)) {
        let mut hand = Hand::start(Some(PACKS[pack]));
        for step in steps {
            let before = hand.session.clone();
            let event = event_of(&hand.session, step);
            let heard = hand.happens(event.clone());
            holds(&hand.session);
            if let Ok(effects) = heard {
                for effect in effects {
                    let is_cancel = matches!(effect, Effect::CancelModel { .. });
                    assert!(is_cancel || hand.session.open_effects() == [effect], "{effect:?} is not what is owed");
                }
                only_who_may_accepts(&before, &hand.session, &event);
            }
        }
        if std::env::var("STATS").is_ok() { eprintln!("STAT {} arts={} acc={} rev={:?} ev={}", PACKS[pack], hand.session.artifacts().len(), hand.session.artifacts().iter().filter(|a| a.state.as_str()=="accepted").count(), hand.session.phase().as_str(), hand.events.len()); }
        let again = Session::replay(SessionId::new("play"), &records(&hand.events));
        assert!(again == hand.session, "the journal read again gives another session");
    }
}

fn holds(session: &Session) {
    match session.phase() {
        Phase::Running(running) => {
            let owed = match running {
                Running::Drawing => Effect::Draw,
                Running::Asking(asking) => Effect::AskModel { call: asking.call },
            };
            assert_eq!(session.open_effects(), [owed]);
            let (prompt, _) = session.prompt(u32::MAX, &Estimate).expect("there is room");
            transcript::check(&prompt).unwrap_or_else(|fault| panic!("{fault}: {prompt:#?}"));
        }
        Phase::WaitingUser(waiting) => {
            assert_eq!(session.open_effects(), []);
            let everywhere = [
                Verb::SetBudget,
                Verb::Finish,
                Verb::EditItem,
                Verb::EditCell,
                Verb::ReleaseCell,
                Verb::Reveal,
                Verb::UpgradePack,
            ];
            let leads_on = |verb: &&Verb| session.hears(**verb) && !everywhere.contains(verb);
            assert!(Verb::ALL.iter().any(|verb| leads_on(&verb)), "nothing leads on from {waiting:?}");
        }
        Phase::Idle | Phase::Done => assert_eq!(session.open_effects(), []),
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
            Source::Runtime | Source::User => true,
        };
        assert!(by_user || by_pack, "{} became a fact by {event:?}", item.tag);
    }
}

fn event_of(session: &Session, step: Step) -> Event {
    let Step { what, which, how } = step;
    match session.phase().asking().cloned() {
        Some(running) if what < 200 => {
            if running.attempts == 0 || what < 10 {
                return Event::ModelAsked(asked(running.call, running.attempts + 1 + u32::from(what == 3)));
            }
            let call = if what == 11 { CallId(running.call.0.saturating_sub(1)) } else { running.call };
            match what {
                12..20 => {
                    let failure = Failure { kind: FailureKind::Network, message: "The line is dead.".to_owned() };
                    Event::ModelFailed { call, failure, partial: "It was".into() }
                }
                20..24 => Event::ModelIgnored { call, text: "late".into(), cause: "late".into() },
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
    json!(["A", "B", "", "A.B"][usize::from(how % 4)])
}

fn agent_reply(pack: &Pack, which: u8, how: u8) -> Reply {
    let skill = &pack.skills[usize::from(how) % pack.skills.len()].id;
    let run = |reason: &str| json!({ "workerId": skill.as_str(), "reason": reason, "requiresApproval": how % 7 == 0, "roleId": role(how / 16) });
    let asks = json!({ "assessment": "Hm.", "questions": [{ "prompt": "Who?", "required": true }, "When?"] });
    match which % 22 {
        0..9 => calls(&[("run_worker", run(&format!("reason {which}")))]),
        9 => calls(&[("ask_user", asks)]),
        10 => calls(&[
            ("read_blackboard", json!({ "tags": ["**", "no.*"] })),
            ("list_workers", json!({})),
            ("run_worker", run("r")),
        ]),
        11 => calls(&[("run_worker", run("r")), ("list_artifacts", json!({}))]),
        12 => calls(&[("run_worker", run("r")), ("ask_user", asks)]),
        13 => calls(&[("list_artifacts", json!({}))]),
        14 => calls(&[("declare_instance_ready", json!({ "reason": "r", "skipped": [{ "skillId": "cast", "reason": "r" }] }))]),
        15 => calls(&[("dance", json!({})), ("run_worker", json!({ "workerId": "nobody", "outputTags": [] }))]),
        16 => text(["", "Words.", "{\"action\": \"list_workers\"}", "{\"action\": \"dance\"}"][usize::from(how % 4)]),
        17 => Reply { finish: Finish::ContentFilter, ..text("I cannot") },
        18 => cut("run_worker", &run("r")),
        19 => calls(&[("review_blackboard", json!({ "summary": "So far." }))]),
        20 if how.is_multiple_of(4) => calls(&[("finish", json!({ "reason": "Done." }))]),
        _ => calls(&[("ask_user", json!({ "assessment": "And now?" }))]),
    }
}

fn cut(name: &str, arguments: &Value) -> Reply {
    let mut arguments = arguments.to_string();
    arguments.truncate(arguments.len() / 2);
    let call = ToolCall { id: String::new(), name: name.to_owned(), arguments: arguments.into() };
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
    let questions = json!([{ "prompt": "Who?", "options": ["she", "he"], "required": how % 2 == 0 }]);
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
    let verb = match what % 16 {
        0 => Verb::ALL[usize::from(which) % Verb::ALL.len()],
        1..7 => Verb::SubmitInput,
        _ if heard.is_empty() => Verb::SubmitInput,
        _ => heard[usize::from(which) % heard.len()],
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
            let rounds = (how % 3 == 0).then(|| session.spent().rounds + u64::from(how / 32));
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
    }
}
