use expect_test::{Expect, expect};
use quire_core::ids::SkillId;
use quire_scenario::{ModelLine, Scenario};

use crate::{parse, said};

/// Plays one asker as a session would: each answer is recorded, and the next request tells how many there have been.
fn check(rounds: u64, ask: impl Fn(u64) -> ModelLine, expected: Expect) {
    let mut shown = String::new();
    for answered in 0..rounds {
        let line = ask(answered);
        shown += &format!("{}\n", said(&line));
    }
    expected.assert_eq(&shown);
}

fn scenario() -> Scenario {
    parse(
        "
        agent   run_worker draft
        worker  fails network: The line is dead.
        worker  text: One.
        agent   fails unavailable: 503
        agent   fails unavailable: 503 again
        agent   run_worker edit
        worker  text: Edited.
        worker(draft) text: Two.
        worker(draft) fails cut: No end mark.
    ",
    )
}

#[test]
fn the_agent_speaks_its_lines_and_then_says_that_they_are_over() {
    check(
        5,
        |answered| scenario().agent_line(answered),
        expect![[r#"
        call-1: run_worker {"workerId":"draft","reason":"draft comes next","requiresApproval":false}
            (ToolCalls)
        fails, Unavailable: 503
        fails, Unavailable: 503 again
        call-1: run_worker {"workerId":"edit","reason":"edit comes next","requiresApproval":false}
            (ToolCalls)
        call-1: ask_user {"assessment":"The script that plays the agent has ended (its last line is line 10). Nothing more will happen here by itself: finish the session, or start another one with a real model."}
            (ToolCalls)
    "#]],
    );
}

#[test]
fn a_worker_speaks_its_own_lines_and_then_repeats_the_last() {
    check(
        5,
        |answered| scenario().worker_line(&SkillId::new("draft"), None, answered),
        expect![[r#"
        fails, Network: The line is dead.
        "One."
            (Stop)
        "Two."
            (Stop)
        fails, Cut: No end mark.
        "Two."
            (Stop)
    "#]],
    );
}

#[test]
fn a_worker_without_lines_fails_with_a_way_out() {
    check(
        1,
        |answered| scenario().worker_line(&SkillId::new("draft"), Some("A"), answered),
        expect![[r#"
        fails, Setup: the scenario has no line for the worker `draft`; add one (`worker(draft role=A) submit …`), or choose a profile with a real model
    "#]],
    );
}

#[test]
fn an_empty_scenario_speaks_too() {
    check(
        1,
        |answered| parse("").agent_line(answered),
        expect![[r#"
        call-1: ask_user {"assessment":"The script that plays the agent has ended (it has no lines at all). Nothing more will happen here by itself: finish the session, or start another one with a real model."}
            (ToolCalls)
    "#]],
    );
}
