//! A pack as the first implementation wrote them is found, read and played as it stands.

use std::path::PathBuf;

use expect_test::expect;

use crate::pack::Home;

fn packs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/packs/first-format")
}

fn check(arguments: &str, expected: expect_test::Expect) {
    let seen = Home::new().quire_with(arguments, Some(&packs()));
    expected.assert_eq(&seen.replace(&packs().display().to_string(), "PACKS"));
}

#[test]
fn it_is_found_by_the_name_in_its_registry() {
    let seen = Home::new().quire_with("pack list", Some(&packs()));
    let own: Vec<&str> = seen.lines().filter(|line| line.contains("角色卡")).collect();
    expect!["角色卡          0.9  从一句话的人设出发， 先实例化，再进入游玩。"].assert_eq(&own.join("\n"));
}

#[test]
fn only_its_retired_fields_are_warned_of() {
    check(
        "pack check 角色卡",
        expect![[r#"
        exit 0
        workers/persona/SKILL.md:7:1: warning: `inputKeys` is no longer read
          |
        7 | inputKeys: ["需求"]
          | ^^^^^^^^^
          help: write `inputTags`: the patterns of the tags it reads

        0 errors, 1 warning
    "#]],
    );
}

#[test]
fn it_is_played_to_its_end_with_models_that_speak_the_old_format() {
    check(
        "pack test 角色卡",
        expect![[r#"
        exit 0
        tests/whole.scenario: as expected
        1 scenario
    "#]],
    );
}
