//! The blackboard as a session fills it (SPEC §6): states, promotion, roles, tables.

use expect_test::expect;
use quire_testkit::play::{check, play};

#[test]
fn items_are_drafted_superseded_accepted_rejected_and_never_change() {
    let play = play(
        "
        pack    novel
        user    A story.
        agent   run_worker draft
        worker  submit
                + chapter.draft: One.
                + notes.draft: A note.
        user    reject: Longer.
        worker  submit chapter.draft: One, two.
        user    edit chapter.draft: One, two, three.
        user    accept
        agent   run_worker draft: once more
        worker  submit chapter.draft: Four.
        user    discard
    ",
    );
    let board = play.session.board();
    let line = |item: &quire_core::blackboard::Item| {
        let from: Vec<String> = item.dependencies.iter().map(ToString::to_string).collect();
        format!(
            "{} {} {} by {} from [{}]: {}\n",
            item.number,
            item.tag,
            board.state(item.number).as_str(),
            item.source,
            from.join(", "),
            item.content
        )
    };
    let items: String = board.items().iter().map(line).collect();
    expect![[r#"
        1 用户.最新输入 accepted by user from []: A story.
        2 user.brief accepted by user from []: A story.
        3 chapter.draft superseded by run 1 from []: One.
        4 notes.draft accepted by run 1 from []: A note.
        5 chapter.draft superseded by run 2 from [3]: One, two.
        6 chapter.draft accepted by user from [5]: One, two, three.
        7 chapter.confirmed accepted by runtime from [6]: One, two, three.
        8 notes.confirmed accepted by runtime from [4]: A note.
        9 chapter.draft rejected by run 3 from []: Four.
    "#]]
    .assert_eq(&items);
}

#[test]
fn a_skill_with_a_star_works_for_one_role_and_writes_only_its_tags() {
    check(
        "
        pack    roles
        user    A play.
        agent   run_worker persona
        agent   run_worker persona role=A.B
        agent   run_worker persona role=A
        worker(persona role=A) submit 角色.B.设定: Wrong.
        worker(persona role=A) submit 角色.A.设定: Brave.
        agent   run_worker act role=B
        agent   run_worker act role=A
        worker(act role=A) submit 角色.A.行动: Steps forward.
        agent   run_worker blind role=B
        agent   run_worker blind role=A
    ",
        expect![[r#"
            waiting_user input
            running burst 0/12, agent; 用户.最新输入 written
            running burst 1/12, agent; told: error: `persona` works for a role: give its name as `roleId`
            running burst 2/12, agent; told: error: `roleId`: `A.B` is not one part of a tag; a role's name has no dot and no star
            running burst 3/12, worker persona (A)
            running burst 3/12, worker persona (A); told: error: `角色.B.设定` is not one of your output tags; they are: 角色.A.设定, 角色.A.思考; nothing was handed in
            running burst 3/12, agent; 角色.A.设定 written; told: artifact 1 accepted (角色.A.设定: 6 characters):
            running burst 4/12, agent; told: error: `act` needs 角色.B.设定, which nobody has written or accepted yet
            running burst 5/12, worker act (A)
            running burst 5/12, agent; 角色.A.行动 written; told: artifact 2 accepted (角色.A.行动: 14 characters):
            running burst 6/12, agent; told: error: `blind` reviews what `act` makes, and there is nothing to review yet
            running burst 7/12, worker blind (A)
        "#]],
    );
}

#[test]
fn a_patch_under_review_is_merged_when_it_is_accepted() {
    let play = play(
        "
        pack    tables
        user    Count.
        agent   run_worker careful
        worker  submit 变量.表: not a patch
        worker  submit 变量.表: {\"patch\": {\"hp\": 3, \"mp\": 1}}
        user    edit 变量.表: nothing
        user    edit_cell 变量.表 hp rev=0: 9
        user    accept
        agent   ask_user: Counted.
    ",
    );
    expect![[r#"
        waiting_user input
        running burst 0/12, agent; 用户.最新输入 written
        running burst 1/12, worker careful
        running burst 1/12, worker careful; told: error: `变量.表` is a table: hand in {"patch": {key: value}, "expectedRev": {key: rev}} (expected ident at line 1 column 2); nothing was handed in
        waiting_user review of artifact 1: 变量.表
        refused: `变量.表` is a table; edit one cell of it with edit_cell
        waiting_user review of artifact 1: 变量.表; 变量.表 written
        running burst 0/12, agent; 变量.表 written
        waiting_user input: Counted.
    "#]].assert_eq(&play.text());
    let board = play.session.board();
    let items: String = (board.items().iter())
        .map(|item| format!("{} {} {}: {}\n", item.number, item.tag, board.state(item.number).as_str(), item.content))
        .collect();
    expect![[r#"
        1 用户.最新输入 accepted: Count.
        2 变量.表 superseded: {"patch": {"hp": 3, "mp": 1}}
        3 变量.表 accepted: {"rows":[{"key":"hp","value":9,"rev":1,"source":"user","editable":true}]}
        4 变量.表 accepted: {"rows":[{"key":"hp","value":9,"rev":1,"source":"user","editable":true},{"key":"mp","value":1,"rev":1,"source":"worker","editable":true}]}
    "#]].assert_eq(&items);
}
