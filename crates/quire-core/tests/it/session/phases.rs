use expect_test::expect;
use quire_testkit::play::check;

#[test]
fn a_second_accept_is_refused_and_harms_nothing() {
    check(
        "
        pack    novel
        user    A story about a lighthouse.
        agent   run_worker draft
        worker  submit chapter.draft: The lamp had been dark for a week.
        user    accept
        user    accept
        agent   read_blackboard chapter.*
        agent   run_worker nobody
        agent   ask_user: What now?
            ? Which way? [north | south]
        user    answer q1=B
    ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, worker draft
            waiting_user review of artifact 1: chapter.draft
            running burst 0/12, agent; chapter.confirmed written
            refused: `accept` is not heard now
            running burst 1/12, agent; told: ## chapter.confirmed (accepted, item 4) ⏎  ⏎ The lamp had been dark for a week. ⏎  ⏎ ## chapter.draft (accepted, item 3) ⏎  ⏎ The lamp had been dark for a week.
            running burst 2/12, agent; told: error: there is no skill `nobody`; there are: outline, draft, edit
            waiting_user input: What now?; card 1: q1 Which way?
            running burst 0/12, agent
        "#]],
    );
}
