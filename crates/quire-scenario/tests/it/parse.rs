use expect_test::{Expect, expect};
use quire_scenario::Scenario;

use crate::{parse, what, who};

fn check(text: &str, expected: Expect) {
    let scenario = parse(text);
    let lines = scenario.lines.iter().map(|line| format!("{} {}\n    {}\n", line.number, who(&line.kind), what(&line.kind)));
    expected.assert_eq(&lines.collect::<String>());
}

fn check_faults(text: &str, expected: Expect) {
    let Err(diagnostics) = Scenario::parse("test.scenario", text) else { panic!("this has no faults") };
    let lines = diagnostics.iter().map(|diagnostic| {
        let place = text.get(diagnostic.span.start..diagnostic.span.end).expect("a span lies in its file");
        format!("{diagnostic}\n    at {place:?}\n    {}\n", diagnostic.help)
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn the_head_says_how_the_session_starts() {
    let scenario = parse(
        "
        # A comment.
        pack    short-story
        option  title=\"The \\\"Lamp\\\"\" burst_max=3
        option  budget.rounds=5 budget.money_micros=70
    ",
    );
    expect![[r#"
        Scenario {
            pack: Some(
                "short-story",
            ),
            options: Options {
                title: "The \"Lamp\"",
                burst_max: Some(
                    3,
                ),
                budget: Budget {
                    rounds: Some(
                        5,
                    ),
                    tokens: None,
                    money_micros: Some(
                        70,
                    ),
                    time_ms: None,
                },
                task_caps: Caps {
                    max_rounds: 24,
                    max_tokens: Some(
                        1000000,
                    ),
                    max_money_micros: None,
                    max_time_ms: Some(
                        1800000,
                    ),
                },
            },
            secrets: [],
            tools: [],
            lines: [],
        }
    "#]]
    .assert_debug_eq(&scenario);
}

#[test]
fn a_user_speaks_or_acts() {
    check(
        r#"
        user    A story about a lighthouse: short, please.
        user    accept, but be quick
        user    say: accept
        user    confirm
        user    approve
        user    accept 3
        user    reject
        user    reject 2: too long
        user    reject_step: not now
        user    discard
        user    skip
        user    retry
        user    stop
        user    finish
        user    reveal
        user    answer q1=B q2="free text, with a colon: so"
        user    answer 2 谁=灯
        user    set genre=Horror length="very short"
        user    edit chapter.draft base=4: whole text
        user    edit 章节.草稿：灯灭了。
        user    edit_cell vars.table hp rev=1: 7
        user    edit_cell vars.table name rev=0: Anna Lind
        user    release_cell vars.table hp rev=2
        user    set_budget rounds=10 tokens=5000
    "#,
        expect![[r#"
            2 user
                {"action":"submit_input","text":"A story about a lighthouse: short, please."}
            3 user
                {"action":"submit_input","text":"accept, but be quick"}
            4 user
                {"action":"submit_input","text":"accept"}
            5 user
                {"action":"confirm_intake"}
            6 user
                {"action":"approve","decision":null}
            7 user
                {"action":"accept","artifact":"3"}
            8 user
                {"action":"reject","artifact":null,"reason":""}
            9 user
                {"action":"reject","artifact":"2","reason":"too long"}
            10 user
                {"action":"reject_step","decision":null,"reason":"not now"}
            11 user
                {"action":"discard","artifact":null}
            12 user
                {"action":"skip","card":null}
            13 user
                {"action":"retry"}
            14 user
                {"action":"stop"}
            15 user
                {"action":"finish"}
            16 user
                {"action":"reveal"}
            17 user
                answers to None: [("q1", "B"), ("q2", "free text, with a colon: so")]
            18 user
                answers to Some("2"): [("谁", "灯")]
            19 user
                {"action":"submit_input","text":"","values":{"genre":"Horror","length":"very short"}}
            20 user
                {"action":"edit_item","tag":"chapter.draft","base":4,"text":"whole text"}
            21 user
                {"action":"edit_item","tag":"章节.草稿","base":null,"text":"灯灭了。"}
            22 user
                {"action":"edit_cell","tag":"vars.table","key":"hp","value":7,"rev":1}
            23 user
                {"action":"edit_cell","tag":"vars.table","key":"name","value":"Anna Lind","rev":0}
            24 user
                {"action":"release_cell","tag":"vars.table","key":"hp","rev":2}
            25 user
                {"action":"set_budget","budget":{"rounds":10,"tokens":5000}}
        "#]],
    );
}

#[test]
fn the_agent_calls_in_short_form() {
    check(
        "
        agent   run_worker draft
        agent   run_worker act role=A approval: It is A's turn.
        agent   read_blackboard outline.* 用户.*
         and    list_workers
        and     list_artifacts
         and    run_worker draft
        agent   ask_user: What mood?
        agent   ask_user: Two things.
                They matter.
                ? q1: Who is it? [A: the widow | B: the pilot] (required)
                ? What does it smell of,
                  in the morning? [salt | paraffin] (options only)
                ? mood：Which?
        agent   review_blackboard: A draft.
        agent   declare_instance_ready skip=persona skip=world: They play themselves.
        agent   declare_instance_ready
        agent   finish: Done.
        agent   finish
    ",
        expect![[r#"
            2 agent
                call-1: run_worker {"workerId":"draft","reason":"draft comes next","requiresApproval":false}
                (ToolCalls)
            3 agent
                call-1: run_worker {"workerId":"act","reason":"It is A's turn.","requiresApproval":true,"roleId":"A"}
                (ToolCalls)
            4 agent
                call-1: read_blackboard {"tags":["outline.*","用户.*"]}
                call-2: list_workers {}
                call-3: list_artifacts {}
                call-4: run_worker {"workerId":"draft","reason":"draft comes next","requiresApproval":false}
                (ToolCalls)
            8 agent
                call-1: ask_user {"assessment":"What mood?"}
                (ToolCalls)
            9 agent
                call-1: ask_user {"assessment":"Two things.\nThey matter.","questions":[{"id":"q1","prompt":"Who is it?","options":[{"id":"A","label":"the widow"},{"id":"B","label":"the pilot"}],"required":true},{"id":"q2","prompt":"What does it smell of, in the morning?","options":[{"id":"A","label":"salt"},{"id":"B","label":"paraffin"}],"allowOther":false},{"id":"mood","prompt":"Which?"}]}
                (ToolCalls)
            15 agent
                call-1: review_blackboard {"summary":"A draft."}
                (ToolCalls)
            16 agent
                call-1: declare_instance_ready {"reason":"They play themselves.","skipped":[{"skillId":"persona","reason":"They play themselves."},{"skillId":"world","reason":"They play themselves."}]}
                (ToolCalls)
            17 agent
                call-1: declare_instance_ready {"reason":"all settings stand"}
                (ToolCalls)
            18 agent
                call-1: finish {"reason":"Done."}
                (ToolCalls)
            19 agent
                call-1: finish {"reason":"the work is done"}
                (ToolCalls)
        "#]],
    );
}

#[test]
fn a_worker_hands_in_and_asks() {
    check(
        "
        agent   run_worker draft
        worker  submit chapter.draft: The lamp had been dark for a week.
        worker  submit
                + outline.draft: Three beats.
                  More of the same text.

                    Indented, after a blank line.
                + notes.draft:
                  # A heading, not a comment
                  + a list

                summary: An outline,
                  with notes.
                ? q1: Who is it? [A: x | B: y] (required)

        worker  submit chapter.draft: A draft.
                ? Is it dark enough?
        worker  ask_user
                ? Who is it?
        worker  submit
         and    ask_user
                ? Who is it?
    ",
        expect![[r##"
            2 agent
                call-1: run_worker {"workerId":"draft","reason":"draft comes next","requiresApproval":false}
                (ToolCalls)
            3 worker draft
                call-1: submit {"outputs":{"chapter.draft":"The lamp had been dark for a week."}}
                (ToolCalls)
            4 worker draft
                call-1: submit {"outputs":{"outline.draft":"Three beats.\nMore of the same text.\n\n  Indented, after a blank line.","notes.draft":"# A heading, not a comment\n+ a list"},"summary":"An outline,\nwith notes.","questions":[{"id":"q1","prompt":"Who is it?","options":[{"id":"A","label":"x"},{"id":"B","label":"y"}],"required":true}]}
                (ToolCalls)
            17 worker draft
                call-1: submit {"outputs":{"chapter.draft":"A draft."},"questions":[{"id":"q1","prompt":"Is it dark enough?"}]}
                (ToolCalls)
            19 worker draft
                call-1: ask_user {"questions":[{"id":"q1","prompt":"Who is it?"}]}
                (ToolCalls)
            21 worker draft
                call-1: submit {"outputs":{}}
                call-2: ask_user {"questions":[{"id":"q1","prompt":"Who is it?"}]}
                (ToolCalls)
        "##]],
    );
}

#[test]
fn models_talk_break_and_fail() {
    check(
        r#"
        agent   text: Just talking.
         and    run_worker draft
        agent   call 烤面包 {"slices":
                  2
        agent   call submit
        agent   cut: It was a dark and
        agent   cut call run_worker {"workerId": "dra
        agent   fails unavailable: 503, says the provider
        worker(draft) fails no_room: The prompt is
                too long.
    "#,
        expect![[r#"
            2 agent
                "Just talking."
                call-1: run_worker {"workerId":"draft","reason":"draft comes next","requiresApproval":false}
                (ToolCalls)
            4 agent
                call-1: 烤面包 {"slices":
            2
                (ToolCalls)
            6 agent
                call-1: submit 
                (ToolCalls)
            7 agent
                "It was a dark and"
                (Length)
            8 agent
                call-1: run_worker {"workerId": "dra
                (Length)
            9 agent
                fails, Unavailable: 503, says the provider
            10 worker draft
                fails, NoRoom: The prompt is
            too long.
        "#]],
    );
}

#[test]
fn a_text_keeps_its_lines() {
    check(
        "
user
  First line.

    Indented line.
# A comment in between.
  # Not a comment.
  and this is no call.

user　　全角空格
  　　段落从两个全角空格开始。
",
        expect![[r#"
            2 user
                {"action":"submit_input","text":"First line.\n\n  Indented line.\n# Not a comment.\nand this is no call."}
            10 user
                {"action":"submit_input","text":"全角空格\n　　段落从两个全角空格开始。"}
        "#]],
    );
}

#[test]
fn an_unnamed_worker_line_belongs_to_the_nearest_run() {
    check(
        r#"
        worker  text: Nobody ran.
        agent   run_worker act role=A
        worker  text: A.
        agent   call run_worker {"workerId": "act", "roleId": "B"}
        worker  text: B.
        agent   run_worker draft
        worker  text: Draft.
        worker(act) text: B again.
        worker(act role=A) text: A again.
        agent   call run_worker {"workerId": "edi
        worker  text: Draft again.
    "#,
        expect![[r#"
            2 worker ?
                "Nobody ran."
                (Stop)
            3 agent
                call-1: run_worker {"workerId":"act","reason":"act comes next","requiresApproval":false,"roleId":"A"}
                (ToolCalls)
            4 worker act as A
                "A."
                (Stop)
            5 agent
                call-1: run_worker {"workerId": "act", "roleId": "B"}
                (ToolCalls)
            6 worker act as B
                "B."
                (Stop)
            7 agent
                call-1: run_worker {"workerId":"draft","reason":"draft comes next","requiresApproval":false}
                (ToolCalls)
            8 worker draft
                "Draft."
                (Stop)
            9 worker act as B
                "B again."
                (Stop)
            10 worker act as A
                "A again."
                (Stop)
            11 agent
                call-1: run_worker {"workerId": "edi
                (ToolCalls)
            12 worker draft
                "Draft again."
                (Stop)
        "#]],
    );
}

#[test]
fn every_fault_is_named_with_a_way_out() {
    check_faults(
        r#"
        pack
        pack    short-story
        pack    long-story
        option  burst=3 title
        option  burst_max=many
        option  budget.pages=3
        usr     hello
        user
        user    finish the story
        user    accept it
        user    reject:
        user    answer
        user    answer q1="open
        user    set genre = Horror
        user    edit chapter..draft: x
        user    edit chapter.draft
        user    edit_cell vars.table hp: 7
        user    confirm_intake
        user    stop
                at once
        agent   Hello there
        agent   runworker draft
        agent   submit draft: x
        agent   run_worker
        agent   run_worker draft now
        agent   ask_user
                ? Who?
        agent   ask_user: Who?
                + a: b
        agent   fails badly: 503
        agent   fails network
         and    list_workers
        agent   text
        agent   list_workers
         and    text: x
        agent   call
        worker  finish
        worker(  submit
        worker  submit
                the text
        worker  submit
                + a.draft: x
                + a.draft: y
        worker  ask_user
                ? [A: x]
         indented by one
      left of all
    "#,
        expect![[r#"
            test.scenario:2:9: error: the pack's name is missing
                at "pack"
                write `pack short-story`
            test.scenario:4:9: error: the pack is named twice
                at "pack    long-story"
                keep one `pack` statement
            test.scenario:5:17: error: there is no option `burst`
                at "burst"
                options are title, burst_max, budget.rounds, budget.tokens, budget.money_micros and budget.time_ms, and the same of a task as task.max_rounds and so on, each as `name=value`
            test.scenario:6:17: error: `burst_max` is `many`, which is no number it can have
                at "burst_max"
                write a whole number from 0
            test.scenario:7:17: error: there is no budget of `pages`
                at "budget.pages"
                options are title, burst_max, budget.rounds, budget.tokens, budget.money_micros and budget.time_ms, and the same of a task as task.max_rounds and so on, each as `name=value`
            test.scenario:8:9: error: `usr` begins no statement
                at "usr"
                a statement begins with pack, option, secret, tools, user, agent, worker, task or tool; `and` adds a call; the text of a statement is indented by two or more
            test.scenario:9:9: error: the user neither says nor does anything
                at "user"
                write words, or an action: accept, reject: …, answer q1=A …
            test.scenario:10:24: error: this is not how the action `finish` is written
                at "the story"
                write `finish` alone; for these very words of the user write `say: finish …`
            test.scenario:11:24: error: this is not how the action `accept` is written
                at "it"
                write `accept`, or `accept 2` with the number of what it answers; for these very words of the user write `say: accept …`
            test.scenario:12:17: error: `reject:` has no text
                at "reject"
                write the reason, or drop the colon
            test.scenario:13:17: error: this is not how the action `answer` is written
                at "answer"
                write `answer q1=B q2="free text"`, or `answer 2 q1=B` with the card's number; for these very words of the user write `say: answer …`
            test.scenario:14:27: error: a quote is not closed
                at "\"open"
                end the value with `"`; a quote inside it is written `\"`
            test.scenario:15:27: error: `=` stands without a name before it
                at "= Horror"
                write `name=value`, without spaces
            test.scenario:16:22: error: `chapter..draft` has an empty part; write parts joined by single dots, like `chapter.draft`
                at "chapter..draft"
                write the whole tag, like `chapter.draft`
            test.scenario:17:17: error: this is not how the action `edit` is written
                at "edit"
                write `edit chapter.draft: The whole text.`, or `edit chapter.draft base=4: …` with the item it was made from; for these very words of the user write `say: edit …`
            test.scenario:18:17: error: this is not how the action `edit_cell` is written
                at "edit_cell"
                write `edit_cell vars.table hp rev=1: 7`, with rev=0 for a new cell; for these very words of the user write `say: edit_cell …`
            test.scenario:19:17: error: `confirm_intake` is written otherwise
                at "confirm_intake"
                write `user confirm`
            test.scenario:21:17: error: `stop` takes no text, and this line is indented like one
                at "at once"
                drop the line; a comment begins in the statements' column
            test.scenario:22:17: error: `Hello` is no word for this
                at "Hello"
                the agent has run_worker, read_blackboard, list_workers, list_artifacts, ask_user, review_blackboard, declare_instance_ready, finish, text, call, cut and fails; `call NAME {…}` calls anything else
            test.scenario:23:17: error: `runworker` is no word for this
                at "runworker"
                the agent has run_worker, read_blackboard, list_workers, list_artifacts, ask_user, review_blackboard, declare_instance_ready, finish, text, call, cut and fails; `call NAME {…}` calls anything else
            test.scenario:24:17: error: `submit` is no word for this
                at "submit"
                the agent has run_worker, read_blackboard, list_workers, list_artifacts, ask_user, review_blackboard, declare_instance_ready, finish, text, call, cut and fails; `call NAME {…}` calls anything else
            test.scenario:25:17: error: this is not how `run_worker` is written
                at "run_worker"
                write `run_worker draft role=A approval: why`, with what is wanted of role, approval and reason
            test.scenario:26:34: error: this is not how `run_worker` is written
                at "now"
                write `run_worker draft role=A approval: why`, with what is wanted of role, approval and reason
            test.scenario:27:17: error: this is not how `ask_user` is written
                at "ask_user"
                write `ask_user: what there is to say`, and questions below as `? prompt [A: x | B: y] (required)`
            test.scenario:30:19: error: this is not how `ask_user` is written
                at "a: b"
                only `submit` has outputs and a summary; questions begin with `? `
            test.scenario:31:23: error: there is no kind of failure `badly`
                at "badly"
                write `fails KIND: the provider's words`; KIND is network, unavailable, rejected, cut, refused, no_room, setup or unusable
            test.scenario:33:17: error: `and` adds a call, and a call that failed has none
                at "list_workers"
                drop the line
            test.scenario:34:17: error: `text` needs a text after a colon
                at "text"
                write what the model says
            test.scenario:36:17: error: `and` adds a call, and `text` is none
                at "text: x"
                begin the reply with `text`, and add calls to it by `and`
            test.scenario:37:17: error: the name of what is called is missing
                at "call"
                write `call NAME {…}`; what follows the name is sent as it stands
            test.scenario:38:17: error: `finish` is no word for this
                at "finish"
                a worker has submit, ask_user, text, call, cut and fails; `call NAME {…}` calls anything else
            test.scenario:39:15: error: the parenthesis is not closed
                at "(  submit"
                write `worker(draft) …`, or `worker(act role=A) …` for a run in a role
            test.scenario:40:17: error: this is not how `submit` is written
                at "submit"
                write `submit tag: text`, or below `submit` a line `+ tag: text` for each output
            test.scenario:44:19: error: `a.draft` is handed in twice
                at "a.draft"
                keep one of them
            test.scenario:46:19: error: the question asks nothing
                at "[A: x]"
                write `? prompt`, `? id: prompt`, options as `[A: x | B: y]`, then `(required)` or `(options only)`
            test.scenario:47:10: error: this line is indented by one, so it is neither a statement nor text
                at "indented by one"
                indent text by two or more; only `and` may stand one deeper than its statement
            test.scenario:48:7: error: this line stands left of the first statement
                at "left of all"
                begin all statements in one column; indent the text of a statement by two or more
        "#]],
    );
}

#[test]
fn columns_count_characters_and_windows_lines_are_lines() {
    check_faults(
        "\u{feff}# 注释\r\nuser    编辑\r\nuser    edit 章节..草稿: 灯\r\n",
        expect![[r#"
        test.scenario:3:14: error: `章节..草稿` has an empty part; write parts joined by single dots, like `chapter.draft`
            at "章节..草稿"
            write the whole tag, like `chapter.draft`
    "#]],
    );
}

#[test]
fn secrets_name_their_readers() {
    let scenario = parse(
        "
        secret  draft act(A): the pilot did it
        secret  nobody: a key
        ",
    );
    expect![[r#"
        [
            Secret {
                words: "the pilot did it",
                readers: [
                    "draft",
                    "act(A)",
                ],
            },
            Secret {
                words: "a key",
                readers: [],
            },
        ]
    "#]]
    .assert_debug_eq(&scenario.secrets);
}

#[test]
fn tasks_and_tools_are_read() {
    let scenario = parse(
        "
        tools   search note=acts
        option  task.max_rounds=3 task.max_time_ms=5
        user    start_task title=\"Lamps\" grants=outline.*,notes: How were lamps lit?
        user    cancel_task 2
        task    call search {\"q\": 1}
        task(2) text: By paraffin.
        tool    search: Three pages.
        tool    note fails: The disk is full.
        ",
    );
    let tools: Vec<(&str, bool)> = scenario.tools.iter().map(|tool| (tool.name.as_str(), tool.may_repeat())).collect();
    assert_eq!(tools, [("search", true), ("note", false)]);
    assert_eq!(scenario.options.task_caps.max_rounds, 3);
    assert_eq!(scenario.options.task_caps.max_time_ms, Some(5));
    let lines: Vec<String> = scenario.lines.iter().map(|line| format!("{}: {}", who(&line.kind), what(&line.kind))).collect();
    expect![[r#"
        user: {"action":"start_task","task":"How were lamps lit?","title":"Lamps","grants":["outline.*","notes"]}
        user: {"action":"cancel_task","task":2}
        task: call-1: search {"q": 1}
            (ToolCalls)
        task 2: "By paraffin."
            (Stop)
        tool search: ToolResult { text: "Three pages.", is_error: false }
        tool note: ToolResult { text: "The disk is full.", is_error: true }"#]]
    .assert_eq(&lines.join("\n"));
}
