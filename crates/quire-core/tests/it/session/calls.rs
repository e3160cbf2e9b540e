//! Calls of models (SPEC §3.3, §13): attempts, late replies, replies twice, filters, what they cost.

use expect_test::expect;
use quire_core::event::{Action, Budget, Event};
use quire_core::ids::CallId;
use quire_core::message::{Failure, FailureKind, Finish, Message, Reply, Usage};
use quire_core::session::{CauseKind, Waiting};
use quire_testkit::hand::{Estimate, state};
use quire_testkit::hand::{Hand, calls, text};
use serde_json::json;

fn running() -> Hand {
    let mut hand = Hand::start(Some("novel"));
    hand.says("A story.").expect("words are heard");
    hand
}

#[test]
fn a_round_counts_when_it_is_journaled_and_its_further_attempts_do_not() {
    let mut hand = running();
    let call = hand.call();
    assert_eq!(hand.session.burst().used, 0);
    hand.asks(call, 1).expect("the first attempt");
    hand.asks(call, 1).expect_err("the same attempt");
    hand.asks(call, 3).expect_err("an attempt too far");
    hand.asks(call, 2).expect("a retry");
    hand.asks(call, 3).expect("a repeat after a crash");
    assert_eq!((hand.session.burst().used, hand.session.spent().rounds), (1, 1));
}

#[test]
fn a_reply_is_heard_once_and_only_by_who_waits_for_it() {
    let mut hand = running();
    let call = hand.call();
    let reply = calls(&[("ask_user", json!({ "assessment": "Hm." }))]);
    let replied = |call| Event::ModelReplied { call, reply: reply.clone() };
    hand.happens(replied(call)).expect_err("it was never asked");
    hand.asks(call, 1).expect("the first attempt");
    hand.happens(replied(CallId(call.0 + 1))).expect_err("no such call");
    hand.happens(Event::ModelIgnored { call, text: "x".into(), cause: "late".into() }).expect_err("it is not over");
    hand.happens(replied(call)).expect("it is waited for");
    hand.happens(replied(call)).expect_err("it was answered");
    let failure = Failure { kind: FailureKind::Network, message: "Dead.".to_owned() };
    hand.happens(Event::ModelFailed { call, failure, partial: "".into() }).expect_err("it was answered");
    hand.asks(call, 2).expect_err("it was answered");
}

#[test]
fn what_arrives_after_a_stop_is_kept_and_changes_nothing_else() {
    let mut hand = running();
    let call = hand.call();
    hand.asks(call, 1).expect("the first attempt");
    let effects = hand.user(Action::Stop).expect("a stop is heard");
    assert_eq!(effects, [quire_core::effect::Effect::CancelModel { call }]);
    assert_eq!(hand.session.spent().time_ms, 1000);
    let before = state(&hand.session);
    for unmade in [CallId(0), CallId(call.0 + 1)] {
        hand.happens(Event::ModelIgnored { call: unmade, text: "x".into(), cause: "late".into() }).expect_err("no such call");
    }
    hand.happens(Event::ModelIgnored { call, text: "It was".into(), cause: "stopped".into() }).expect("it is kept");
    assert_eq!(state(&hand.session), before);
    assert_eq!(&*hand.session.incomplete()[0].text, "It was");
}

#[test]
fn a_failure_keeps_the_providers_words_and_what_had_come() {
    let mut hand = running();
    let call = hand.call();
    hand.asks(call, 1).expect("the first attempt");
    let failure = Failure { kind: FailureKind::Cut, message: "The stream broke.".to_owned() };
    hand.happens(Event::ModelFailed { call, failure, partial: "It was a".into() }).expect("it is heard");
    expect!["waiting_user input; failed: The stream broke."].assert_eq(&state(&hand.session));
    assert_eq!((&*hand.session.incomplete()[0].text, hand.session.incomplete().len()), ("It was a", 1));
}

#[test]
fn a_filtered_reply_is_a_failure_with_its_words() {
    let mut hand = running();
    let filtered = Reply { finish: Finish::ContentFilter, ..text("I cannot") };
    hand.replies(filtered).expect("it is heard");
    expect!["waiting_user input; failed: the provider's filter stopped the reply: I cannot"].assert_eq(&state(&hand.session));
    assert_eq!(&*hand.session.incomplete()[0].text, "I cannot");
}

#[test]
fn an_empty_reply_is_reminded_of_and_its_round_counts() {
    let mut hand = running();
    hand.replies(text(" ")).expect("it is heard");
    expect!["running burst 1/12, agent"].assert_eq(&state(&hand.session));
    let (prompt, _) = hand.session.prompt(u32::MAX, &Estimate).expect("there is room");
    let last = prompt.messages.last().map(Message::text);
    assert_eq!(last, Some("Your reply was empty. Call one of your tools, or say something to the user."));
}

#[test]
fn calls_with_one_id_get_ids_of_their_own() {
    let mut hand = running();
    hand.replies(calls(&[("list_workers", json!({})), ("list_artifacts", json!({}))])).expect("it is heard");
    let (prompt, _) = hand.session.prompt(u32::MAX, &Estimate).expect("there is room");
    quire_testkit::transcript::check(&prompt).expect("a transcript");
}

#[test]
fn tokens_money_and_time_are_counted_and_bounded() {
    let spends = |budget: Budget| {
        let mut hand = Hand::start(Some("novel"));
        hand.user(Action::SetBudget { budget }).expect("a budget is heard");
        hand.says("A story.").expect("words are heard");
        let usage = Usage { input_tokens: 90, cached_tokens: 80, output_tokens: 10, money_micros: 7 };
        hand.replies(Reply { usage, ..calls(&[("list_workers", json!({}))]) }).expect("it is heard");
        let cause = hand.session.phase().waiting().and_then(Waiting::cause).map(|cause| cause.kind);
        (hand, cause)
    };
    let spent = Some(CauseKind::BudgetSpent);
    assert_eq!(spends(Budget { tokens: Some(101), money_micros: Some(8), time_ms: Some(1001), ..Budget::default() }).1, None);
    assert_eq!(spends(Budget { tokens: Some(100), ..Budget::default() }).1, spent);
    assert_eq!(spends(Budget { money_micros: Some(7), ..Budget::default() }).1, spent);
    let (mut hand, cause) = spends(Budget { time_ms: Some(1000), ..Budget::default() });
    assert_eq!(cause, spent);
    let refusal = hand.user(Action::Retry).expect_err("it is not raised");
    assert!(!refusal.heard.contains(&"retry".to_owned()));
    hand.user(Action::SetBudget { budget: Budget::default() }).expect("a budget is heard");
    hand.user(Action::Retry).expect("it is raised");
    expect!["running burst 0/12, agent"].assert_eq(&state(&hand.session));
}

#[test]
fn a_closed_session_hears_nothing_at_all() {
    let mut hand = running();
    let call = hand.call();
    hand.user(Action::Stop).expect("a stop is heard");
    hand.session.close(&quire_core::journal::Damage::Empty);
    hand.happens(Event::ModelIgnored { call, text: "x".into(), cause: "late".into() }).expect_err("it is closed");
    hand.user(Action::Reveal).expect_err("it is closed");
    hand.says("Hello?").expect_err("it is closed");
}
