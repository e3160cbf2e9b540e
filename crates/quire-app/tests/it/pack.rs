//! The commands that look after packs.

use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect};

/// Somebody at a terminal, in a home folder of their own.
pub struct Home(pub tempfile::TempDir);

impl Home {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes files, given as `== path` lines with each file's text below.
    pub fn write(&self, files: &str) -> &Self {
        for (path, text) in files.split("== ").skip(1).filter_map(|file| file.split_once('\n')) {
            let path = self.path().join(path.trim());
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
            std::fs::write(path, text).expect("the file is written");
        }
        self
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path().join(path)).expect("the file is there")
    }

    /// Runs `quire` and shows what is seen: the exit code, what is printed, what goes wrong.
    pub fn quire(&self, arguments: &str) -> String {
        self.quire_with(arguments, None)
    }

    /// The same, with a folder of packs in `QUIRE_PACKS`.
    pub fn quire_with(&self, arguments: &str, packs: Option<&Path>) -> String {
        let mut quire = Command::new(env!("CARGO_BIN_EXE_quire"));
        quire.args(arguments.split_whitespace()).current_dir(self.path()).env("QUIRE_DATA", self.path().join("data"));
        quire.env("NO_COLOR", "1").env("LANG", "C").env_remove("LC_ALL").env_remove("QUIRE_PACKS").env_remove("UPDATE");
        if let Some(packs) = packs {
            quire.env("QUIRE_PACKS", packs);
        }
        let output = quire.stdin(std::process::Stdio::null()).output().expect("the program runs");
        let home = self.path().display().to_string();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text").replace(&home, "~");
        format!("exit {}\n{}{}", output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
    }

    #[track_caller]
    pub fn check(&self, arguments: &str, expected: Expect) -> &Self {
        expected.assert_eq(&self.quire(arguments));
        self
    }
}

/// A pack of one skill with one scenario.
const PACK: &str = "\
== p/orchestrator.md
---
name: p
description: d
workers: [draft]
---
== p/workers/draft/SKILL.md
---
id: draft
description: Writes.
outputTags: [chapter.draft]
---
Write.
== p/tests/one.scenario
pack    p
user    Go.
agent   run_worker draft
worker  submit chapter.draft: The lamp was dark.
user    accept
";

#[test]
fn a_new_pack_of_every_kind_passes_its_check_and_its_test() {
    for (kind, language) in [("novel", "en"), ("novel", "zh"), ("dialogue", "en"), ("dialogue", "zh")] {
        let home = Home::new();
        home.quire(&format!("pack new mine --kind {kind} --language {language} --purpose d"));
        home.check(
            "pack check mine",
            expect![[r#"
            exit 0
            0 errors, 0 warnings
        "#]],
        );
        home.check(
            "pack test mine",
            expect![[r#"
            exit 0
            tests/first-session.scenario: as expected
            1 scenario
        "#]],
        );
    }
}

#[test]
fn a_new_pack_overwrites_nothing() {
    let home = Home::new();
    home.write("== mine/notes.txt\nmine\n").check(
        "pack new mine --kind novel --language en --purpose d",
        expect![[r#"
            exit 2
            quire: mine is there already; give another name
        "#]],
    );
    assert_eq!(home.read("mine/notes.txt"), "mine\n");
    home.check(
        "pack new a:b --kind novel --language en --purpose d",
        expect![[r#"
            exit 2
            quire: `a:b` cannot be a pack's name; use letters, digits, `-` and `_`
        "#]],
    );
}

#[test]
fn where_nobody_answers_the_first_answers_are_taken() {
    let home = Home::new();
    home.check("pack new --json", expect![[r#"
        exit 0
        {"pack":"my-pack","folder":"my-pack","files":["orchestrator.md","shared-context.md","tests/first-session.expected","tests/first-session.scenario","workers/plan/SKILL.md","workers/write/SKILL.md"]}
    "#]]);
    home.check(
        "pack new",
        expect![[r#"
        exit 0
        my-pack-2 is there:
          orchestrator.md
          shared-context.md
          tests/first-session.expected
          tests/first-session.scenario
          workers/plan/SKILL.md
          workers/write/SKILL.md

        Next:
          quire pack check my-pack-2    says what is wrong with it
          quire pack test my-pack-2     plays its scenario
          quire new my-pack-2           starts a session with it
        What comes of it, in a sentence? [Writes what I ask for, with my word at every turn.] 
        Is it a novel, to be read, or a dialogue, played in turns? [novel] 
        In which language are its prompts, en or zh? [en] 
    "#]],
    );
}

#[test]
fn a_check_says_where_what_and_what_to_do() {
    let home = Home::new();
    home.write("== p/orchestrator.md\n---\nname: p\ndescription: 灯塔，maxBurst: 3\nworkers: [draft]\n---\n");
    home.check(
        "pack check p",
        expect![[r#"
        exit 1
        orchestrator.md:3:25: error: this is not YAML: mapping values are not allowed in this context
          |
        3 | description: 灯塔，maxBurst: 3
          |                            ^
          help: put a text that holds `: ` in quotes, or write it under `>`; check that keys of one level begin in one column

        1 error, 0 warnings
    "#]],
    );
    home.check("pack check p --json", expect![[r#"
        exit 1
        {"pack":null,"hash":"a9c0eb7c7df8d733f0c62f3630bda5a0c9272d59606c7ef456084bd9cc185e38","errors":1,"warnings":0,"diagnostics":[{"severity":"error","code":"bad-yaml","file":"orchestrator.md","span":{"start":42,"end":43,"line":3,"column":25},"message":"this is not YAML: mapping values are not allowed in this context","help":"put a text that holds `: ` in quotes, or write it under `>`; check that keys of one level begin in one column"}]}
    "#]]);
    let seen = home.quire("pack check q");
    assert!(seen.starts_with("exit 1\nquire: there is no pack `q`, neither by name nor as a folder; there are: "), "{seen}");
}

#[test]
fn a_file_that_is_not_text_is_an_error_and_the_rest_is_read() {
    let home = Home::new();
    home.write(PACK);
    std::fs::write(
        home.path().join("p/workers/draft/SKILL.md"),
        b"---\nid: draft\ndescription: \xd0\xb4\xd7\xf7\ncolour: x\noutputTags: [a]\n---\n",
    )
    .expect("written");
    home.check("pack check p", expect![[r#"
        exit 1
        workers/draft/SKILL.md:3:15: error: this is not UTF-8 text
          |
        3 | description: д��
          |               ^
          help: save the file as UTF-8; other encodings of Chinese (GBK, Big5, UTF-16) cannot be told apart safely

        workers/draft/SKILL.md:4:1: warning: the front matter has no field `colour`
          |
        4 | colour: x
          | ^^^^^^
          help: drop it; known here: `acceptanceMode`, `allowed-tools`, `blind`, `checks`, `compatibility`, `contextIsolation`, `contextSegments`, `description`, `id`, `inputMerge`, `inputTags`, `license`, `llmProfileId`, `metadata`, `name`, `outputTags`, `readsAll`, `requiredTags`, `requiresApproval`, `reviews`, `skill`, `stage`, `variants`, `version`

        1 error, 1 warning
    "#]]);
}

#[test]
fn agent_skills_are_no_pack_and_one_is_told_how_to_make_it_one() {
    let home = Home::new();
    home.write(
        "== skills/haiku/SKILL.md\n---\nname: haiku\ndescription: d\nmetadata:\n  quire-outputTags: haiku.draft\n  quire-inputTags: 用户.最新输入, x.y\n---\n\
         == skills/pdf/SKILL.md\n---\nname: pdf\ndescription: Fills forms.\nlicense: MIT\n---\n== skills/pdf/scripts/fill.py\nprint(1)\n",
    );
    home.check(
        "pack check skills",
        expect![[r#"
            exit 1
            2 skills and no `orchestrator.md`: this is no pack yet.

              haiku would load: reads 用户.最新输入, x.y; writes haiku.draft
              pdf would not load
                1 file beside SKILL.md: a worker sees no other file, and none of them is run

            To make a pack of them:
              1. quire pack new my-pack
              2. copy skills/haiku to my-pack/workers/haiku
              3. copy skills/pdf to my-pack/workers/pdf
              4. add haiku, pdf to `workers` in my-pack/orchestrator.md
              5. quire pack check my-pack

            pdf/SKILL.md:1:1: error: the front matter has no `outputTags`
              |
            1 | ---
              | ^^^
              help: add `quire-outputTags: "chapter.draft"` under `metadata`: the tags it may write

            1 error, 0 warnings
        "#]],
    );
    home.check(
        "pack check skills/haiku",
        expect![[r#"
        exit 0
        1 skill and no `orchestrator.md`: this is no pack yet.

          haiku would load: reads 用户.最新输入, x.y; writes haiku.draft

        To make a pack of it:
          1. quire pack new my-pack
          2. copy skills/haiku to my-pack/workers/haiku
          3. add haiku to `workers` in my-pack/orchestrator.md
          4. quire pack check my-pack

        0 errors, 0 warnings
    "#]],
    );
    home.check("pack check skills --json", expect![[r#"
        exit 1
        {"pack":null,"skills":[{"id":"haiku","file":"haiku/SKILL.md","loads":true,"reads":["用户.最新输入","x.y"],"writes":["haiku.draft"],"otherFiles":0},{"id":"pdf","file":"pdf/SKILL.md","loads":false,"reads":null,"writes":null,"otherFiles":1}],"errors":1,"warnings":0,"diagnostics":[{"severity":"error","code":"missing-field","file":"pdf/SKILL.md","span":{"start":0,"end":3,"line":1,"column":1},"message":"the front matter has no `outputTags`","help":"add `quire-outputTags: \"chapter.draft\"` under `metadata`: the tags it may write"}]}
    "#]]);
}

#[test]
fn a_pack_without_tests_is_told_how_to_write_the_first() {
    let home = Home::new();
    home.write(PACK);
    std::fs::remove_file(home.path().join("p/tests/one.scenario")).expect("removed");
    home.check(
        "pack test p",
        expect![[r#"
        exit 1
        The pack has no scenario yet. Write the first as p/tests/first.scenario:

        pack    p

        user    What the writer says first.
        agent   run_worker draft: Why this skill is next.
        worker  submit chapter.draft: What the worker hands in.
        user    finish

        Then `quire pack test p --update` keeps what is seen after each line; read it before you trust it.
    "#]],
    );
}

#[test]
fn what_is_kept_is_compared_renewed_and_thrown_away() {
    let home = Home::new();
    home.write(PACK).write("== p/tests/prompts/one/09-draft.txt\nold\n== p/tests/gone.expected\nold\n");
    home.check(
        "pack test p",
        expect![[r#"
        exit 1
        tests/one.scenario: not as expected
          tests/one.expected is not there yet
          tests/prompts/one/01-agent.txt is not there yet
          tests/prompts/one/02-draft.txt is not there yet
        tests/gone.expected: stale, it belongs to nothing that is played
        tests/prompts/one/09-draft.txt: stale, it belongs to nothing that is played
        1 scenario, 1 not as expected, 2 files stale
        If it is meant so: quire pack test p --update
    "#]],
    );
    home.check(
        "pack test p --update",
        expect![[r#"
        exit 0
        tests/one.scenario: renewed
          tests/one.expected is new
          tests/prompts/one/01-agent.txt is new
          tests/prompts/one/02-draft.txt is new
        tests/gone.expected: removed, it belongs to nothing that is played
        tests/prompts/one/09-draft.txt: removed, it belongs to nothing that is played
        1 scenario, 1 renewed
    "#]],
    );
    home.check(
        "pack test p",
        expect![[r#"
        exit 0
        tests/one.scenario: as expected, with 2 prompts
        1 scenario
    "#]],
    );
    let skill = home.read("p/workers/draft/SKILL.md").replace("Write.", "Write, and \u{1b}[31m mean it.");
    home.write(&format!("== p/workers/draft/SKILL.md\n{skill}"));
    home.check(
        "pack test p",
        expect![[r#"
            exit 1
            tests/one.scenario: not as expected
              tests/prompts/one/02-draft.txt
                  === system ===
                  <skill>
                - Write.
                + Write, and \u001b[31m mean it.
                  </skill>

            1 scenario, 1 not as expected
            If it is meant so: quire pack test p --update
        "#]],
    );
}

#[test]
fn a_scenario_that_is_wrong_is_never_kept() {
    let home = Home::new();
    home.write(PACK).write("== p/tests/two.scenario\nsecret nobody: dark\npack p\nuser Go.\nagent run_worker draft\nworker submit chapter.draft: It was dark.\nuser reject: Not dark.\nagent run_worker draft\n== p/tests/three.scenario\nuser\nagnet x\n== p/one.scenario\npack p\n");
    home.check("pack test p --update", expect![[r#"
        exit 1
        one.scenario: renewed
          tests/one.expected is new
        tests/one.scenario: wrong, whatever is expected
          `one.scenario` has the same name, and both would be kept in one file; rename one of the two
        tests/three.scenario: wrong, whatever is expected
          tests/three.scenario:1:1: error: the user neither says nor does anything
            |
          1 | user
            | ^^^^
            help: write words, or an action: accept, reject: …, answer q1=A …
          tests/three.scenario:2:1: error: `agnet` begins no statement
            |
          2 | agnet x
            | ^^^^^
            help: a statement begins with pack, option, secret, tools, user, agent, worker, task or tool; `and` adds a call; the text of a statement is indented by two or more
        tests/two.scenario: wrong, whatever is expected
          line 7 is not asked for: draft is at work
        4 scenarios, 1 renewed, 3 wrong
    "#]]);
    assert!(!home.path().join("p/tests/two.expected").exists());
}

#[test]
fn a_built_in_pack_is_tested_by_its_name_and_cannot_be_renewed() {
    let home = Home::new();
    let seen = home.quire("pack test short-story");
    assert!(seen.starts_with("exit 0\n"), "{seen}");
    home.check(
        "pack test short-story --update",
        expect![[r#"
        exit 2
        quire: `short-story` is built in, so nothing can be kept beside it; give a folder
    "#]],
    );
}

#[test]
fn packs_are_listed_with_those_that_cannot_be_used() {
    let home = Home::new();
    home.write(PACK).write("== data/packs/broken/orchestrator.md\n---\nname: x\n---\n== data/packs/short-story/orchestrator.md\n---\nname: short-story\n---\n== data/packs/灯塔/orchestrator.md\n---\nname: 灯塔\nversion: 2\ndescription: 关于灯塔\nworkers: [a]\n---\n== data/packs/灯塔/workers/a/SKILL.md\n---\ndescription: d\noutputTags: [a]\n---\n");
    let seen = home.quire("pack list");
    let own: Vec<&str> = seen.lines().filter(|line| !line.is_empty()).skip_while(|line| !line.contains("broken")).collect();
    expect![[r#"
        broken             cannot be used: 2 errors; `quire pack check ~/data/packs/broken` shows them
            ~/data/packs/broken
        short-story        not found by its name, as built-in comes first
            ~/data/packs/short-story
        灯塔            2  关于灯塔
            ~/data/packs/灯塔
        Packs are looked for in ~/data/packs."#]]
    .assert_eq(&own.join("\n"));
}
