//! Profiles on disk, and where their keys are.

use expect_test::expect;
use quire_adapters::providers::ToolMode;
use quire_adapters::providers::price::Price;
use quire_adapters::providers::profile::{KeySource, PRESETS, Profile, ProfileModels, Profiles, preset};
use quire_core::message::Usage;
use quire_runtime::ports::Models;
use quire_testkit::fake_model::{FakeModel, FakeReply};
use secrecy::ExposeSecret;
use serde_json::json;

use super::request;

const KEY: &str = "sk-very-secret-key";

fn profile(name: &str, server: &FakeModel) -> Profile {
    let mut profile = Profile::from_preset(name, preset("openai").expect("a preset"), "model-1");
    profile.base_url = server.url().to_owned();
    profile.key = KeySource::File;
    profile
}

#[tokio::test]
async fn a_profile_is_added_asked_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = FakeModel::start().await;
    let profiles = Profiles::open(folder.path()).expect("profiles");
    assert_eq!(profiles.list().expect("none"), []);
    let price = Price { input_micros: 1_000_000, cached_micros: 0, output_micros: 2_000_000 };
    let added = Profile { price: Some(price), ..profile("大", &server) };
    profiles.add(added.clone(), Some(KEY.into())).expect("added");
    profiles.add(Profile { key: KeySource::None, ..profile("a.small-one", &server) }, None).expect("added");
    let names: Vec<String> = profiles.list().expect("two").into_iter().map(|profile| profile.name).collect();
    assert_eq!(names, ["a.small-one", "大"]);
    assert_eq!(profiles.get("大").expect("it"), added);

    let models = ProfileModels::new(profiles.clone());
    let provider = models.provider("大").expect("a provider");
    let reply = provider.ask(&request("开始"), &|_| {}).await.expect("a reply");
    assert_eq!(reply.usage, Usage { input_tokens: 10, cached_tokens: 0, output_tokens: 3, money_micros: 16 });
    assert_eq!(server.authorizations(), [Some(format!("Bearer {KEY}"))]);
    // The same provider goes on, with what it has learnt, until its profile changes.
    assert!(std::sync::Arc::ptr_eq(&provider, &models.provider("大").expect("it")));
    profiles.replace(Profile { tool_mode: ToolMode::Text, ..added }).expect("replaced");
    assert!(!std::sync::Arc::ptr_eq(&provider, &models.provider("大").expect("another")));

    profiles.remove("大").expect("removed");
    assert!(!std::fs::read_to_string(folder.path().join("keys.json")).expect("keys").contains(KEY));
    let gone = models.provider("大").err().expect("a failure");
    expect!["there is no model profile `大`; there are: a.small-one; `quire model add` makes one"].assert_eq(&gone.message);
}

#[tokio::test]
async fn a_key_is_in_no_other_file_and_in_no_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = FakeModel::start().await;
    server.script(|_| FakeReply::status(401, &json!({"error": {"message": format!("wrong key {KEY}")}})));
    let profiles = Profiles::open(folder.path()).expect("profiles");
    profiles.add(profile("p", &server), Some(KEY.into())).expect("added");
    let models = ProfileModels::new(profiles.clone());
    let provider = models.provider("p").expect("a provider");
    let error = provider.ask(&request("开始"), &|_| {}).await.expect_err("a failure");
    let key = profiles.key(&profiles.get("p").expect("it")).expect("a key").expect("a key");
    assert_eq!(key.expose_secret(), KEY);
    let report =
        quire_adapters::providers::probe::probe(&profiles.get("p").expect("it"), Some(key.clone())).await.expect("a report");
    let again = profiles.add(profile("p", &server), Some(KEY.into())).expect_err("a refusal");
    let misplaced =
        profiles.add(Profile { key: KeySource::None, ..profile("q", &server) }, Some(KEY.into())).expect_err("a refusal");
    let words = format!(
        "{error:?} {again:?} {again} {misplaced:?} {misplaced} {models:?} {profiles:?} {key:?} {report:?} {:?}",
        profiles.list()
    );
    assert!(!words.contains(KEY), "{words}");
    for entry in std::fs::read_dir(folder.path()).expect("a folder") {
        let path = entry.expect("an entry").path();
        let holds = std::fs::read_to_string(&path).expect("a file").contains(KEY);
        assert_eq!(holds, path.ends_with("keys.json"), "{}", path.display());
    }
    #[cfg(unix)]
    for name in ["models.json", "keys.json", "models.lock"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.path().join(name)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_broken_file_is_told_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = FakeModel::start().await;
    let path = folder.path().join("models.json");
    let mut said = String::new();
    for broken in [
        "",
        "{\"version\":1,\"profiles\":[",
        "{\"version\":1,\"profiles\":[{\"name\":\"p\"}]}",
        "{\"version\":2,\"profiles\":[]}",
        "{\"profiles\":[]}",
        "{\"version\":1,\"profiles\":[],\"key\":\"sk-very-secret-key\"}",
    ] {
        std::fs::write(&path, broken).expect("a file");
        said += &format!("{}\n", Profiles::open(folder.path()).expect_err("a refusal"));
        let fine = tempfile::tempdir().expect("a folder");
        let profiles = Profiles::open(fine.path()).expect("profiles");
        std::fs::write(fine.path().join("models.json"), broken).expect("a file");
        profiles.add(profile("p", &server), None).expect_err("a refusal");
        assert_eq!(std::fs::read_to_string(fine.path().join("models.json")).expect("a file"), broken);
    }
    assert!(!said.contains(KEY), "{said}");
    expect![[r#"
        `data/models.json` cannot be read: it ends too early, at line 1, column 0; mend it, or move it away and add the profiles again
        `data/models.json` cannot be read: it ends too early, at line 1, column 25; mend it, or move it away and add the profiles again
        `data/models.json` cannot be read: a field is unknown, missing or of the wrong kind, at line 1, column 37; mend it, or move it away and add the profiles again
        `data/models.json` cannot be read: it has version 2, and this program knows 1; use a newer one; mend it, or move it away and add the profiles again
        `data/models.json` cannot be read: a field is unknown, missing or of the wrong kind, at line 1, column 15; mend it, or move it away and add the profiles again
        `data/models.json` cannot be read: a field is unknown, missing or of the wrong kind, at line 1, column 32; mend it, or move it away and add the profiles again
    "#]].assert_eq(&said.replace(&folder.path().display().to_string(), "data"));
}

#[tokio::test]
async fn what_is_missing_is_named_with_the_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = FakeModel::start().await;
    let profiles = Profiles::open(folder.path()).expect("profiles");
    let models = ProfileModels::new(profiles.clone());
    let env = KeySource::Env { var: "QUIRE_TEST_NO_SUCH_KEY".to_owned() };
    profiles.add(Profile { key: env, ..profile("env", &server) }, None).expect("added");
    profiles.add(profile("file", &server), None).expect("added");
    let address = Profile { base_url: "localhost:1234".to_owned(), key: KeySource::None, ..profile("address", &server) };
    profiles.add(address, None).expect("added");
    let mut said = String::new();
    for name in ["env", "file", "address"] {
        said += &format!("{}\n", models.provider(name).err().expect("a failure").message);
    }
    said += &format!("{}\n", profiles.add(profile("a/b", &server), None).expect_err("a refusal"));
    said += &format!("{}\n", profiles.add(profile("file", &server), None).expect_err("a refusal"));
    expect![[r#"
        the model profile `env` has no key: the variable QUIRE_TEST_NO_SUCH_KEY is not set; set it to the key
        the model profile `file` has no key: `data/keys.json` holds none; remove the profile and add it with its key
        the model profile `address` cannot be used: the base URL `localhost:1234` has no scheme; write `http://localhost:1234` for a server nearby, `https://localhost:1234` for any other
        `a/b` cannot be the name of a model profile; use letters, digits, `-`, `_` and `.`, at most 64 of them
        there is a model profile `file` already; remove it first, or choose another name
    "#]].assert_eq(&said.replace(&folder.path().display().to_string(), "data"));
}

#[test]
fn each_preset_makes_a_provider() {
    for preset in &PRESETS {
        let profile = Profile::from_preset("p", preset, "m");
        let provider = profile.provider(Some(KEY.into())).unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        assert_eq!(provider.model(), "m");
    }
}
