//! Packs that come from elsewhere are installed whole, or refused with a word on what is wrong with them.

use std::io::{Cursor, Write as _};

use expect_test::{Expect, expect};
use zip::write::SimpleFileOptions;

use crate::pack::Home;

const MANIFEST: &str = "---\nname: lamp\ndescription: d\nversion: 1\nworkers: [draft]\n---\n";
const SKILL: &str = "---\nid: draft\ndescription: Writes.\noutputTags: [chapter.draft]\n---\nWrite.\n";

/// Makes an archive with a pack in it, and what `more` adds.
fn archive(more: impl FnOnce(&mut zip::ZipWriter<Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(vec![]));
    for (path, text) in [("lamp/orchestrator.md", MANIFEST), ("lamp/workers/draft/SKILL.md", SKILL)] {
        zip.start_file(path, SimpleFileOptions::default()).expect("started");
        zip.write_all(text.as_bytes()).expect("written");
    }
    more(&mut zip);
    zip.finish().expect("finished").into_inner()
}

fn with_file(path: &str, bytes: &[u8]) -> Vec<u8> {
    archive(|zip| {
        zip.start_file(path, SimpleFileOptions::default()).expect("started");
        zip.write_all(bytes).expect("written");
    })
}

/// Tries to install an archive, and makes sure that a refused one leaves nothing behind.
#[track_caller]
fn check(name: &str, bytes: &[u8], expected: Expect) {
    let home = Home::new();
    std::fs::write(home.path().join(name), bytes).expect("written");
    let seen = home.quire(&format!("pack install {name}"));
    if !seen.starts_with("exit 0") {
        let left: Vec<_> = std::fs::read_dir(home.path().join("data/packs")).into_iter().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
        let above = std::fs::read_dir(home.path()).expect("the home is there").count();
        assert!(above <= 2, "nothing is written beside the data folder");
    }
    expected.assert_eq(&seen);
}

#[test]
fn an_archive_with_a_folder_around_the_pack_is_installed() {
    check(
        "lamp.zip",
        &with_file("__MACOSX/lamp/._x", b"x"),
        expect![[r#"
        exit 0
        lamp 1 from lamp.zip
          hash 76610aa7e89c5082883458445bfb82548edd5f21fa3eaa3cb80d7402be30fdfc
          hash 76610aa7e89c5082883458445bfb82548edd5f21fa3eaa3cb80d7402be30fdfc in ~/data/packs/lamp
        `lamp` is installed: quire new lamp
    "#]],
    );
}

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    check(
        "slip.zip",
        &with_file("lamp/../../evil.md", b"x"),
        expect![[r#"
        exit 3
        quire: nothing is installed: `lamp/../../evil.md` leads out of the pack's folder
    "#]],
    );
    check(
        "absolute.zip",
        &with_file("/etc/evil.md", b"x"),
        expect![[r#"
        exit 3
        quire: nothing is installed: `/etc/evil.md` leads out of the pack's folder
    "#]],
    );
    check(
        "drive.zip",
        &with_file("C:/evil.md", b"x"),
        expect![[r#"
        exit 3
        quire: nothing is installed: `C:/evil.md` leads out of the pack's folder
    "#]],
    );
    check(
        "backslash.zip",
        &with_file("lamp\\..\\evil.md", b"x"),
        expect![[r#"
        exit 3
        quire: nothing is installed: `lamp\\..\\evil.md` has a backslash in its name; pack it again with `/` between folders
    "#]],
    );
    check(
        "control.zip",
        &with_file("lamp/a\u{1b}[2J.md", b"x"),
        expect![[r#"
        exit 3
        quire: nothing is installed: `lamp/a\u{1b}[2J.md` is a name that not every system can keep; rename it
    "#]],
    );
}

#[test]
fn links_are_refused() {
    let link = archive(|zip| zip.add_symlink("lamp/notes.md", "/etc/passwd", SimpleFileOptions::default()).expect("added"));
    check(
        "link.zip",
        &link,
        expect![[r#"
        exit 3
        quire: nothing is installed: `lamp/notes.md` is a link; a pack holds files only: put the file itself in its place
    "#]],
    );
}

#[test]
fn names_that_are_not_text_or_not_one_are_refused() {
    let mut bytes = with_file("lamp/XXXX.md", b"x");
    // The same name in GBK, in both places where a zip has it.
    let places: Vec<usize> = (0..bytes.len() - 4).filter(|at| &bytes[*at..at + 4] == b"XXXX").collect();
    places.into_iter().for_each(|at| bytes[at..at + 4].copy_from_slice(b"\xb5\xc6\xcb\xfe"));
    check(
        "gbk.zip",
        &bytes,
        expect![[r#"
        exit 3
        quire: nothing is installed: the archive has a name that is not UTF-8 (`lamp/����.md`); pack it again with UTF-8 names
    "#]],
    );
    check(
        "case.zip",
        &with_file("lamp/ORCHESTRATOR.md", b"x"),
        expect![[r#"
        exit 3
        quire: nothing is installed: `lamp/ORCHESTRATOR.md` and `lamp/orchestrator.md` are one name to some file systems; rename one of the two
    "#]],
    );
}

#[test]
fn bombs_are_refused() {
    check(
        "large.zip",
        &with_file("lamp/a.md", &vec![b'a'; 5 * 1024 * 1024]),
        expect![[r#"
        exit 3
        quire: nothing is installed: `lamp/a.md` is larger than 4194304 bytes; this is no text of a pack
    "#]],
    );
    let many = archive(|zip| {
        for index in 0..1200 {
            zip.start_file(format!("lamp/notes/{index}.md"), SimpleFileOptions::default()).expect("started");
        }
    });
    check(
        "many.zip",
        &many,
        expect![[r#"
        exit 3
        quire: nothing is installed: there are more than 1000 files; this is no pack
    "#]],
    );
    let all = archive(|zip| {
        for index in 0..12 {
            zip.start_file(format!("lamp/{index}.md"), SimpleFileOptions::default()).expect("started");
            zip.write_all(&vec![b'a'; 3 * 1024 * 1024]).expect("written");
        }
    });
    check(
        "all.zip",
        &all,
        expect![[r#"
        exit 3
        quire: nothing is installed: the files have more than 33554432 bytes in all; this is no pack
    "#]],
    );
}

#[test]
fn what_is_no_archive_or_no_pack_is_refused() {
    check(
        "noise.zip",
        b"no archive",
        expect![[r#"
        exit 3
        quire: nothing is installed: this is no zip archive that can be read: invalid Zip archive: Could not find EOCD
    "#]],
    );
    check(
        "noise.tgz",
        b"no archive",
        expect![[r#"
        exit 3
        quire: nothing is installed: the archive ends before its time, or is larger than a pack can be: invalid gzip header
    "#]],
    );
    check(
        "pack.rar",
        b"Rar!",
        expect![[r#"
        exit 3
        quire: nothing is installed: pack.rar is neither a folder nor a .zip, .tar.gz or .tgz
    "#]],
    );
    let empty = zip::ZipWriter::new(Cursor::new(vec![])).finish().expect("finished").into_inner();
    check(
        "empty.zip",
        &empty,
        expect![[r#"
        exit 3
        quire: nothing is installed: there is no `orchestrator.md` in it, so it is no pack; `quire pack check` says what a folder is
    "#]],
    );
    check(
        "secret.zip",
        &with_file("lamp/llm-bindings.yaml", b"apiKey: sk-1\n"),
        expect![[r#"
        exit 3
        quire: nothing is installed: the pack cannot be used:
        llm-bindings.yaml:1:1: error: `apiKey` looks like a secret, and packs hold none
          |
        1 | apiKey: sk-1
          | ^^^^^^
          help: take it out; keys belong to the model profile on your machine (`quire model add`), a pack names profiles only

    "#]],
    );
}

#[test]
fn a_tar_is_read_like_a_zip() {
    check(
        "lamp.tar.gz",
        &tar(&[]),
        expect![[r#"
        exit 0
        lamp 1 from lamp.tar.gz
          hash 76610aa7e89c5082883458445bfb82548edd5f21fa3eaa3cb80d7402be30fdfc
          hash 76610aa7e89c5082883458445bfb82548edd5f21fa3eaa3cb80d7402be30fdfc in ~/data/packs/lamp
        `lamp` is installed: quire new lamp
    "#]],
    );
    check(
        "slip.tar.gz",
        &tar(&[("lamp/../../evil.md", tar::EntryType::Regular)]),
        expect![[r#"
        exit 3
        quire: nothing is installed: `lamp/../../evil.md` leads out of the pack's folder
    "#]],
    );
    check(
        "link.tar.gz",
        &tar(&[("lamp/notes.md", tar::EntryType::Symlink)]),
        expect![[r#"
        exit 3
        quire: nothing is installed: `lamp/notes.md` is a link; a pack holds files only: put the file itself in its place
    "#]],
    );
    check(
        "hard.tar.gz",
        &tar(&[("lamp/notes.md", tar::EntryType::Link)]),
        expect![[r#"
        exit 3
        quire: nothing is installed: `lamp/notes.md` is a link; a pack holds files only: put the file itself in its place
    "#]],
    );
    check(
        "device.tar.gz",
        &tar(&[("lamp/notes.md", tar::EntryType::Fifo)]),
        expect![[r#"
        exit 3
        quire: nothing is installed: `lamp/notes.md` is neither a file nor a folder
    "#]],
    );
    let mut cut = tar(&[]);
    cut.truncate(cut.len() / 2);
    check(
        "cut.tar.gz",
        &cut,
        expect![[r#"
        exit 3
        quire: nothing is installed: `lamp/orchestrator.md` cannot be read: incomplete deflate stream
    "#]],
    );
}

/// Makes a tar with a pack in it, and these entries.
fn tar(more: &[(&str, tar::EntryType)]) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (path, text) in [("lamp/orchestrator.md", MANIFEST), ("./lamp/workers/draft/SKILL.md", SKILL)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, text.as_bytes()).expect("appended");
    }
    for (path, kind) in more {
        let mut header = tar::Header::new_gnu();
        // Past the checks of the writer, as an attacker would.
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(0);
        header.set_cksum();
        tar.append(&header, std::io::empty()).expect("appended");
    }
    tar.into_inner().expect("written").finish().expect("finished")
}

#[test]
fn another_version_is_kept_beside_the_first_or_takes_its_place() {
    let home = Home::new();
    let pack = |version: &str, body: &str| {
        home.write(&format!(
            "== src/orchestrator.md\n{}{body}\n== src/workers/draft/SKILL.md\n{SKILL}",
            MANIFEST.replace("version: 1", &format!("version: {version}"))
        ));
    };
    let places = || {
        let mut names: Vec<String> = std::fs::read_dir(home.path().join("data/packs"))
            .expect("there")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect();
        names.sort();
        names.join(" ")
    };
    pack("1", "one");
    home.quire("pack install src");
    home.check(
        "pack install src",
        expect![[r#"
        exit 0
        lamp 1 from src
          hash 1f71c107358b0e14d43dd44b3dffd51ed1bffd0ab1999de056f95b974daae39e
          hash 1f71c107358b0e14d43dd44b3dffd51ed1bffd0ab1999de056f95b974daae39e in ~/data/packs/lamp
        `lamp` is installed already, exactly so: quire new lamp
    "#]],
    );
    pack("2", "two");
    home.quire("pack install src");
    pack("2", "three");
    home.quire("pack install src");
    expect!["lamp lamp@2 lamp@7996d2fa"].assert_eq(&places());
    home.check(
        "pack install src --replace",
        expect![[r#"
        exit 0
        lamp 2 from src
          hash 7996d2fadc4160dbbe7b4a52a7212e0a13d0fd96766ec1613640d1c8126f44ec
          hash 7996d2fadc4160dbbe7b4a52a7212e0a13d0fd96766ec1613640d1c8126f44ec in ~/data/packs/lamp
        `lamp` is installed: quire new lamp
    "#]],
    );
    expect!["lamp lamp@2 lamp@7996d2fa"].assert_eq(&places());
    home.check(
        "pack install src --name short-story --replace",
        expect![[r#"
        exit 3
        lamp 2 from src
          hash 7996d2fadc4160dbbe7b4a52a7212e0a13d0fd96766ec1613640d1c8126f44ec
        quire: `short-story` is built in and cannot be replaced; leave `--replace` out, or give another `--name`
    "#]],
    );
    home.check(
        "pack install src --name ../x",
        expect![[r#"
        exit 3
        lamp 2 from src
          hash 7996d2fadc4160dbbe7b4a52a7212e0a13d0fd96766ec1613640d1c8126f44ec
        quire: `../x` cannot be a folder's name; give one of letters, digits, `-`, `_` with `--name`
    "#]],
    );
}
