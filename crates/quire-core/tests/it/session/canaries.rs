//! What no prompt may hold: a word that betrays itself is put wherever it must not be seen from (SPEC §7).

use quire_testkit::play::play;

/// Returns the prompts of workers whose title begins with `asker`.
fn prompts_of(scenario: &str, asker: &str) -> Vec<String> {
    let prompts: Vec<String> =
        (play(scenario).prompts.into_iter()).filter(|prompt| prompt.asker.starts_with(asker)).map(|prompt| prompt.text).collect();
    assert!(!prompts.is_empty(), "{asker} is never asked");
    prompts
}

fn assert_unseen(prompts: &[String], canary: &str) {
    for prompt in prompts {
        assert!(!prompt.contains(canary), "{canary} is seen:\n{prompt}");
    }
}

#[test]
fn a_role_sees_neither_other_roles_nor_anybodys_thoughts() {
    let scenario = "
        pack    roles
        user    A play.
        agent   run_worker persona role=A
        worker  submit
                + 角色.A.设定: A-SETTING
                + 角色.A.思考: A-THOUGHT
                summary: A-SUMMARY
        agent   run_worker persona role=B
        worker  submit
                + 角色.B.设定: B-SETTING
                + 角色.B.思考: B-THOUGHT
        agent   run_worker act role=A
        worker  submit 角色.A.行动: A-ACT
        agent   run_worker act role=B
        worker  submit 角色.B.行动: B-ACT
        agent   run_worker act role=A: again
        worker  submit 角色.A.行动: A-ACT-2
    ";
    for (role, other) in [("A", "B"), ("B", "A")] {
        let prompts = prompts_of(scenario, &format!("act ({role})"));
        assert!(prompts.iter().all(|prompt| prompt.contains(&format!("{role}-SETTING"))));
        for canary in [format!("{other}-"), format!("{role}-THOUGHT"), "A-SUMMARY".to_owned()] {
            assert_unseen(&prompts, &canary);
        }
    }
}

#[test]
fn under_isolation_a_failing_review_reaches_nobody_and_the_users_note_does() {
    let scenario = "
        pack    roles
        user    A play.
        agent   run_worker persona role=A
        worker  submit 角色.A.设定: Brave.
        agent   run_worker scene
        worker  submit 场景.当前: SCENE
        agent   run_worker act role=A
        worker  submit 角色.A.行动: Steps forward.
        agent   run_worker blind role=A
        worker  submit 评审:
                verdict: fail
                REVIEW-NOTE
        agent   run_worker act role=A: again
        worker  ask_user
                ? How far?
        user    reject: USER-NOTE
    ";
    let acts = prompts_of(&format!("{scenario}    worker  submit 角色.A.行动: Steps.\n"), "act");
    assert_unseen(&acts, "REVIEW-NOTE");
    assert!(acts.last().is_some_and(|prompt| prompt.contains("USER-NOTE") && prompt.contains("Steps forward.")));
    assert_unseen(&prompts_of(scenario, "blind"), "SCENE");
}

#[test]
fn reasons_drafts_rejected_and_superseded_texts_and_talk_reach_no_worker() {
    let scenario = "
        pack    novel
        user    A story.
        agent   ask_user: AGENT-WORDS
        user    Go on.
        agent   run_worker draft: REASON
        worker  submit
                + chapter.draft: FIRST-TEXT
                summary: SUMMARY
        user    reject: Longer.
        worker  submit chapter.draft: SECOND-TEXT
        user    discard
        agent   run_worker outline approval: REASON
        user    reject_step: USER-REASON
        agent   run_worker draft: REASON
        worker  submit chapter.draft: One, two.
        user    accept
        agent   run_worker edit: REASON
        worker  submit final.draft: FINAL-DRAFT
        user    reject
        user    edit final.draft: EDITED-DRAFT
        user    accept
        agent   run_worker outline: REASON
        worker  submit outline.draft: OUTLINE-DRAFT
        user    discard
        agent   run_worker draft: REASON
        worker  submit chapter.draft: Three.
        user    accept
    ";
    for asker in ["draft", "edit", "outline"] {
        let prompts = prompts_of(scenario, asker);
        for canary in ["REASON", "AGENT-WORDS", "SUMMARY", "FINAL-DRAFT", "EDITED-DRAFT", "OUTLINE-DRAFT"] {
            assert_unseen(&prompts, canary);
        }
    }
    let drafts = prompts_of(scenario, "draft");
    assert!(drafts[1].contains("FIRST-TEXT"), "its own draft is given to a rerun");
    assert_unseen(&drafts[2..], "FIRST-TEXT");
    assert_unseen(&drafts, "SECOND-TEXT");
}

#[test]
fn the_agent_sees_no_text_it_did_not_read_and_no_shared_context() {
    let play = play(
        "
        pack    novel
        user    A story.
        agent   run_worker draft
        worker  submit chapter.draft: CHAPTER-TEXT
        user    reject: Longer.
        worker  submit chapter.draft: CHAPTER-TEXT-2
        user    accept
        agent   run_worker draft: more
        worker  submit chapter.draft: REJECTED-TEXT
        user    discard
        agent   read_blackboard chapter.*
        agent   ask_user: Done.
    ",
    );
    let agent: Vec<&str> =
        play.prompts.iter().filter(|prompt| prompt.asker == "agent").map(|prompt| prompt.text.as_str()).collect();
    let (last, before) = agent.split_last().expect("prompts");
    assert!(before.iter().all(|prompt| !prompt.contains("-TEXT")));
    assert!(last.contains("CHAPTER-TEXT-2") && !last.contains("REJECTED-TEXT") && !last.contains("output-protocol"));
}
