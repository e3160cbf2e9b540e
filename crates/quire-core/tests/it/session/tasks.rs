//! Deep tasks (SPEC §10): isolation, the loop, caps, durability, delivery.

use expect_test::expect;
use quire_core::deep_task::{self, Cap, Caps, Ending, HostTool, ToolEffect, ToolResult};
use quire_core::event::{Action, Budget, Event, ModelAsked, Start, TaskEquipped};
use quire_core::ids::{CallId, Hash, HostCallId, SessionId, TaskId, Timestamp};
use quire_core::message::{Failure, FailureKind, Finish, Message, Reply, ToolCall, Usage};
use quire_core::session::Session;
use quire_core::tag::Tag;
use quire_testkit::play::{check, pack_files, play};

#[test]
fn a_task_is_told_its_words_and_nothing_else() {
    let messages = deep_task::task_context("How were lamps lit in 1900?");
    let [Message::System { text: system }, Message::User { text: user, .. }] = messages.as_slice() else {
        panic!("instructions and the task: {messages:?}")
    };
    assert_eq!(&**system, deep_task::INSTRUCTIONS);
    assert_eq!(&**user, "How were lamps lit in 1900?");
}

#[test]
fn a_task_calls_tools_until_it_has_its_result_and_the_session_goes_on_beside_it() {
    check(
        "
        pack    novel
        tools   search note=acts
        user    A story about a lighthouse.
        agent   call delegate_task {\"task\": \"How were lamps lit in 1900?\", \"title\": \"Lamps\"}
        task    call search {\"query\": \"lamps\"}
        agent   run_worker outline
        tool    search: Paraffin, three pages.
        task    call note {\"text\": \"paraffin\"}
        worker  submit outline.draft: Three beats.
        tool    note fails: The disk is full.
        user    accept
        task    text: By paraffin.
        agent   read_blackboard 委托.*
        agent   finish
        ",
        expect![[r#"
            waiting_user input: What shall it be about?
            running burst 0/12, agent; 用户.最新输入 written; user.brief written
            running burst 1/12, agent; told: deep task 1 has begun; its result will be `委托.1.结果`; task 1 thinks, round 1
            running burst 1/12, agent; task 1 calls search
            running burst 2/12, worker outline
            running burst 2/12, worker outline; task 1 thinks, round 2
            running burst 2/12, worker outline; task 1 calls note
            waiting_user review of artifact 1: outline.draft
            waiting_user review of artifact 1: outline.draft; task 1 thinks, round 3
            running burst 0/12, agent; outline.confirmed written
            running burst 0/12, agent; 委托.1.结果 written; task 1 done
            running burst 1/12, agent; told: ## 委托.1.结果 (accepted, item 5) ⏎  ⏎ By paraffin.; told: deep task 1 (Lamps): done; result: 委托.1.结果, 12 characters
            done
        "#]],
    );
}

#[test]
fn the_user_starts_lists_and_cancels_and_what_was_found_is_kept() {
    check(
        "
        pack    novel
        tools   search
        user    start_task: How were lamps lit?
        user    start_task title=\"Boats\": Which boats served lighthouses?
        task(2) call search {}
        tool    search: Cutters.
        user    cancel_task 2
        user    cancel_task 2
        user    cancel_task 7
        user    cancel_task 1
        ",
        expect![[r#"
            waiting_user input: What shall it be about?
            waiting_user input: What shall it be about?; task 1 thinks, round 1
            waiting_user input: What shall it be about?; task 2 thinks, round 1
            waiting_user input: What shall it be about?; task 2 calls search
            waiting_user input: What shall it be about?; task 2 thinks, round 2
            waiting_user input: What shall it be about?; 委托.2.结果 written; task 2 cancelled
            refused: deep task 2 is over: cancelled
            refused: there is no deep task 7; there are 1 to 2
            waiting_user input: What shall it be about?; task 1 cancelled
        "#]],
    );
}

#[test]
fn caps_end_a_task_with_what_is_there() {
    check(
        "
        pack    novel
        option  task.max_rounds=2
        tools   search
        user    start_task: How were lamps lit?
        task    call search {\"query\": 1}
        tool    search: Paraffin.
        task    call search {\"query\": 2}
        tool    search: Colza oil.
        user    start_task: And boats?
        task    call search {\"query\": 1}
        tool    search: Cutters.
        task    text:
                Cutters, so far.
        ",
        expect![[r#"
            waiting_user input: What shall it be about?
            waiting_user input: What shall it be about?; task 1 thinks, round 1
            waiting_user input: What shall it be about?; task 1 calls search
            waiting_user input: What shall it be about?; task 1 thinks, round 2
            waiting_user input: What shall it be about?; task 1 calls search
            waiting_user input: What shall it be about?; 委托.1.结果 written; task 1 cut_off by rounds
            waiting_user input: What shall it be about?; task 2 thinks, round 1
            waiting_user input: What shall it be about?; task 2 calls search
            waiting_user input: What shall it be about?; task 2 thinks, round 2
            waiting_user input: What shall it be about?; 委托.2.结果 written; task 2 done
        "#]],
    );
}

#[test]
fn the_same_failing_call_ends_a_task_the_third_time() {
    check(
        "
        pack    novel
        tools   search
        user    start_task: How were lamps lit?
        task    call serch {}
        task    call search {\"query\": broken
        task    call search {\"query\": 1}
        tool    search fails: No network.
        task    call search {\"query\": 1}
        tool    search fails: No network.
        task    call search {\"query\": 1}
        tool    search fails: No network.
        ",
        expect![[r#"
            waiting_user input: What shall it be about?
            waiting_user input: What shall it be about?; task 1 thinks, round 1
            waiting_user input: What shall it be about?; task 1 thinks, round 2
            waiting_user input: What shall it be about?; task 1 thinks, round 3
            waiting_user input: What shall it be about?; task 1 calls search
            waiting_user input: What shall it be about?; task 1 thinks, round 4
            waiting_user input: What shall it be about?; task 1 calls search
            waiting_user input: What shall it be about?; task 1 thinks, round 5
            waiting_user input: What shall it be about?; task 1 calls search
            waiting_user input: What shall it be about?; 委托.1.结果 written; task 1 cut_off by repeated_failure
        "#]],
    );
}

#[test]
fn session_tools_are_nothing_to_a_task() {
    let played = play(
        "
        pack    novel
        tools   search
        user    start_task: How were lamps lit?
        task    call submit {\"outputs\": {\"outline.draft\": \"Stolen.\"}}
        task    call ask_user {}
        task    text: Nothing.
        ",
    );
    let seen: Vec<&str> = played.prompts.iter().map(|prompt| prompt.text.as_str()).collect();
    assert_eq!(seen.len(), 3);
    for text in &seen {
        assert!(text.ends_with("=== tools: search ===\n"), "{text}");
    }
    assert!(seen[1].contains("there is no tool `submit`; there are: search"), "{}", seen[1]);
    assert!(played.session.artifacts().is_empty());
}

#[test]
fn at_most_four_run_at_once_and_finish_cancels_them() {
    check(
        "
        pack    novel
        user    start_task: one
        user    start_task: two
        user    start_task: three
        user    start_task: four
        user    start_task: five
        user    finish
        user    start_task: six
        ",
        expect![[r#"
            waiting_user input: What shall it be about?
            waiting_user input: What shall it be about?; task 1 thinks, round 1
            waiting_user input: What shall it be about?; task 2 thinks, round 1
            waiting_user input: What shall it be about?; task 3 thinks, round 1
            waiting_user input: What shall it be about?; task 4 thinks, round 1
            refused: 4 deep tasks run already, which is the limit; wait for one, or cancel one
            done; task 1 cancelled; task 2 cancelled; task 3 cancelled; task 4 cancelled
            refused: `start_task` is not heard now
        "#]],
    );
}

/// Each text of the session that a task may not see holds this word.
const CANARY: &str = "CANARY";

#[test]
fn nothing_of_the_session_reaches_a_task_without_grants() {
    let played = play(&format!(
        "
        pack    novel
        tools   search
        user    {CANARY} A story about a lighthouse.
        agent   run_worker outline: {CANARY}
        worker  submit outline.draft: {CANARY} Three beats.
        user    accept
        agent   call delegate_task {{\"task\": \"{CANARY} in the sibling\"}}
         and    call delegate_task {{\"task\": \"How were lamps lit?\"}}
        task(1) text: {CANARY} the sibling's result.
        task(2) call search_book {{\"query\": \"{CANARY}\"}}
        task(2) call search {{\"query\": \"lamps\"}}
        tool    search: Paraffin.
        task(2) text: By paraffin.
        "
    ));
    let mut seen = 0;
    for prompt in played.prompts.iter().filter(|prompt| prompt.asker == "task 2") {
        seen += 1;
        // The model's own call is its own word.
        let text = prompt.text.replace(&format!("search_book {{\"query\": \"{CANARY}\"}}"), "");
        assert!(!text.contains(CANARY), "{text}");
        for secret in ["lighthouse", "outline", "main agent", "Skills", "novel", "委托"] {
            assert!(!text.contains(secret), "`{secret}` is in {text}");
        }
    }
    assert_eq!(seen, 3);
}

#[test]
fn grants_open_facts_and_never_drafts_or_thoughts() {
    let played = play(
        "
        pack    novel
        user    A story.
        agent   run_worker outline
        worker  submit outline.draft: A SECRET draft.
        user    edit 角色.A.设定: A keeps the lamp. 灯塔
        user    edit 角色.A.思考: A SECRET thought.
        user    edit notes: The lamp is paraffin.
        user    edit other: SECRET of another tag.
        user    start_task grants=角色.*,outline.*,notes: Who keeps the lamp?
        task    call search_book {\"query\": \"lamp secret\"}
         and    call search_book {\"query\": \"灯塔\"}
         and    call read_item {\"tag\": \"角色.A.思考\"}
         and    call read_item {\"tag\": \"角色.A.设定\"}
         and    call read_item {\"tag\": \"other\"}
         and    call read_item {\"tag\": \"notes\", \"from\": 4}
        task    text: A.
        ",
    );
    let last = &played.prompts.last().expect("a prompt").text;
    assert!(!last.contains("SECRET"), "{last}");
    let told = last.split("=== tool ===").skip(1).map(str::trim).collect::<Vec<_>>().join("\n---\n");
    expect![[r#"
        notes (21 characters): The lamp is paraffin.
        角色.A.设定 (20 characters): A keeps the lamp. 灯塔
        ---
        角色.A.设定 (20 characters): A keeps the lamp. 灯塔
        ---
        error: there is no text `角色.A.思考` among those you may read; search_book lists them
        ---
        A keeps the lamp. 灯塔
        ---
        error: there is no text `other` among those you may read; search_book lists them
        ---
        lamp is paraffin.
        === tools: search_book, read_item ==="#]]
    .assert_eq(&told);
}

/// A session with one task that has two tools, at its first round.
struct World {
    session: Session,
    now: Timestamp,
}

impl World {
    fn new(budget: Budget, caps: Caps) -> Self {
        let mut world = Self { session: Session::new(SessionId::new("world")), now: Timestamp(0) };
        let start = Start {
            title: String::new(),
            pack: Some(pack_files("novel")),
            profile: "scripted".to_owned(),
            burst_max: None,
            budget,
            offer: vec![],
        };
        world.hear(Event::Started(start));
        world.hear(Event::User(Action::StartTask { task: "Dig.".into(), title: String::new(), grants: vec![] }));
        let tool = |name: &str, effect| HostTool {
            name: name.to_owned(),
            description: "".into(),
            parameters: r#"{"type":"object"}"#.into(),
            effect,
            server: "test".to_owned(),
            own_name: name.to_owned(),
        };
        let tools = vec![tool("look", ToolEffect::Reads), tool("act", ToolEffect::Acts)];
        world.hear(Event::TaskEquipped(TaskEquipped { task: TaskId(1), caps, tools, faults: vec![] }));
        world
    }

    fn hear(&mut self, event: Event) {
        self.now.0 += 1000;
        let now = self.now;
        self.session.handle(now, event.clone()).unwrap_or_else(|refusal| panic!("{event:?}: {refusal}"));
    }

    fn refused(&mut self, event: Event) -> String {
        let before = self.session.clone();
        let refusal = self.session.handle(self.now, event).expect_err("it is refused");
        assert!(self.session == before, "a refused event leaves the session as it was");
        refusal.message
    }

    fn call(&self) -> CallId {
        self.session.tasks()[0].asking().expect("its model is asked").call
    }

    fn ask(&mut self, attempt: u32) {
        let call = self.call();
        self.hear(Event::ModelAsked(ModelAsked {
            call,
            attempt,
            profile: "scripted".to_owned(),
            model: "scripted".to_owned(),
            budget_tokens: 1000,
            tokenizer: "none".to_owned(),
            assembly: 1,
            prompt: Hash::of(""),
            prefix: Hash::of(""),
            fixed: vec![],
            trace: None,
            task: Some(TaskId(1)),
        }));
    }

    fn reply(&mut self, text: &str, tool: Option<&str>, usage: Usage) {
        let call = self.call();
        let calls = tool.map(|name| ToolCall { id: String::new(), name: name.to_owned(), arguments: "{}".into() });
        let calls: Vec<ToolCall> = calls.into_iter().collect();
        let reply = Reply { text: text.into(), reasoning: "".into(), calls, finish: Finish::Stop, usage };
        self.hear(Event::ModelReplied { call, reply });
    }

    fn ending(&self) -> Option<&Ending> {
        self.session.tasks()[0].ending()
    }

    fn result(&self) -> String {
        let tag = Tag::parse("委托.1.结果").expect("a tag");
        self.session.board().accepted(&tag).map(|item| item.content.to_string()).unwrap_or_default()
    }
}

const CALL: HostCallId = HostCallId(1);
const TASK: TaskId = TaskId(1);

#[test]
fn a_tool_that_may_have_acted_is_not_called_again_after_a_crash() {
    let mut world = World::new(Budget::default(), Caps::default());
    world.ask(1);
    world.reply("", Some("act"), Usage::default());
    assert_eq!(
        world.refused(Event::ToolLost { task: TASK, call: CALL }),
        "tool call 1 of deep task 1 is not lost: it can be made"
    );
    world.hear(Event::ToolAsked { task: TASK, call: CALL, attempt: 1 });
    // Here the program ends. What is owed is the call; it is lost.
    assert!(world.session.tasks()[0].calling().expect("a call").is_lost());
    assert_eq!(
        world.refused(Event::ToolAsked { task: TASK, call: CALL, attempt: 2 }),
        "tool call 1 of deep task 1 may have acted and is not made again"
    );
    world.hear(Event::ToolLost { task: TASK, call: CALL });
    let (messages, _) = world.session.tasks()[0].prompt();
    assert!(messages.last().expect("an answer").text().starts_with("the outcome of this call is unknown"));
}

#[test]
fn a_tool_that_only_reads_is_called_again_after_a_crash() {
    let mut world = World::new(Budget::default(), Caps::default());
    world.ask(1);
    world.reply("", Some("look"), Usage::default());
    world.hear(Event::ToolAsked { task: TASK, call: CALL, attempt: 1 });
    world.hear(Event::ToolAsked { task: TASK, call: CALL, attempt: 2 });
    world.hear(Event::ToolAnswered { task: TASK, call: CALL, result: ToolResult::fine("") });
    let (messages, _) = world.session.tasks()[0].prompt();
    assert_eq!(messages.last().expect("an answer").text(), "(the tool gave back nothing)");
    assert_eq!(
        world.refused(Event::ToolAnswered { task: TASK, call: CALL, result: ToolResult::fine("late") }),
        "nobody waits for tool call 1 of deep task 1"
    );
}

#[test]
fn tokens_money_time_and_the_sessions_budget_end_a_task() {
    let usage = Usage { input_tokens: 90, cached_tokens: 0, output_tokens: 20, money_micros: 7 };
    let ended = |caps: Caps, budget: Budget| {
        let mut world = World::new(budget, caps);
        world.ask(1);
        world.reply("Half of it.", Some("look"), usage);
        if world.ending().is_none() {
            world.hear(Event::ToolAsked { task: TASK, call: CALL, attempt: 1 });
            world.hear(Event::ToolAnswered { task: TASK, call: CALL, result: ToolResult::fine("Paraffin.") });
        }
        (world.ending().cloned(), world.result())
    };
    let caps = Caps::default();
    let cut = |cap: Cap| (Some(Ending::CutOff(cap)), format!("[cut_off: {}]\n\nHalf of it.", cap.as_str()));
    assert_eq!(ended(Caps { max_tokens: Some(110), ..caps }, Budget::default()), cut(Cap::Tokens));
    assert_eq!(ended(Caps { max_money_micros: Some(7), ..caps }, Budget::default()), cut(Cap::Money));
    assert_eq!(ended(Caps { max_time_ms: Some(2000), ..caps }, Budget::default()), cut(Cap::Time));
    assert_eq!(ended(caps, Budget { rounds: Some(1), ..Budget::default() }), cut(Cap::Budget));
    assert_eq!(ended(caps, Budget::default()), (None, String::new()));
}

#[test]
fn what_has_no_room_is_cut_off_and_what_fails_is_failed() {
    let ended = |kind: FailureKind| {
        let mut world = World::new(Budget::default(), Caps::default());
        world.ask(1);
        world.reply("", Some("look"), Usage::default());
        world.hear(Event::ToolAsked { task: TASK, call: CALL, attempt: 1 });
        world.hear(Event::ToolAnswered { task: TASK, call: CALL, result: ToolResult::fine("Paraffin.") });
        world.ask(1);
        let call = world.call();
        let failure = Failure { kind, message: "The provider says 503.".to_owned() };
        world.hear(Event::ModelFailed { call, failure, partial: "".into() });
        (world.ending().expect("it is over").as_str(), world.result())
    };
    assert_eq!(ended(FailureKind::NoRoom), ("cut_off", "[cut_off: room]\n\nlook {}\nParaffin.".to_owned()));
    assert_eq!(ended(FailureKind::Unavailable), ("failed", "[failed: The provider says 503.]\n\nlook {}\nParaffin.".to_owned()));
}

#[test]
fn time_in_which_nobody_drove_the_session_does_not_count() {
    let mut world = World::new(Budget::default(), Caps { max_time_ms: Some(60_000), ..Caps::default() });
    world.ask(1);
    world.now.0 += 3_600_000;
    world.ask(2);
    world.reply("", Some("look"), Usage::default());
    assert_eq!(world.session.tasks()[0].time_ms, 1000);
    world.hear(Event::ToolAsked { task: TASK, call: CALL, attempt: 1 });
    world.hear(Event::TaskOverdue { task: TASK });
    assert_eq!(world.ending(), Some(&Ending::CutOff(Cap::Time)));
    assert_eq!(world.session.open_effects(), vec![]);
}
