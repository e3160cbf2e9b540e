//! What the user does (SPEC §3.2), row by row: where it is heard, and what follows.

use expect_test::expect;
use quire_testkit::play::check;

#[test]
fn words_fill_the_intake_by_values_by_lines_and_as_the_one_missing_field() {
    check(
        "
        pack    intake
        user    confirm
        user    set colour=red
        user    Just an idea.
        user    Idea: a lighthouse
        user    set length=short
        user    dry and tender
        user    It should rain.
        user    confirm
    ",
        expect![[r#"
            waiting_user intake, missing Idea, Tone
            refused: the intake still needs: Idea, Tone
            refused: there is no field `colour`; there are: idea, tone, length
            waiting_user intake, missing Idea, Tone
            waiting_user intake, missing Tone
            waiting_user intake, missing Tone
            waiting_user intake, complete
            waiting_user intake, complete
            running burst 0/12, agent; user.brief written
        "#]],
    );
}

#[test]
fn the_confirmed_intake_is_written_field_by_field_and_then_the_notes() {
    let play = quire_testkit::play::play(
        "
        pack    intake
        user    Some rain, please.
        user    tone：dry
        user    set idea=lamp length=short
        user    confirm
        agent   ask_user: And now?
        user    Go on.
    ",
    );
    let brief = quire_core::tag::Tag::parse("user.brief").expect("a tag");
    let items: Vec<&str> = play.session.board().history(&brief).map(|item| &*item.content).collect();
    assert_eq!(items, ["Idea: lamp\nTone: dry\nLength: short\nSome rain, please."]);
}

#[test]
fn first_words_also_go_to_the_target_where_no_intake_was_confirmed() {
    check(
        "
        pack    novel
        user    A story about a lighthouse.
        agent   ask_user: Fine.
        user    Make it rain.
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            waiting_user input: Fine.
            running burst 0/12, agent; 用户.最新输入 written
        "#]],
    );
}

#[test]
fn words_while_a_step_waits_for_leave_say_no_to_it() {
    check(
        "
        pack    novel
        user    A story.
        agent   run_worker outline approval: Outline first.
        user    No outline, please.
        agent   run_worker outline approval: Really.
        user    reject_step: Still no.
        agent   run_worker outline approval: Once more.
        user    reject_step
        agent   run_worker outline approval: Last time.
        user    approve 3
        user    approve 4
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            waiting_user approval of decision 1: outline
            running burst 0/12, agent
            waiting_user approval of decision 2: outline
            running burst 0/12, agent
            waiting_user approval of decision 3: outline
            running burst 0/12, agent
            waiting_user approval of decision 4: outline
            refused: decision 3 is not the pending one; decision 4 is
            running burst 0/12, worker outline
        "#]],
    );
}

#[test]
fn words_under_review_are_a_reason_to_send_it_back() {
    check(
        "
        pack    novel
        user    A story.
        agent   run_worker draft
        worker  submit chapter.draft: One.
        user    Longer.
        worker  submit chapter.draft: One, two.
        user    accept 1
        user    reject 2: Still longer.
        worker  submit chapter.draft: One, two, three.
        user    accept 3
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, worker draft
            waiting_user review of artifact 1: chapter.draft
            running burst 0/12, worker draft
            waiting_user review of artifact 2: chapter.draft
            refused: artifact 1 is not the pending one; artifact 2 is
            running burst 0/12, worker draft
            waiting_user review of artifact 3: chapter.draft
            running burst 0/12, agent; chapter.confirmed written
        "#]],
    );
}

#[test]
fn words_answer_all_that_a_run_asks() {
    check(
        "
        pack    novel
        user    A story.
        agent   run_worker draft
        worker  ask_user
                ? Who? [A: she | B: he] (required)
                ? When?
        user    Both of them, at night.
        worker  submit chapter.draft: They.
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, worker draft
            waiting_user questions of draft; card 1: q1 Who? / q2 When?
            running burst 0/12, worker draft
            waiting_user review of artifact 1: chapter.draft
        "#]],
    );
}

#[test]
fn a_rejection_without_a_reason_waits_for_an_instruction() {
    check(
        "
        pack    novel
        user    A story.
        agent   run_worker draft
        worker  submit chapter.draft: One.
        user    reject
        user    reject: again
        user    answer q1=A
        user    Longer.
        worker  submit chapter.draft: One, two.
        user    reject
        user    accept
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, worker draft
            waiting_user review of artifact 1: chapter.draft
            waiting_user revision of artifact 1: chapter.draft
            refused: `reject` is not heard now
            refused: no question is open
            running burst 0/12, worker draft
            waiting_user review of artifact 2: chapter.draft
            waiting_user revision of artifact 2: chapter.draft
            running burst 0/12, agent; chapter.confirmed written
        "#]],
    );
}

#[test]
fn a_discarded_artifact_is_nobodys_and_the_agent_hears_of_it() {
    check(
        "
        pack    novel
        user    A story.
        agent   run_worker draft
        worker  submit chapter.draft: One.
        user    reject
        user    discard
        agent   read_blackboard chapter.*
        agent   run_worker draft
        worker  submit chapter.draft: Two.
        user    discard 1
        user    discard
        agent   list_artifacts
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, worker draft
            waiting_user review of artifact 1: chapter.draft
            waiting_user revision of artifact 1: chapter.draft
            running burst 0/12, agent
            running burst 1/12, agent; told: No text matches: chapter.*
            running burst 2/12, worker draft
            waiting_user review of artifact 2: chapter.draft
            refused: artifact 1 is not the pending one; artifact 2 is
            running burst 0/12, agent
            running burst 1/12, agent; told: - 1: draft, rejected, chapter.draft:  ⏎ - 2: draft, rejected, chapter.draft:
        "#]],
    );
}

#[test]
fn a_discarded_run_is_cancelled() {
    check(
        "
        pack    novel
        user    A story.
        agent   run_worker draft
        worker  ask_user
                ? Who?
        user    discard 1
        user    discard
        agent   run_worker draft
        worker  submit chapter.draft: One.
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, worker draft
            waiting_user questions of draft; card 1: q1 Who?
            refused: artifact 1 is not pending; a run asks you
            running burst 0/12, agent
            running burst 1/12, worker draft
            waiting_user review of artifact 1: chapter.draft
        "#]],
    );
}

#[test]
fn answers_to_the_agent_are_told_to_it() {
    check(
        "
        pack    novel
        user    A story.
        agent   ask_user: Two things.
                ? who: Who? [A: she | B: he] (required)
                ? When?
        user    answer 7 who=A
        user    answer where=A
        user    answer q2=Now
        agent   ask_user: And?
                ? Why?
        user    skip
        user    skip
        user    Because.
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            waiting_user input: Two things.; card 1: who Who? / q2 When?
            refused: card 7 is not the pending one; card 1 is
            refused: there is no question `where` on this card; it asks `who`, `q2`
            running burst 0/12, agent
            waiting_user input: And?; card 2: q1 Why?
            waiting_user input: And?
            refused: `skip` is not heard now
            running burst 0/12, agent; 用户.最新输入 written
        "#]],
    );
}

#[test]
fn answers_under_review_send_it_back_and_a_skip_does_not() {
    check(
        "
        pack    novel
        user    A story.
        agent   run_worker draft
        worker  submit
                + chapter.draft: One.
                ? Longer? [A: yes | B: no] (required)
        user    skip
        user    answer q1=A
        user    reject: Longer.
        worker  submit
                + chapter.draft: One, two.
                ? Longer still? (required)
        user    answer q1=Yes
        worker  submit chapter.draft: One, two, three.
        user    accept
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, worker draft
            waiting_user review of artifact 1: chapter.draft; card 1: q1 Longer?
            waiting_user review of artifact 1: chapter.draft
            refused: no question is open
            running burst 0/12, worker draft
            waiting_user review of artifact 2: chapter.draft; card 2: q1 Longer still?
            running burst 0/12, worker draft
            waiting_user review of artifact 3: chapter.draft
            running burst 0/12, agent; chapter.confirmed written
        "#]],
    );
}

#[test]
fn a_required_question_of_a_run_can_be_neither_skipped_nor_left_open() {
    check(
        "
        pack    novel
        user    A story.
        agent   run_worker draft
        worker  ask_user
                ? who: Who? (required)
                ? when: When?
        user    skip
        user    answer when=Now
        user    answer who=She
        worker  ask_user
                ? where: Where?
        user    skip 2
        worker  submit chapter.draft: She.
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, worker draft
            waiting_user questions of draft; card 1: who Who? / when When?
            refused: these questions need an answer before work goes on: `who` (Who?)
            refused: these questions need an answer before work goes on: `who` (Who?)
            running burst 0/12, worker draft
            waiting_user questions of draft; card 2: where Where?
            running burst 0/12, worker draft
            waiting_user review of artifact 1: chapter.draft
        "#]],
    );
}

#[test]
fn what_fails_is_retried_exactly() {
    check(
        "
        pack    novel
        user    retry
        user    A story.
        agent   fails unavailable: The provider says 503.
        user    retry
        agent   run_worker draft
        worker  ask_user
                ? Who?
        user    answer q1=She
        worker  fails network: The line is dead.
        user    retry
        worker  submit chapter.draft: She.
        user    reject: Longer.
        worker  fails refused: I would rather not.
        user    retry
        worker  fails refused: I would rather not.
        user    reject
        user    retry
        worker  submit chapter.draft: She sleeps.
        user    accept
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            refused: `retry` is not heard now
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            waiting_user input; failed: The provider says 503.
            running burst 0/12, agent
            running burst 1/12, worker draft
            waiting_user questions of draft; card 1: q1 Who?
            running burst 0/12, worker draft
            waiting_user input; failed: The line is dead.
            running burst 0/12, worker draft
            waiting_user review of artifact 1: chapter.draft
            running burst 0/12, worker draft
            waiting_user review of artifact 1: chapter.draft; failed: I would rather not.
            running burst 0/12, worker draft
            waiting_user review of artifact 1: chapter.draft; failed: I would rather not.
            waiting_user revision of artifact 1: chapter.draft; failed: I would rather not.
            running burst 0/12, worker draft
            waiting_user review of artifact 2: chapter.draft
            running burst 0/12, agent; chapter.confirmed written
        "#]],
    );
}

#[test]
fn a_failed_run_is_given_up_when_the_user_says_something_else() {
    check(
        "
        pack    novel
        user    A story.
        agent   run_worker draft
        worker  fails network: The line is dead.
        user    Do the outline first.
        agent   run_worker outline
        worker  submit outline.draft: One beat.
        user    accept
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, worker draft
            waiting_user input; failed: The line is dead.
            running burst 0/12, agent; 用户.最新输入 written
            running burst 1/12, worker outline
            waiting_user review of artifact 1: outline.draft
            running burst 0/12, agent; outline.confirmed written
        "#]],
    );
}

#[test]
fn a_stop_is_heard_wherever_something_runs() {
    check(
        "
        pack    novel
        user    stop
        user    A story.
        user    stop
        user    retry
        agent   run_worker draft
        user    stop
        user    retry
        worker  submit chapter.draft: One.
        user    reject: Longer.
        user    stop
        user    retry
        worker  submit chapter.draft: One, two.
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            refused: `stop` is not heard now
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            waiting_user input; stopped: stopped by you; retry goes on
            running burst 0/12, agent
            running burst 1/12, worker draft
            waiting_user input; stopped: stopped by you; retry goes on
            running burst 0/12, worker draft
            waiting_user review of artifact 1: chapter.draft
            running burst 0/12, worker draft
            waiting_user review of artifact 1: chapter.draft; stopped: stopped by you; retry goes on
            running burst 0/12, worker draft
            waiting_user review of artifact 2: chapter.draft
        "#]],
    );
}

#[test]
fn finish_is_heard_until_it_is_done() {
    for before in [
        "pack intake",
        "pack novel",
        "pack novel\nuser A story.",
        "pack novel\nuser A story.\nagent run_worker draft",
        "pack novel\nuser A story.\nagent run_worker draft approval",
        "pack novel\nuser A story.\nagent run_worker draft\nworker ask_user\n  ? Who?",
        "pack novel\nuser A story.\nagent run_worker draft\nworker submit chapter.draft: One.",
        "pack novel\nuser A story.\nagent run_worker draft\nworker submit chapter.draft: One.\nuser reject",
        "pack novel\nuser A story.\nagent run_worker draft\nworker fails network: Dead.",
    ] {
        let play = quire_testkit::play::play(&format!("{before}\nuser finish\nuser finish\nuser Hello?\nuser reveal"));
        let told: Vec<&str> = play.told.iter().rev().take(4).map(String::as_str).collect();
        let refused = ["done", "refused: `submit_input` is not heard now", "refused: `finish` is not heard now", "done"];
        assert_eq!(told, refused, "after\n{before}");
        assert!(play.session.runs().iter().all(|run| !run.is_open()), "after\n{before}");
        assert_eq!(play.session.stage().as_str(), "done");
    }
}

#[test]
fn a_budget_stops_the_work_and_retry_is_heard_once_it_is_raised() {
    check(
        "
        pack    novel
        option  budget.rounds=1
        user    A story.
        agent   run_worker draft
        user    retry
        user    set_budget rounds=1
        user    retry
        user    set_budget rounds=2
        user    retry
        worker  submit chapter.draft: One.
        user    reject: Longer.
        user    set_budget tokens=5
        user    retry
        worker  submit chapter.draft: One, two.
        user    set_budget time_ms=1
        user    accept
        user    set_budget rounds=9
        user    finish
        user    set_budget rounds=9
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            waiting_user input; budget_spent: the budget of 1 rounds is spent (1 used); raise it with set_budget, then retry
            refused: the budget of 1 rounds is spent (1 used); raise it with set_budget, then retry
            waiting_user input; budget_spent: the budget of 1 rounds is spent (1 used); raise it with set_budget, then retry
            refused: the budget of 1 rounds is spent (1 used); raise it with set_budget, then retry
            waiting_user input; budget_spent: the budget of 1 rounds is spent (1 used); raise it with set_budget, then retry
            running burst 0/12, worker draft
            waiting_user review of artifact 1: chapter.draft
            waiting_user review of artifact 1: chapter.draft; budget_spent: the budget of 2 rounds is spent (2 used); raise it with set_budget, then retry
            waiting_user review of artifact 1: chapter.draft; budget_spent: the budget of 2 rounds is spent (2 used); raise it with set_budget, then retry
            running burst 0/12, worker draft
            waiting_user review of artifact 2: chapter.draft
            waiting_user review of artifact 2: chapter.draft
            running burst 0/12, agent; chapter.confirmed written
            running burst 0/12, agent
            done
            refused: `set_budget` is not heard now
        "#]],
    );
}

#[test]
fn an_edit_of_a_fact_is_a_fact_and_is_promoted() {
    check(
        "
        pack    novel
        user    edit outline.draft: My own outline.
        user    edit outline.draft base=7: Late.
        user    edit outline.draft base=1: My second outline.
        user    edit notes base=0: A note.
        user    edit notes base=0: Another note.
        user    A story.
        agent   read_blackboard outline.*
        agent   run_worker draft
        user    edit notes: While it runs.
        worker  submit chapter.draft: One.
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            waiting_user input: What shall it be about?; outline.draft written; outline.confirmed written
            refused: `outline.draft` was changed since: its newest item is 1, not 7; look at it and edit that one
            waiting_user input: What shall it be about?; outline.draft written; outline.confirmed written
            waiting_user input: What shall it be about?; notes written
            refused: `notes` was changed since: its newest item is 5, not 0; look at it and edit that one
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, agent; told: ## outline.confirmed (accepted, item 4) ⏎  ⏎ My second outline. ⏎  ⏎ ## outline.draft (accepted, item 3) ⏎  ⏎ My second outline.
            running burst 2/12, worker draft
            refused: `edit_item` is not heard now
            waiting_user review of artifact 1: chapter.draft
        "#]],
    );
}

#[test]
fn an_edit_under_review_takes_the_drafts_place_and_is_checked() {
    check(
        "
        pack    checked
        user    A line.
        agent   run_worker draft
        worker  submit line.draft: too long
        agent   run_worker draft: again
        worker  submit line.draft: too long
        agent   run_worker draft: once more
        worker  submit line.draft: too long
        user    edit line.draft: still too long
        user    edit line.draft: fits
        user    accept
        agent   read_blackboard line.*
    ",
        expect![[r#"
            waiting_user input
            running burst 0/12, agent; 用户.最新输入 written
            running burst 1/12, worker draft
            running burst 1/12, agent; told: artifact 1 was sent back by its checks: `line.draft` has 8 characters, and 5 are allowed (maxChars): shorten it by 3. Run the skill again to have it mended.
            running burst 2/12, worker draft
            running burst 2/12, agent; told: artifact 2 was sent back by its checks: `line.draft` has 8 characters, and 5 are allowed (maxChars): shorten it by 3. Run the skill again to have it mended.
            running burst 3/12, worker draft
            waiting_user revision of artifact 3: line.draft; checks: `line.draft` has 8 characters, and 5 are allowed (maxChars): shorten it by 3
            waiting_user revision of artifact 3: line.draft; checks: `line.draft` has 14 characters, and 5 are allowed (maxChars): shorten it by 9
            waiting_user revision of artifact 3: line.draft
            running burst 0/12, agent; line.confirmed written
            running burst 1/12, agent; told: ## line.confirmed (accepted, item 7) ⏎  ⏎ fits ⏎  ⏎ ## line.draft (accepted, item 6) ⏎  ⏎ fits
        "#]],
    );
}

#[test]
fn an_edit_clears_the_cause_of_a_failed_rerun() {
    check(
        "
        pack    novel
        user    A story.
        agent   run_worker draft
        worker  submit chapter.draft: One.
        user    reject: Longer.
        worker  fails network: The line is dead.
        user    edit chapter.draft: One, two.
        user    retry
        user    accept
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, worker draft
            waiting_user review of artifact 1: chapter.draft
            running burst 0/12, worker draft
            waiting_user review of artifact 1: chapter.draft; failed: The line is dead.
            waiting_user review of artifact 1: chapter.draft
            refused: `retry` is not heard now
            running burst 0/12, agent; chapter.confirmed written
        "#]],
    );
}

#[test]
fn the_user_writes_cells_and_hands_them_back() {
    check(
        "
        pack    tables
        user    edit 变量.表: no
        user    edit_cell 变量.表 hp rev=1: 7
        user    edit_cell 变量.表 hp rev=0: 7
        user    release_cell 变量.表 mp rev=0
        user    Count.
        agent   run_worker count
        worker  submit 变量.表: {\"patch\": {\"hp\": 3, \"mp\": 5}, \"expectedRev\": {\"hp\": 1, \"mp\": 0}}
        agent   ask_user: Counted.
        user    release_cell 变量.表 hp rev=2
        user    release_cell 变量.表 hp rev=1
        user    release_cell 变量.表 hp rev=2
        user    edit_cell 变量.表 mp rev=0: 9
        user    edit_cell notes hp rev=0: 9
        user    Count again.
        agent   run_worker count: again
        worker  submit 变量.表: {\"patch\": {\"hp\": 3}, \"expectedRev\": {\"hp\": 1}}
        agent   run_worker count: once more
        worker  submit 变量.表: {\"patch\": {\"hp\": 4}, \"expectedRev\": {\"hp\": 2}}
        agent   read_blackboard 变量.*
    ",
        expect![[r#"
            waiting_user input
            refused: `变量.表` is a table; edit one cell of it with edit_cell
            refused: `变量.表`: cell `hp` is at revision 0 with value null, not at 1; look at it again and name 0
            waiting_user input; 变量.表 written
            refused: `变量.表`: the table has no cell `mp`
            running burst 0/12, agent; 用户.最新输入 written
            running burst 1/12, worker count
            running burst 1/12, agent; 变量.表 written; told: artifact 1 accepted (变量.表: 64 characters):  ⏎ not written: 变量.表: `hp` belongs to the user and stays 7 (rev 1)
            waiting_user input: Counted.
            refused: `变量.表`: cell `hp` is at revision 1 with value 7, not at 2; look at it again and name 1
            waiting_user input: Counted.; 变量.表 written
            refused: `变量.表`: cell `hp` is not yours
            refused: `变量.表`: cell `mp` is at revision 1 with value 5, not at 0; look at it again and name 1
            refused: `notes` is not a table; edit it with edit_item
            running burst 0/12, agent; 用户.最新输入 written
            running burst 1/12, worker count
            running burst 1/12, agent; 变量.表 written; told: artifact 2 accepted (变量.表: 46 characters):  ⏎ not written: 变量.表: `hp` was written since: it is 7 (rev 2), not rev 1
            running burst 2/12, worker count
            running burst 2/12, agent; 变量.表 written; told: artifact 3 accepted (变量.表: 46 characters):
            running burst 3/12, agent; told: ## 变量.表 (accepted, item 10) ⏎  ⏎ {"rows":[{"key":"hp","value":4,"rev":3,"source":"worker","editable":true},{"key":"mp","value":5,"rev":1,"source":"worker","editable":true}]}
        "#]],
    );
}
