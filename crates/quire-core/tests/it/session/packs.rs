//! A session's packs (SPEC §3.2, §11): chosen, kept exactly, moved to another version.

use expect_test::expect;
use quire_core::event::Action;
use quire_core::ids::RunId;
use quire_core::pack::PackFiles;
use quire_testkit::hand::Hand;
use quire_testkit::hand::{Estimate, state};
use quire_testkit::play::pack_files;

#[test]
fn a_session_without_a_pack_chooses_one_and_begins_with_it() {
    let mut hand = Hand::start(None);
    expect!["waiting_user skill_selection"].assert_eq(&state(&hand.session));
    hand.says("A story.").expect_err("a pack comes first");
    let refusal = hand.user(Action::SelectPack { pack: PackFiles::default() }).expect_err("no pack at all");
    expect!["the pack cannot be used: orchestrator.md:1:1: error: there is no `orchestrator.md`"].assert_eq(&refusal.message);
    hand.user(Action::SelectPack { pack: pack_files("intake") }).expect("a pack is chosen");
    expect!["waiting_user intake, missing Idea, Tone"].assert_eq(&state(&hand.session));
    hand.user(Action::SelectPack { pack: pack_files("novel") }).expect_err("it is chosen");
}

#[test]
fn a_pack_says_how_a_session_begins() {
    let begins = |pack| {
        let hand = Hand::start(Some(pack));
        format!("{pack}: {}, {}, burst {}\n", hand.session.stage().as_str(), state(&hand.session), hand.session.burst().max)
    };
    let all: String = ["intake", "novel", "auto", "staged"].into_iter().map(begins).collect();
    expect![[r#"
        intake: play, waiting_user intake, missing Idea, Tone, burst 12
        novel: play, waiting_user input: What shall it be about?, burst 12
        auto: play, waiting_user input, burst 4
        staged: design, waiting_user input, burst 12
    "#]]
    .assert_eq(&all);
}

#[test]
fn an_upgrade_moves_the_session_and_old_prompts_are_still_built_from_their_own_pack() {
    let mut hand = Hand::after(
        "pack novel\nuser A story.\nagent run_worker draft\nworker submit chapter.draft: One.\nuser accept\nagent ask_user: Now?",
    );
    let before = hand.session.run_context(RunId(1), 100_000, &Estimate).expect("there is room");
    hand.user(Action::UpgradePack { pack: pack_files("novel") }).expect_err("it is this very version");
    let mut files = pack_files("novel");
    let skill = files.0["workers/draft/SKILL.md"].replace("Write the chapter.", "Write the chapter better.");
    files.0.insert("workers/draft/SKILL.md".to_owned(), skill.into());
    hand.user(Action::UpgradePack { pack: files }).expect("it is another version");
    expect!["waiting_user input: Now?"].assert_eq(&state(&hand.session));
    assert_eq!(hand.session.run_context(RunId(1), 100_000, &Estimate).expect("there is room"), before);
    hand.says("Once more.").expect("words are heard");
    let (prompt, _) = hand.session.prompt(u32::MAX, &Estimate).expect("there is room");
    assert!(prompt.messages[1].text().contains("user: moved to novel"));
}

#[test]
fn an_upgrade_to_a_pack_without_design_goes_to_play() {
    let mut hand = Hand::start(Some("staged"));
    assert_eq!(hand.session.stage().as_str(), "design");
    hand.user(Action::UpgradePack { pack: pack_files("novel") }).expect("it is another pack");
    assert_eq!(hand.session.stage().as_str(), "play");
}
