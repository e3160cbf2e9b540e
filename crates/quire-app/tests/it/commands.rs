//! Every command, with and without `--json`: its shape, its exit code, its words.

use expect_test::expect;
use serde_json::{Value, json};

use crate::desk::{Desk, lamp};
use crate::story::SCENARIO;

/// Plays until the first text is under review.
fn under_review(desk: &Desk) -> String {
    let session = desk.start_scripted(SCENARIO);
    desk.quire(&["say", &session, "A", "lamp."]).expect(0);
    session
}

#[test]
fn a_session_as_json_has_the_fixed_shape() {
    let desk = Desk::new();
    let view = desk.show(&under_review(&desk));
    let kind = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    let shape = |value: &Value| -> String {
        value.as_object().into_iter().flatten().map(|(name, value)| format!("{name}: {}\n", kind(value))).collect()
    };
    expect![[r#"
        session: text
        seq: number
        title: text
        pack: object
        profile: text
        phase: text
        waiting: object
        stage: text
        turn: number
        burst: object
        budget: object
        spent: object
        pending: text
        heard: list
        artifacts: list
        blackboard: list
        log: list
        incomplete: list
        tasks: list
        calls: list
    "#]]
    .assert_eq(&shape(&view));
    expect![[r#"
        reason: text
        artifact: object
    "#]]
    .assert_eq(&shape(&view["waiting"]));
    expect![[r#"
        tag: text
        state: text
        item: number
        source: text
        skill: text
        turn: number
        hidden: bool
        content: text
    "#]]
    .assert_eq(&shape(&view["blackboard"][0]));
    assert_eq!(view["burst"], json!({"used": 1, "max": 12}));
    assert_eq!(view["waiting"]["artifact"]["texts"]["text.draft"], "The lamp was dark.");
    let board: Vec<&str> =
        view["blackboard"].as_array().expect("a list").iter().filter_map(|item| item["tag"].as_str()).collect();
    assert_eq!(board, ["text.draft", "user.brief", "用户.最新输入"]);
}

#[test]
fn a_play_as_a_person_reads_it() {
    let desk = Desk::new();
    let session = under_review(&desk);
    let steps: [&[&str]; 9] = [
        &["show"],
        &["reject", "--reason", "Darker."],
        &["accept", "--artifact", "2"],
        &["reject", "--reason", "- not yet"],
        &["show"],
        &["accept"],
        &["finish"],
        &["say", "More."],
        &["show"],
    ];
    let mut told = String::new();
    for words in steps {
        let mut words = words.to_vec();
        words.insert(1, &session);
        let ran = desk.quire(&words);
        told.push_str(&format!("$ quire {}\n{}{}[{}]\n", words.join(" "), ran.out, ran.err, ran.code));
    }
    expect![[r#"
        $ quire show SESSION
        Session SESSION, pack lamp, play stage
          text.draft: drafted, item 3, 18 characters
          user.brief: accepted, item 2, 7 characters
          用户.最新输入: accepted, item 1, 7 characters
        Spent: 2 rounds, 0 tokens in (0% cached), 0 out, 0.0000 money
        Last call: 2 by write, 0 tokens in (0% cached), 0 out, 0.0000 money
        ── text.draft ──
        The lamp was dark.

        Artifact 1 of write:
          quire accept SESSION
          quire reject SESSION --reason "…"
          quire discard SESSION
        [0]
        $ quire reject SESSION --reason Darker.
        ── text.draft ──
        The lamp was darker.

        Artifact 2 of write:
          quire accept SESSION
          quire reject SESSION --reason "…"
          quire discard SESSION
        [0]
        $ quire accept SESSION --artifact 2
        The agent wants polish to run: The text stands.
          It reads text.confirmed
          It writes final.draft
          quire approve SESSION
          quire reject SESSION --reason "…"
        [0]
        $ quire reject SESSION --reason - not yet
        All is done.

          quire say SESSION "…"
        [0]
        $ quire show SESSION
        Session SESSION, pack lamp, play stage
          text.confirmed: accepted, item 5, 20 characters
          text.draft: accepted, item 4, 20 characters
          user.brief: accepted, item 2, 7 characters
          用户.最新输入: accepted, item 1, 7 characters
        Spent: 5 rounds, 0 tokens in (0% cached), 0 out, 0.0000 money
        Last call: 5 by the main agent, 0 tokens in (0% cached), 0 out, 0.0000 money
        All is done.

          quire say SESSION "…"
        [0]
        $ quire accept SESSION
        quire: refused: `accept` is not heard now
          pending: your words are waited for
          heard now: say, set-budget, finish, edit, edit-cell, release-cell, upgrade-pack, reveal, task start, task cancel
        [3]
        $ quire finish SESSION
        ── text.draft ──
        The lamp was darker.

        The session is done.
        [0]
        $ quire say SESSION More.
        quire: refused: `say` is not heard now
          pending: the session is done
          heard now: reveal
        [3]
        $ quire show SESSION
        Session SESSION, pack lamp, done stage
          text.confirmed: accepted, item 5, 20 characters
          text.draft: accepted, item 4, 20 characters
          user.brief: accepted, item 2, 7 characters
          用户.最新输入: accepted, item 1, 7 characters
        Spent: 5 rounds, 0 tokens in (0% cached), 0 out, 0.0000 money
        Last call: 5 by the main agent, 0 tokens in (0% cached), 0 out, 0.0000 money
        ── text.draft ──
        The lamp was darker.

        The session is done.
        [0]
    "#]]
    .assert_eq(&told.replace(&session, "SESSION"));
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let desk = Desk::new();
    let session = under_review(&desk);
    let before = desk.show(&session);
    let refused: [&[&str]; 22] = [
        &["accept", "--artifact", "2"],
        &["accept", "--artifact", "ünknown id"],
        &["accept", "--artifact", ""],
        &["accept", "--artifact", "-1"],
        &["discard", "--artifact", "99999999999999999999999"],
        &["reject", "--artifact", "x", "--reason", "no"],
        &["reject", "--decision", "1", "--reason", "no"],
        &["approve"],
        &["approve", "--decision", "d1"],
        &["confirm"],
        &["answer", "q1=A"],
        &["answer", "q1=A", "--card", "c9"],
        &["skip"],
        &["skip", "--card", "灯"],
        &["retry"],
        &["stop"],
        &["select", "short-story"],
        &["edit-cell", "text.draft", "hp", "7"],
        &["edit", "state", "--text", "{}"],
        &["edit", "text.draft", "--base", "1", "--text", "late"],
        &["edit", "text.draft", "--base", "first", "--text", "late"],
        &["context", "7"],
    ];
    let mut told = String::new();
    for words in refused {
        let mut words = words.to_vec();
        words.insert(1, &session);
        let ran = desk.quire(&words).expect(3);
        let first = ran.err.lines().next().unwrap_or_default();
        told.push_str(&format!("{}\n    {first}\n", words[2..].iter().fold(words[0].to_owned(), |line, word| line + " " + word)));
        let with_json = desk.quire(&[words.as_slice(), &["--json"]].concat()).expect(3);
        if words[0] != "context" {
            let view = with_json.json();
            assert_eq!(view["seq"], before["seq"], "{words:?}");
            assert!(view["refusal"]["pending"].is_string() && view["refusal"]["heard"].is_array(), "{view}");
        }
    }
    assert_eq!(desk.show(&session), before);
    expect![[r#"
        accept --artifact 2
            quire: refused: artifact 2 is not the pending one; artifact 1 is
        accept --artifact ünknown id
            quire: refused: artifact ünknown id is not the pending one; artifact 1 is
        accept --artifact 
            quire: refused: artifact  is not the pending one; artifact 1 is
        accept --artifact -1
            quire: refused: artifact -1 is not the pending one; artifact 1 is
        discard --artifact 99999999999999999999999
            quire: refused: artifact 99999999999999999999999 is not the pending one; artifact 1 is
        reject --artifact x --reason no
            quire: refused: artifact x is not the pending one; artifact 1 is
        reject --decision 1 --reason no
            quire: refused: `reject` is not heard now
        approve
            quire: refused: `approve` is not heard now
        approve --decision d1
            quire: refused: `approve` is not heard now
        confirm
            quire: refused: `confirm` is not heard now
        answer q1=A
            quire: refused: `answer` is not heard now
        answer q1=A --card c9
            quire: refused: `answer` is not heard now
        skip
            quire: refused: `skip` is not heard now
        skip --card 灯
            quire: refused: `skip` is not heard now
        retry
            quire: refused: `retry` is not heard now
        stop
            quire: refused: `stop` is not heard now
        select short-story
            quire: refused: `select` is not heard now
        edit-cell text.draft hp 7
            quire: refused: `text.draft` is not a table; edit it with edit_item
        edit state --text {}
            quire: refused: `state` is a table; edit one cell of it with edit_cell
        edit text.draft --base 1 --text late
            quire: refused: `text.draft` was changed since: its newest item is 3, not 1; look at it and edit that one
        edit text.draft --base first --text late
            quire: refused: there is no item `first`; items have numbers, `quire show` names them
        context 7
            quire: there is no run `7`; the session has had 1
    "#]]
    .assert_eq(&told);
}

#[test]
fn what_is_not_there_and_what_is_not_understood() {
    let desk = Desk::new();
    let session = under_review(&desk);
    let broken = desk.path().join("broken");
    std::fs::create_dir_all(&broken).expect("a folder");
    std::fs::write(broken.join("orchestrator.md"), "---\nname: x\ndescription: d\nworkers: [a]\n---\n").expect("a file");
    let broken = broken.to_str().expect("text");
    let bad = desk.path().join("bad.scenario");
    std::fs::write(&bad, "user x\nagent frob").expect("a file");
    let bad = format!("scripted:{}", bad.display());
    let runs: [(i32, &[&str]); 24] = [
        (3, &["show", "ünknown id"]),
        (3, &["accept", "nope"]),
        (3, &["resume", "nope"]),
        (3, &["journal", "nope"]),
        (3, &["watch", "nope"]),
        (3, &["context", "nope"]),
        (3, &["new", "no-such-pack", "--model", "demo"]),
        (3, &["new", broken, "--model", "demo"]),
        (3, &["new", "short-story", "--model", "gpt"]),
        (3, &["new", "short-story", "--model", "scripted:/no/such/file"]),
        (3, &["new", "short-story", "--model", &bad]),
        (2, &["new", "short-story", "--burst", "0"]),
        (2, &["frobnicate"]),
        (2, &[]),
        (2, &["say"]),
        (2, &["answer", &session]),
        (2, &["edit", &session, "text..draft", "--text", "x"]),
        (2, &["set-budget", &session]),
        (2, &["set-budget", &session, "--time", "soon"]),
        (2, &["say", &session, "--set", "no-value"]),
        (2, &["reject", &session, "--artifact", "1", "--decision", "1"]),
        (1, &["pack", "check", "/no/such/folder"]),
        (1, &["pack", "check", broken]),
        (0, &["pack", "check", "--json", &lamp()]),
    ];
    let mut told = String::new();
    for (code, words) in runs {
        let ran = desk.quire(words).expect(code);
        assert!(code == 0 || !(ran.err.is_empty() && ran.out.is_empty()), "{words:?} says what is wrong");
        // Which packs there are is not this test's matter.
        let first = ran.err.lines().filter(|line| !line.is_empty()).take(2).map(|line| line.split("there are:").next());
        let first: String = first.flatten().map(|line| format!("    {}\n", line.trim_end())).collect();
        told.push_str(&format!("{} [{code}]\n{first}", words.join(" ")));
    }
    let place = desk.path().to_str().expect("text");
    expect![[r#"
        show ünknown id [3]
            quire: there is no session `ünknown id`; `quire list` shows those there are
        accept nope [3]
            quire: there is no session `nope`; `quire list` shows those there are
        resume nope [3]
            quire: there is no session `nope`; `quire list` shows those there are
        journal nope [3]
            quire: there is no session `nope`; `quire list` shows those there are
        watch nope [3]
            quire: there is no session `nope`; `quire list` shows those there are
        context nope [3]
            quire: there is no session `nope`; `quire list` shows those there are
        new no-such-pack --model demo [3]
            quire: there is no pack `no-such-pack`, neither by name nor as a folder;
        new PLACE/broken --model demo [3]
            quire: the pack cannot be used:
            orchestrator.md:4:11: error: there is no `workers/a/SKILL.md`
        new short-story --model gpt [3]
            quire: there is no model profile `gpt`;
        new short-story --model scripted:/no/such/file [3]
            quire: the scenario /no/such/file cannot be read: No such file or directory (os error 2); name a file of UTF-8 text
        new short-story --model scripted:PLACE/bad.scenario [3]
            quire: the scenario has faults:
            PLACE/bad.scenario:2:7: error: `frob` is no word for this
        new short-story --burst 0 [2]
            error: invalid value '0' for '--burst <ROUNDS>': 0 is not in 1..=4294967295
            For more information, try '--help'.
        frobnicate [2]
            error: unrecognized subcommand 'frobnicate'
            Usage: quire [OPTIONS] <COMMAND>
         [2]
            Writing with many agents, governed by you
            Usage: quire [OPTIONS] <COMMAND>
        say [2]
            error: the following required arguments were not provided:
              <SESSION>
        answer SESSION [2]
            error: the following required arguments were not provided:
              <QUESTION=ANSWER>...
        edit SESSION text..draft --text x [2]
            quire: `text..draft` has an empty part; write parts joined by single dots, like `chapter.draft`
        set-budget SESSION [2]
            quire: name a limit: --rounds, --tokens, --money or --time
        set-budget SESSION --time soon [2]
            quire: `soon` is no limit; see `quire set-budget --help`
        say SESSION --set no-value [2]
            quire: `--set no-value`: write FIELD=VALUE
        reject SESSION --artifact 1 --decision 1 [2]
            error: the argument '--artifact <ID>' cannot be used with '--decision <ID>'
            Usage: quire reject --artifact <ID> --data <FOLDER> <SESSION>
        pack check /no/such/folder [1]
            quire: there is no folder /no/such/folder; name a pack's folder, the one that holds its `orchestrator.md`
        pack check PLACE/broken [1]
        pack check --json LAMP [0]
    "#]]
    .assert_eq(&told.replace(&session, "SESSION").replace(place, "PLACE").replace(&lamp(), "LAMP"));
}

#[test]
fn global_flags_stand_anywhere() {
    let desk = Desk::new();
    let session = under_review(&desk);
    let data = desk.path().join("data");
    let data = data.to_str().expect("text");
    let elsewhere = Desk::new();
    let expected = desk.show(&session);
    let forms: [&[&str]; 5] = [
        &["--json", "show", &session, "--data", data],
        &["--data", data, "show", &session, "--json"],
        &["show", "--json", "--data", data, &session],
        &["show", &session, &format!("--data={data}"), "--json"],
        &["--json", "--data", data, "show", "--", &session],
    ];
    for words in forms {
        assert_eq!(elsewhere.quire(words).expect(0).json(), expected, "{words:?}");
    }
    let packs = elsewhere.quire(&["pack", "list", "--json"]).expect(0).json();
    assert_eq!(elsewhere.quire(&["--json", "pack", "list"]).expect(0).json(), packs);
    assert_eq!(packs["packs"][0]["place"], "built-in");
    let list = desk.quire(&["list", "--json"]).expect(0).json();
    assert_eq!(list["sessions"][0]["reason"], "review_artifact");
}

#[test]
fn words_come_as_arguments_or_on_stdin() {
    let desk = Desk::new();
    let model = desk.scenario("agent ask_user: Well?\n");
    let start = || {
        let view = desk.quire(&["new", &lamp(), "--json", "--model", &model, "--title", "灯 – “one”"]).expect(0).json();
        view["session"].as_str().expect("an id").to_owned()
    };
    let brief = |session: &str| {
        let view = desk.show(session);
        let items = view["blackboard"].as_array().expect("items").clone();
        items
            .into_iter()
            .find(|item| item["tag"] == "user.brief")
            .map(|item| item["content"].as_str().unwrap_or_default().to_owned())
    };
    let dashes = start();
    desk.quire(&["say", &dashes, "--", "--no", "-5 degrees", "--json"]).expect(0);
    assert_eq!(brief(&dashes).as_deref(), Some("--no -5 degrees --json"));
    let piped = start();
    desk.quire_given(&["say", &piped], "From a pipe.\nTwo lines.").expect(0);
    assert_eq!(brief(&piped).as_deref(), Some("From a pipe.\nTwo lines."));
    let broken = start();
    let failed = desk.quire_given(&["say", &broken], b"not \xff text");
    assert!(failed.code != 0 && failed.err.contains("UTF-8"), "{failed:?}");
    assert_eq!(brief(&broken), None);
    desk.quire_given(&["edit", &piped, "笔记.第一章"], "灯亮了。\n").expect(0);
    let edited = desk.show(&piped);
    let item = edited["blackboard"].as_array().expect("items").iter().find(|item| item["tag"] == "笔记.第一章").cloned();
    assert_eq!(item.expect("the item")["content"], "灯亮了。\n");
    assert_eq!(edited["title"], "灯 – “one”");
}

#[test]
fn cards_are_answered_by_letters_labels_and_own_words() {
    let desk = Desk::new();
    let scenario = "
agent   ask_user: Three things.
        ? q1: Who? [A: the widow | B: the pilot]
        ? q2: Where?
        ? 时间: 什么时候? [A: 夜里 | B: 早上]
agent   ask_user: Thank you.
";
    for (words, told) in [
        (vec!["q1=b", "q2=by the sea = far", "时间=夜里"], "the pilot|by the sea = far|夜里"),
        (vec!["时间=黄昏, 七点"], "(not answered)|(not answered)|黄昏, 七点"),
        (vec!["q1=A", "--card", "1"], "the widow|(not answered)|(not answered)"),
    ] {
        let session = desk.start_scripted(scenario);
        desk.quire(&["say", &session, "A lamp."]).expect(0);
        for wrong in [&["q9=A"][..], &["q1=A", "q1=B"], &["q1="], &["q1=A", "--card", "7"]] {
            let refused = desk.quire(&[&["answer", &session], wrong].concat()).expect(3);
            assert!(refused.err.contains("pending"), "{refused:?}");
        }
        desk.quire(&["answer", &session, "q1"]).expect(2);
        let view = desk.quire(&[&["answer", &session, "--json"], words.as_slice()].concat()).expect(0).json();
        assert_eq!(view["waiting"]["message"], "Thank you.");
        let journal = desk.quire(&["context", &session]).expect(3);
        assert!(journal.err.contains("no worker has run yet"));
        let log = view["log"].to_string();
        for told in told.split('|') {
            assert!(log.contains(told), "{told} in {log}");
        }
    }
}

#[test]
fn tables_budgets_and_packs() {
    let desk = Desk::new();
    let session = under_review(&desk);
    let cell = |words: &[&str]| desk.quire(&[words, &["--json"]].concat());
    cell(&["edit-cell", &session, "state", "hp", "7"]).expect(0);
    cell(&["edit-cell", &session, "state", "hp", "8", "--rev", "0"]).expect(3);
    let view = cell(&["edit-cell", &session, "state", "weather", "灰 grey"]).expect(0).json();
    let state = view["blackboard"].as_array().expect("items").iter().find(|item| item["tag"] == "state").cloned();
    let table: Value = serde_json::from_str(state.expect("the table")["content"].as_str().expect("text")).expect("JSON");
    assert_eq!(table["rows"][0]["value"], 7);
    assert_eq!(table["rows"][1]["value"], "灰 grey");
    cell(&["edit-cell", &session, "state", "depth", "-5"]).expect(0);
    cell(&["release-cell", &session, "state", "hp"]).expect(0);
    cell(&["release-cell", &session, "state", "nothing"]).expect(3);

    let view = cell(&["set-budget", &session, "--rounds", "1_000", "--time", "15m", "--money", "0.5"]).expect(0).json();
    assert_eq!(view["budget"], json!({"rounds": 1000, "money_micros": 500_000, "time_ms": 900_000}));
    let view = cell(&["set-budget", &session, "--rounds", "none"]).expect(0).json();
    assert_eq!(view["budget"]["time_ms"], 900_000);
    assert_eq!(view["budget"]["rounds"], Value::Null);

    let refused = cell(&["upgrade-pack", &session, &lamp()]).expect(3);
    assert!(refused.json()["refusal"]["message"].is_string());
    let old = desk.quire(&["new", "--model", "demo", "--json"]).expect(0).json();
    assert_eq!(old["waiting"]["reason"], "skill_selection");
    let id = old["session"].as_str().expect("an id");
    desk.quire(&["select", id, "no-such-pack"]).expect(3);
    let view = desk.quire(&["select", id, "short-story", "--json"]).expect(0).json();
    assert_eq!(view["waiting"]["reason"], "intake");
    desk.quire(&["reveal", id]).expect(0);
}

#[test]
fn intake_values_and_the_demo() {
    let desk = Desk::new();
    let view = desk.quire(&["new", "short-story", "--model", "demo", "--json"]).expect(0).json();
    let id = view["session"].as_str().expect("an id");
    let refused = desk.quire(&["confirm", id]).expect(3);
    assert!(refused.err.contains("the intake still needs: Idea"), "{refused:?}");
    desk.quire(&["say", id, "--set", "length=50 words", "--set", "idea=A lamp = a light"]).expect(0);
    desk.quire(&["say", id, "--set", "nothing=here"]).expect(3);
    let view = desk.quire(&["say", id, "Tone: 冷 dry", "--json"]).expect(0).json();
    assert_eq!(view["waiting"]["values"], json!({"idea": "A lamp = a light", "length": "50 words", "tone": "冷 dry"}));
    let played = desk.quire(&["demo", "--auto"]).expect(0);
    assert!(played.out.contains("The session is done.") && played.out.contains("No model is asked"), "{played:?}");
}

#[test]
fn nobody_reads_any_more() {
    let desk = Desk::new();
    let session = under_review(&desk);
    for words in [&["journal", &session][..], &["show", &session, "--json"], &["list"], &["pack", "list"], &["demo", "--auto"]] {
        let mut child = desk.spawn(words);
        drop(child.stdout.take());
        let ended = child.wait_with_output().expect("it ends");
        assert!(ended.stderr.is_empty() && ended.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ended.stderr));
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let failed = desk.command(&["journal", &session]).stdout(full).output().expect("it ends");
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("cannot be written to standard output"));
}
