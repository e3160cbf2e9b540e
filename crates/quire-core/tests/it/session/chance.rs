//! Draws at the start of a turn: when they are made, that they are made once, and who sees them.

use expect_test::{Expect, expect};
use quire_core::chance::Seed;
use quire_core::effect::Effect;
use quire_core::event::{Action, Event};
use quire_core::ids::Timestamp;
use quire_core::session::{Phase, Running, Session};
use quire_core::tag::Tag;
use quire_testkit::play::{check, play};

const TO_PLAY: &str = "
        pack    dice
        user    A harbour.
        agent   run_worker set
        worker  submit world.draft: A harbour at night.
        user    accept
        agent   declare_instance_ready: The scene stands.
";

#[test]
fn each_turn_of_play_draws_once() {
    check(
        &format!(
            "{TO_PLAY}
        user    I cast off.
        agent   run_worker tell
        worker  submit play.told: The rope gives.
        agent   ask_user: The rope gives. And now?
            ? Which way? [north | south]
        user    answer q1=A
        agent   ask_user: North, then.
        user    I row.
        agent   ask_user: You row.
    "
        ),
        expect![[r#"
            waiting_user input
            running burst 0/12, agent; 用户.最新输入 written
            running burst 1/12, worker set
            waiting_user review of artifact 1: world.draft
            running burst 0/12, agent; world.confirmed written
            waiting_user input: The scene stands.
            running burst 0/12, agent; 用户.最新输入 written; play.dice.current written; play.weather.current written; play.fate.current written
            running burst 1/12, worker tell
            running burst 1/12, agent; play.told written; told: artifact 2 accepted (play.told: 15 characters):
            waiting_user input: The rope gives. And now?; card 1: q1 Which way?
            running burst 0/12, agent
            waiting_user input: North, then.
            running burst 0/12, agent; 用户.最新输入 written; play.dice.current written; play.weather.current written; play.fate.current written
            waiting_user input: You row.
        "#]],
    );
}

#[test]
fn the_agent_reads_what_was_drawn_in_its_log_but_not_what_is_hidden() {
    let performed = play(&format!(
        "{TO_PLAY}
        user    I cast off.
        agent   ask_user: You do.
    "
    ));
    let prompt = &performed.prompts.last().expect("the agent was asked").text;
    let (_, now) = prompt.split_once("# Now").expect("an opening");
    expect![[r#"


        user: I cast off.
        chance: play.dice.current: d20: 6, 20, 11, 16
        chance: play.weather.current: sun
        chance: play.fate.current: drawn, hidden

        # Blackboard

        Stage: play
        play.dice.current: accepted, 18 characters, by runtime
        play.fate.current: exists (hidden from the user)
        play.weather.current: accepted, 3 characters, by runtime
        world.confirmed: accepted, 19 characters, by runtime
        world.draft: accepted, 19 characters, by set
        用户.最新输入: accepted, 11 characters, by user

        === tools: read_blackboard, list_workers, list_artifacts, delegate_task, cancel_delegate_task, list_delegated_tasks, run_worker, ask_user, review_blackboard, finish, declare_instance_ready ===
    "#]].assert_eq(now);
}

/// A session whose user has just spoken in play: the draw is owed.
fn drawing() -> Session {
    let mut session = play(TO_PLAY).session;
    let words = Action::SubmitInput { text: "I cast off.".into(), values: Default::default() };
    assert_eq!(session.handle(Timestamp(0), Event::User(words)), Ok(vec![Effect::Draw]));
    session
}

fn drawn(session: &Session, expected: Expect) {
    let tags = ["play.dice.current", "play.weather.current", "play.fate.current"];
    let texts = tags.map(|tag| {
        let named = Tag::parse(tag).expect("a tag");
        let texts: Vec<String> =
            session.board().history(&named).map(|item| format!("{} (turn {})", item.content, item.turn)).collect();
        format!("{tag}: {}\n", texts.join(" | "))
    });
    expected.assert_eq(&texts.concat());
}

#[test]
fn a_draw_is_owed_until_its_seed_is_recorded_and_then_never_again() {
    let mut session = drawing();
    assert_eq!(session.open_effects(), [Effect::Draw]);
    assert!(matches!(
        session.handle(Timestamp(0), Event::Drawn { seed: Seed(7) }).expect("a draw is owed").as_slice(),
        [Effect::AskModel { .. }]
    ));
    drawn(
        &session,
        expect![[r#"
        play.dice.current: d20: 8, 5, 7, 4 (turn 1)
        play.weather.current: rain (turn 1)
        play.fate.current: percent: 6 (turn 1)
    "#]],
    );
    let before = session.clone();
    let refused = session.handle(Timestamp(0), Event::Drawn { seed: Seed(8) }).expect_err("it was drawn");
    expect!["nothing is to be drawn"].assert_eq(&refused.message);
    assert!(session == before);
}

#[test]
fn a_draw_that_was_stopped_is_made_by_the_retry() {
    let mut session = drawing();
    assert_eq!(session.handle(Timestamp(0), Event::User(Action::Stop)), Ok(vec![]));
    assert_eq!(session.handle(Timestamp(0), Event::User(Action::Retry)), Ok(vec![Effect::Draw]));
    assert_eq!(*session.phase(), Phase::Running(Running::Drawing));
}

#[test]
fn a_draw_that_was_stopped_is_not_made_up_for_in_the_next_turn() {
    let mut session = drawing();
    session.handle(Timestamp(0), Event::User(Action::Stop)).expect("something runs");
    let words = Action::SubmitInput { text: "No, I stay.".into(), values: Default::default() };
    assert_eq!(session.handle(Timestamp(0), Event::User(words)), Ok(vec![Effect::Draw]));
    session.handle(Timestamp(0), Event::Drawn { seed: Seed(7) }).expect("a draw is owed");
    drawn(
        &session,
        expect![[r#"
        play.dice.current: d20: 8, 5, 7, 4 (turn 2)
        play.weather.current: rain (turn 2)
        play.fate.current: percent: 6 (turn 2)
    "#]],
    );
}

#[test]
fn a_session_that_is_finished_owes_no_draw() {
    let mut session = drawing();
    assert_eq!(session.handle(Timestamp(0), Event::User(Action::Finish)), Ok(vec![]));
    assert_eq!(session.open_effects(), []);
}

#[test]
fn a_seed_is_written_so_that_every_reader_keeps_it() {
    let event = Event::Drawn { seed: Seed(u64::MAX) };
    let json = serde_json::to_string(&event).expect("plain data");
    expect![[r#"{"event":"drawn","seed":"ffffffffffffffff"}"#]].assert_eq(&json);
    assert_eq!(serde_json::from_str::<Event>(&json).expect("our own"), event);
}
