use std::sync::Arc;

use expect_test::{Expect, expect};
use quire_core::pack::PackFiles;
use quire_scenario::suite;

/// Plays a scenario with a pack of two skills: `core` writes a secret, `guess` may not know it but reads all.
fn check(scenario: &str, expected: Expect) {
    let files = [
        ("orchestrator.md", "---\nname: p\ndescription: d\nworkers: [core, guess]\n---\n"),
        (
            "workers/core/SKILL.md",
            "---\nid: core\ndescription: d\noutputTags: [truth.draft]\nacceptanceMode: no_confirmation\n---\nX",
        ),
        (
            "workers/guess/SKILL.md",
            "---\nid: guess\ndescription: d\ninputTags: [truth.*]\noutputTags: [guess.draft]\nacceptanceMode: no_confirmation\n---\nX",
        ),
    ];
    let pack = PackFiles(files.map(|(path, text)| (path.to_owned(), Arc::from(text))).into());
    let played = suite::play(&pack, "test.scenario", scenario).expect("no faults");
    let files: Vec<&str> = played.prompts.iter().map(|prompt| prompt.file.as_str()).collect();
    expected.assert_eq(&format!("{}\n{}\n", files.join(" "), played.faults.join("\n")));
}

#[test]
fn a_secret_that_gets_about_is_a_fault_and_so_is_one_that_nobody_wrote() {
    check(
        "
        pack    p
        secret  core: the pilot did it
        secret  guess: nobody says this
        user    Go.
        agent   run_worker core
        worker  submit truth.draft: In the end the pilot did it.
        agent   run_worker guess
        worker  submit guess.draft: No idea.
    ",
        expect![[r#"
            01-agent.txt 02-core.txt 03-agent.txt 04-guess.txt
            the secret `the pilot did it` stands in prompt 4 of guess
            the secret `nobody says this` proves nothing: no text of the session holds it
        "#]],
    );
}

#[test]
fn a_line_that_nobody_asked_for_is_a_fault() {
    check(
        "
        pack    p
        user    Go.
        worker  submit truth.draft: Too early.
    ",
        expect![[r#"

            line 4 is not asked for: the main agent is at work
        "#]],
    );
}
