//! The main agent: its tools, its burst, its prompt (SPEC §3.3, §4, §5.1).

use expect_test::expect;
use quire_testkit::play::{check, check_prompts, play};

#[test]
fn loop_calls_go_first_and_one_boundary_ends_the_loop() {
    check(
        "
        pack    novel
        user    A story.
        agent   read_blackboard user.brief nothing.*
         and    list_workers
         and    list_artifacts
        agent   ask_user: I have looked.
         and    list_artifacts
        user    Go on.
        agent   run_worker draft
         and    ask_user: Or shall I ask?
        agent   review_blackboard: One brief.
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, agent; told: ## user.brief (accepted, item 2) ⏎  ⏎ A story. ⏎  ⏎ No text matches: nothing.*; told: - outline: Makes an outline. ⏎   reads: user.brief, 用户.最新输入 ⏎   writes: outline.draft ⏎ - draft: Writes the chapter. ⏎   reads: user.brief, outline.confirmed ⏎   writes: chapter.draft, notes.draft ⏎ -…; told: nothing has been handed in yet
            waiting_user input: I have looked.
            running burst 0/12, agent; 用户.最新输入 written
            running burst 1/12, agent; told: error: one reply can hold only one of run_worker, ask_user, review_blackboard, declare_instance_ready and finish; none of them was done; call just one; told: error: one reply can hold only one of run_worker, ask_user, review_blackboard, declare_instance_ready and finish; none of them was done; call just one
            waiting_user input: One brief.
        "#]],
    );
}

#[test]
fn text_without_a_call_is_a_question_or_an_old_decision() {
    check(
        r#"
        pack    novel
        user    A story.
        agent   text: What shall I do?
        user    Write.
        agent   text: {"action": "run_worker", "workerId": "outline", "reason": "first", "requiresApproval": false}
        worker  submit outline.draft: One beat.
        user    accept
        agent   text: {"action": "dance"}
        agent   call ask_user {"assessment": ""}
        agent   call ask_user {"assessment": "", "questions": ["Why?", ""]}
    "#,
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            waiting_user input: What shall I do?
            running burst 0/12, agent; 用户.最新输入 written
            running burst 1/12, worker outline
            waiting_user review of artifact 1: outline.draft
            running burst 0/12, agent; outline.confirmed written
            running burst 1/12, agent; told: error: there is no tool `dance`; there are: read_blackboard, list_workers, list_artifacts, delegate_task, cancel_delegate_task, list_delegated_tasks, run_worker, ask_user, review_blackboard, finish
            running burst 2/12, agent; told: error: `ask_user` says nothing: give an assessment, or at least one question
            waiting_user input; card 1: q1 Why?
        "#]],
    );
}

#[test]
fn a_models_mistake_is_a_result_that_says_what_is_allowed() {
    check(
        r#"
        pack    novel
        user    A story.
        agent   call dance {}
        agent   call run_worker {"workerId": "draft"}
        agent   call run_worker {"workerId": "draft", "reason": "r", "requiresApproval": false, "mood": "gay"}
        agent   call run_worker {"workerId": "nobody", "inputTags": ["a"]}
        agent   call run_worker {"workerId": "edit", "reason": "r", "requiresApproval": false}
        agent   call run_worker {"workerId": "draft", "reason": "r", "requiresApproval": false, "roleId": "a.b"}
        agent   cut call run_worker {"workerId": "draft", "rea
        agent   call read_blackboard {"tags": ["a*"]}
        agent   call read_blackboard not json
        agent   declare_instance_ready
    "#,
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, agent; told: error: there is no tool `dance`; there are: read_blackboard, list_workers, list_artifacts, delegate_task, cancel_delegate_task, list_delegated_tasks, run_worker, ask_user, review_blackboard, finish
            running burst 2/12, agent; told: error: the arguments of `run_worker` do not fit: "reason" is a required property; "requiresApproval" is a required property; nothing was done
            running burst 3/12, agent; told: error: the arguments of `run_worker` do not fit: Additional properties are not allowed ('mood' was unexpected); nothing was done
            running burst 4/12, agent; told: error: the main agent brings no inputTags or outputTags: leave out `inputTags`; the pack declares what a skill reads and writes
            running burst 5/12, agent; told: error: `edit` needs chapter.confirmed, which nobody has written or accepted yet
            running burst 6/12, agent; told: error: `roleId`: `a.b` is not one part of a tag; a role's name has no dot and no star
            running burst 7/12, agent; told: error: the arguments were cut off after 26 characters, so nothing was run; call the tool again with complete arguments, shorter ones if they do not fit
            running burst 8/12, agent; told: error: `a*` has a star that is not a whole part among others; write `role.*.plan` or `outline.*`, or `**` alone for all tags
            running burst 9/12, agent; told: error: the arguments are not one JSON object, so nothing was run: `not json`; call the tool again with one JSON object as its arguments
            running burst 10/12, agent; told: error: there is no tool `declare_instance_ready`; there are: read_blackboard, list_workers, list_artifacts, delegate_task, cancel_delegate_task, list_delegated_tasks, run_worker, ask_user, review_blac…
        "#]],
    );
}

#[test]
fn a_burst_is_spent_after_its_rounds_and_retry_starts_a_new_one() {
    check(
        "
        pack    novel
        option  burst_max=2
        user    A story.
        agent   list_workers
        agent   list_artifacts
        user    retry
        agent   read_blackboard **
        agent   run_worker draft
        worker  submit chapter.draft: One.
        user    accept
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/2, agent; 用户.最新输入 written; user.brief written
            running burst 1/2, agent; told: - outline: Makes an outline. ⏎   reads: user.brief, 用户.最新输入 ⏎   writes: outline.draft ⏎ - draft: Writes the chapter. ⏎   reads: user.brief, outline.confirmed ⏎   writes: chapter.draft, notes.draft ⏎ -…
            waiting_user input; burst_spent: the agent has used its 2 rounds; retry gives it new ones, or say what you want
            running burst 0/2, agent
            running burst 1/2, agent; told: ## user.brief (accepted, item 2) ⏎  ⏎ A story. ⏎  ⏎ ## 用户.最新输入 (accepted, item 1) ⏎  ⏎ A story.
            running burst 2/2, worker draft
            waiting_user review of artifact 1: chapter.draft
            running burst 0/2, agent; chapter.confirmed written
        "#]],
    );
}

#[test]
fn what_the_pack_accepts_does_not_reset_the_burst_and_the_last_rounds_calls_are_carried_out() {
    check(
        "
        pack    auto
        user    A story.
        agent   run_worker draft: one
        worker  submit chapter.draft: One.
        agent   run_worker draft: two
        worker  ask_user
                ? Who?
        user    answer q1=She
        worker  submit chapter.draft: Two.
        agent   run_worker draft: three
        worker  submit
                + chapter.draft: Three.
                ? Was that right?
        agent   run_worker draft: four
        worker  submit chapter.draft: Four.
        agent   run_worker draft: five
        worker  submit chapter.draft: Five.
        agent   run_worker draft: six
        worker  submit chapter.draft: Six.
        user    retry
    ",
        expect![[r#"
            waiting_user input
            running burst 0/4, agent; 用户.最新输入 written
            running burst 1/4, worker draft
            running burst 1/4, agent; chapter.draft written; chapter.confirmed written; told: artifact 1 accepted (chapter.draft: 4 characters):
            running burst 2/4, worker draft
            waiting_user questions of draft; card 1: q1 Who?
            running burst 0/4, worker draft
            running burst 0/4, agent; chapter.draft written; chapter.confirmed written; told: artifact 2 accepted (chapter.draft: 4 characters):; told: user: answered draft: Who? — She
            running burst 1/4, worker draft
            running burst 1/4, agent; chapter.draft written; chapter.confirmed written; told: artifact 3 accepted (chapter.draft: 6 characters):  ⏎ question: Was that right?
            running burst 2/4, worker draft
            running burst 2/4, agent; chapter.draft written; chapter.confirmed written; told: artifact 4 accepted (chapter.draft: 5 characters):
            running burst 3/4, worker draft
            running burst 3/4, agent; chapter.draft written; chapter.confirmed written; told: artifact 5 accepted (chapter.draft: 5 characters):
            running burst 4/4, worker draft
            waiting_user input; burst_spent: the agent has used its 4 rounds; retry gives it new ones, or say what you want; chapter.draft written; chapter.confirmed written
            running burst 0/4, agent
        "#]],
    );
}

#[test]
fn the_same_call_a_third_time_is_answered_by_an_error() {
    check(
        r#"
        pack    novel
        user    A story.
        agent   read_blackboard user.brief
        agent   call read_blackboard { "tags": [ "user.brief" ] }
        agent   read_blackboard user.brief
        agent   read_blackboard user.*
        agent   ask_user: Well?
        user    Go on.
        agent   read_blackboard user.brief
    "#,
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, agent; told: ## user.brief (accepted, item 2) ⏎  ⏎ A story.
            running burst 2/12, agent; told: ## user.brief (accepted, item 2) ⏎  ⏎ A story.
            running burst 3/12, agent; told: error: this is the third time you call `read_blackboard` with the same arguments since the user's last action; it was not done again; do something else, or ask the user
            running burst 4/12, agent; told: ## user.brief (accepted, item 2) ⏎  ⏎ A story.
            waiting_user input: Well?
            running burst 0/12, agent; 用户.最新输入 written
            running burst 1/12, agent; told: ## user.brief (accepted, item 2) ⏎  ⏎ A story.
        "#]],
    );
}

#[test]
fn an_empty_reply_is_reminded_and_counts() {
    check(
        "
        pack    novel
        option  burst_max=2
        user    A story.
        agent   call list_workers
        agent   cut call list_workers {
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/2, agent; 用户.最新输入 written; user.brief written
            running burst 1/2, agent; told: - outline: Makes an outline. ⏎   reads: user.brief, 用户.最新输入 ⏎   writes: outline.draft ⏎ - draft: Writes the chapter. ⏎   reads: user.brief, outline.confirmed ⏎   writes: chapter.draft, notes.draft ⏎ -…
            waiting_user input; burst_spent: the agent has used its 2 rounds; retry gives it new ones, or say what you want
        "#]],
    );
}

#[test]
fn the_pack_or_the_agent_wants_approval() {
    check(
        "
        pack    auto
        user    A story.
        agent   run_worker draft approval: First.
        user    approve
        worker  submit chapter.draft: One.
        agent   run_worker polish: It can be better.
        user    approve 2
        worker  submit polished.draft: One!
        agent   finish
    ",
        expect![[r#"
            waiting_user input
            running burst 0/4, agent; 用户.最新输入 written
            waiting_user approval of decision 1: draft
            running burst 0/4, worker draft
            running burst 0/4, agent; chapter.draft written; chapter.confirmed written; told: artifact 1 accepted (chapter.draft: 4 characters):
            waiting_user approval of decision 2: polish
            running burst 0/4, worker polish
            running burst 0/4, agent; polished.draft written; polished.confirmed written; told: artifact 2 accepted (polished.draft: 4 characters):
            done
        "#]],
    );
}

#[test]
fn the_prompt_begins_with_what_stays_and_ends_with_the_burst() {
    check_prompts(
        "
        pack    auto
        user    A story about a lamp.
        agent   read_blackboard 用户.*
        agent   run_worker polish: Too early.
        agent   run_worker draft: Now.
        worker  submit
                + chapter.draft: The lamp was dark.
                summary: A beginning.
                ? Was that right?
        agent   ask_user: There is a chapter.
                ? q1: Go on? [A: yes | B: no]
        user    edit notes: My own note.
        user    answer q1=A
        agent   run_worker draft: Longer.
        worker  fails network: The line is dead.
        user    edit notes: Another note.
        user    retry
        worker  submit chapter.draft: The lamp was very dark.
        agent   finish
    ",
        "agent",
        expect![[r#"
            === system ===
            You are the main agent of a writing session. You decide which skill works next; you write none of the text yourself.

            How it works:
            - Skills do the work. Each is declared by the pack below: what it reads, what it writes. You start one with `run_worker`. What it hands in becomes a fact only when the user accepts it, or where the pack says so beforehand.
            - The blackboard holds all texts by tag. You see its index: tag, state, size. Read a text with `read_blackboard` before you speak about it; never describe a text you have not read.
            - `delegate_task` lets a sub-agent dig into a question beside the session: facts, sources, a comparison. It knows nothing but what you write into the task.
            - `read_blackboard`, the three `list_…` tools, `delegate_task` and `cancel_delegate_task` give you a result and you go on. `run_worker`, `ask_user`, `review_blackboard`, `declare_instance_ready` and `finish` end your turn: call one of them, alone or after the others, and call it exactly once.
            - You have a limited number of rounds between two actions of the user. Do not repeat a call that gave you nothing new.
            - When something failed or was refused, the result says why and what is allowed. Mend it, or ask the user.
            - Ask the user only what you cannot decide from the brief, and put questions that belong together on one card.
            - When all the pack is meant to make is made and accepted, tell the user, or `finish` when they have nothing more to ask.
            - Speak to the user in the user's own language.

            # Pack: auto

            A small pack whose drafts are accepted beforehand.

            # Skills

            - draft: Writes a chapter. (accepted without asking)
            - polish: Polishes it, when the user lets it. (accepted without asking)

            # Manifest

            Draft, then polish.
            === user ===
            # Log


            # Now

            user: A story about a lamp.

            # Blackboard

            Stage: play
            用户.最新输入: accepted, 21 characters, by user

            === tools: read_blackboard, list_workers, list_artifacts, delegate_task, cancel_delegate_task, list_delegated_tasks, run_worker, ask_user, review_blackboard, finish ===

            === all as before, and ===
            === assistant ===
            [calls read_blackboard {"tags":["用户.*"]}]
            === tool ===
            ## 用户.最新输入 (accepted, item 1)

            A story about a lamp.


            === tools: read_blackboard, list_workers, list_artifacts, delegate_task, cancel_delegate_task, list_delegated_tasks, run_worker, ask_user, review_blackboard, finish ===

            === all as before, and ===
            === assistant ===
            [calls run_worker {"workerId":"polish","reason":"Too early.","requiresApproval":false}]
            === tool ===
            error: `polish` needs chapter.confirmed, which nobody has written or accepted yet
            === tools: read_blackboard, list_workers, list_artifacts, delegate_task, cancel_delegate_task, list_delegated_tasks, run_worker, ask_user, review_blackboard, finish ===

            === all as before, and ===
            === assistant ===
            [calls run_worker {"workerId":"draft","reason":"Now.","requiresApproval":false}]
            === tool ===
            artifact 1 accepted (chapter.draft: 18 characters): A beginning.
            question: Was that right?
            === tools: read_blackboard, list_workers, list_artifacts, delegate_task, cancel_delegate_task, list_delegated_tasks, run_worker, ask_user, review_blackboard, finish ===

            === system, as before ===
            === user ===
            # Log

            user: A story about a lamp.
            agent: run draft: Now.
            draft: handed in artifact 1 (chapter.draft: 18 characters): A beginning.
            draft: asks: Was that right?
            artifact 1: accepted by the pack
            agent: There is a chapter.

            # Now

            user: edited notes
            user: answered: Go on? — yes

            # Blackboard

            Stage: play
            chapter.confirmed: accepted, 18 characters, by runtime
            chapter.draft: accepted, 18 characters, by draft
            notes: accepted, 12 characters, by user
            用户.最新输入: accepted, 21 characters, by user

            === tools: read_blackboard, list_workers, list_artifacts, delegate_task, cancel_delegate_task, list_delegated_tasks, run_worker, ask_user, review_blackboard, finish ===

            === all as before, and ===
            === assistant ===
            [calls run_worker {"workerId":"draft","reason":"Longer.","requiresApproval":false}]
            === tool ===
            artifact 2 accepted (chapter.draft: 23 characters): 
            === user ===
            user: edited notes
            === tools: read_blackboard, list_workers, list_artifacts, delegate_task, cancel_delegate_task, list_delegated_tasks, run_worker, ask_user, review_blackboard, finish ===

        "#]],
    );
}

#[test]
fn each_opening_begins_with_the_log_of_the_one_before() {
    let turns: String = (0..40).map(|turn| format!("user Turn {turn}.\nagent ask_user: Answer {turn}.\n")).collect();
    let play = play(&format!("pack novel\n{turns}"));
    let logs: Vec<&str> = play.prompts.iter().map(|prompt| log_of(&prompt.text)).collect();
    assert_eq!(logs.len(), 40);
    for pair in logs.windows(2) {
        assert!(pair[1].starts_with(pair[0]), "{}\ndoes not go on from\n{}", pair[1], pair[0]);
    }
}

#[test]
fn a_log_beyond_its_budget_loses_whole_blocks() {
    let words = "word ".repeat(40);
    let turns: String =
        (0..130).map(|turn| format!("user Turn {turn} {words}.\nagent ask_user: Answer {turn} {words}\n")).collect();
    let play = play(&format!("pack novel\n{turns}"));
    let heads: Vec<&str> = play.prompts.iter().map(|prompt| log_of(&prompt.text).lines().nth(2).unwrap_or_default()).collect();
    let mut seen: Vec<&str> = heads.clone();
    seen.dedup();
    expect![[r#"

        user: Turn 0 word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word wor…
        (64 earlier lines are left out: 32 of agent, 32 of user)
        (128 earlier lines are left out: 64 of agent, 64 of user)"#]].assert_eq(&seen.join("\n"));
    let mut kept = 0;
    for pair in play.prompts.windows(2) {
        kept += usize::from(log_of(&pair[1].text).starts_with(log_of(&pair[0].text)));
    }
    assert!(kept + seen.len() >= play.prompts.len() - 1, "the log's beginning changed more often than blocks were dropped");
}

fn log_of(prompt: &str) -> &str {
    let start = prompt.find("# Log").expect("a log");
    let end = prompt.find("\n# Now").expect("what is now");
    prompt.get(start..end).expect("between characters")
}

#[test]
fn a_long_index_is_drawn_together() {
    let notes: String = (0..201).map(|note| format!("user edit notes.n{}.t{note}: x\n", note % 3)).collect();
    let play = play(&format!("pack novel\n{notes}user Go.\nagent list_artifacts"));
    let prompt = &play.prompts[0].text;
    let index = prompt.split("# Blackboard").nth(1).expect("an index");
    expect![[r#"


        Stage: play
        notes.n0.*: 67 tags
        notes.n1.*: 67 tags
        notes.n2.*: 67 tags
        user.brief.*: 1 tags
        用户.最新输入.*: 1 tags

        === tools: read_blackboard, list_workers, list_artifacts, delegate_task, cancel_delegate_task, list_delegated_tasks, run_worker, ask_user, review_blackboard, finish ===
    "#]]
    .assert_eq(index);
}

#[test]
fn the_agent_learns_of_hidden_texts_only_that_they_exist_until_they_are_revealed() {
    let play = play(
        "
        pack    hidden
        user    A murder.
        agent   run_worker plot
        worker  submit
                + secret.draft: THE BUTLER
                summary: It was THE BUTLER.
        agent   read_blackboard secret.*
         and    list_artifacts
        agent   run_worker check
        worker  submit secret.checked: \"THE BUTLER\"
        agent   run_worker clue
        worker  submit clue.draft: A glove.
        agent   ask_user: There is a clue.
        user    edit secret.confirmed: No.
        user    Go on.
        agent   list_artifacts
        agent   ask_user: Go on?
        user    reveal
        user    And now?
        agent   read_blackboard secret.confirmed
        agent   finish
    ",
    );
    let (last, before) = play.prompts.split_last().expect("prompts");
    for prompt in before.iter().filter(|prompt| prompt.asker == "agent") {
        assert!(!prompt.text.contains("BUTLER"), "{}", prompt.text);
    }
    assert!(last.text.contains("THE BUTLER"));
    let clue = before.iter().find(|prompt| prompt.asker == "clue").expect("the clue's prompt");
    assert!(clue.text.contains("THE BUTLER"), "workers read hidden texts as declared");
    expect![[r#"
        waiting_user input
        running burst 0/12, agent; 用户.最新输入 written
        running burst 1/12, worker plot
        running burst 1/12, agent; secret.draft written; secret.confirmed written; told: artifact 1 accepted (secret.draft: hidden): (hidden)
        running burst 2/12, agent; told: ## secret.confirmed (exists, hidden) ⏎  ⏎ ## secret.draft (exists, hidden); told: - 1: plot, accepted, secret.draft: (hidden)
        running burst 3/12, worker check
        running burst 3/12, agent; told: artifact 2 was sent back by its checks: a check does not hold of `secret.checked`, which is hidden. Run the skill again to have it mended.
        running burst 4/12, worker clue
        running burst 4/12, agent; clue.draft written; clue.confirmed written; told: artifact 3 accepted (clue.draft: 8 characters):
        waiting_user input: There is a clue.
        refused: `secret.confirmed` is hidden from you; reveal it first
        running burst 0/12, agent; 用户.最新输入 written
        running burst 1/12, agent; told: - 1: plot, accepted, secret.draft: (hidden) ⏎ - 2: check, revision_requested, secret.checked:  ⏎ - 3: clue, accepted, clue.draft:
        waiting_user input: Go on?
        waiting_user input: Go on?
        running burst 0/12, agent; 用户.最新输入 written
        running burst 1/12, agent; told: ## secret.confirmed (accepted, item 3) ⏎  ⏎ THE BUTLER
        done
    "#]].assert_eq(&play.text());
}

#[test]
fn what_the_user_said_is_told_whole_even_if_the_agent_failed_before_it_could_read_it() {
    let words = "word ".repeat(60);
    let play = play(&format!(
        "
        pack    novel
        user    First {words}END-OF-FIRST
        agent   fails network: Dead.
        user    Second.
        agent   text: I see.
        user    Third.
        agent   list_artifacts
    "
    ));
    let opening = |index: usize| play.prompts[index].text.split("# Now").nth(1).expect("an opening");
    assert!(opening(1).contains("END-OF-FIRST") && opening(1).contains("Second."));
    assert!(!opening(2).contains("END-OF-FIRST") && !opening(2).contains("Second."));
}

#[test]
fn what_is_hidden_shows_when_the_session_is_done_where_the_pack_says_so() {
    let play = play("pack hidden\nuser A murder.\nagent run_worker plot\nworker submit secret.draft: THE BUTLER");
    let secret = quire_core::tag::Tag::parse("secret.draft").expect("a tag");
    assert!(play.session.is_hidden(&secret));
    let mut done = quire_testkit::hand::Hand { session: play.session, events: play.events };
    done.user(quire_core::event::Action::Finish).expect("finish is heard");
    assert!(!done.session.is_hidden(&secret));
}
