//! The guides for pack authors: each file in them is written, each command is typed, and what is printed is what they show.
//!
//! A block below a line with nothing but a bold path is that file. In a `console` block every line after `$ ` is a command; the
//! rest is what it prints, renewed by `UPDATE_EXPECT=1`. A session's id and the home folder differ from machine to machine, so
//! they are shown under fixed names.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::expect_file;

/// How the first session's id is shown.
const SESSION: &str = "k7wq2mha";

#[test]
fn everything_in_the_english_guide_happens_as_it_says() {
    let guide = include_str!("../../../../docs/packs/guide.md");
    expect_file!["../../../../docs/packs/guide.md"].assert_eq(&Reader::new().follow(guide));
}

#[test]
fn everything_in_the_chinese_guide_happens_as_it_says() {
    let guide = include_str!("../../../../docs/packs/guide.zh-CN.md");
    expect_file!["../../../../docs/packs/guide.zh-CN.md"].assert_eq(&Reader::new().follow(guide));
}

/// Somebody who does what a guide says, in a home folder of their own.
struct Reader {
    home: tempfile::TempDir,
    session: Option<String>,
}

impl Reader {
    fn new() -> Self {
        Self { home: tempfile::tempdir().expect("a folder"), session: None }
    }

    /// Follows a guide from its top, and writes it anew with what really happened.
    fn follow(&mut self, guide: &str) -> String {
        let mut written = String::new();
        let mut lines = guide.lines();
        let mut file = None;
        while let Some(line) = lines.next() {
            let _ = writeln!(written, "{line}");
            let Some((fence, kind)) = opening(line) else {
                file = named_file(line).or(file.filter(|_| line.trim().is_empty()));
                continue;
            };
            let block: Vec<&str> = lines.by_ref().take_while(|line| line.trim_end() != fence).collect();
            match (file.take(), kind) {
                (Some(path), _) => {
                    self.write(path, &block);
                    written += &joined(&block);
                }
                (None, "console") => written += &self.type_all(&block),
                (None, _) => written += &joined(&block),
            }
            let _ = writeln!(written, "{fence}");
        }
        written
    }

    fn write(&self, path: &str, lines: &[&str]) {
        let path = self.home.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        std::fs::write(path, joined(lines)).expect("the file is written");
    }

    fn type_all(&mut self, block: &[&str]) -> String {
        let mut seen = String::new();
        for command in block.iter().filter_map(|line| line.strip_prefix("$ ")) {
            let _ = writeln!(seen, "$ {command}");
            seen += &self.type_one(command);
        }
        seen
    }

    fn type_one(&mut self, command: &str) -> String {
        let typed = match &self.session {
            Some(session) => command.replace(SESSION, session),
            None => command.to_owned(),
        };
        let output = self.shell(&format!("{{ {typed}\n}} 2>&1"));
        if self.session.is_none() {
            self.session = self.only_session();
        }
        let home = self.home.path().canonicalize().expect("it is there");
        let seen = output.replace(home.to_str().expect("text"), "~");
        let seen = match &self.session {
            Some(session) => seen.replace(session.as_str(), SESSION),
            None => seen,
        };
        seen.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    fn only_session(&self) -> Option<String> {
        let listed: serde_json::Value = serde_json::from_str(&self.shell("quire list --json")).ok()?;
        Some(listed["sessions"][0]["session"].as_str()?.to_owned())
    }

    fn shell(&self, line: &str) -> String {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_quire"));
        let folder = program.parent().expect("a folder").display().to_string();
        let home = self.home.path().canonicalize().expect("it is there");
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(&home).env_clear();
        shell.env("PATH", format!("{folder}:/usr/bin:/bin")).env("HOME", &home).env("NO_COLOR", "1").env("LANG", "C.UTF-8");
        shell.env("QUIRE_DATA", Path::new(&home).join(".quire"));
        let output = shell.output().expect("there is a shell");
        String::from_utf8(output.stdout).expect("text")
    }
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Reads the opening of a block: its fence, and the first word after it.
fn opening(line: &str) -> Option<(String, &str)> {
    let kind = line.trim_start_matches('`');
    let fence = "`".repeat(line.len() - kind.len());
    (fence.len() >= 3).then_some((fence, kind.trim()))
}

/// Reads a line that names the file in the block below it: nothing but a bold path.
fn named_file(line: &str) -> Option<&str> {
    line.strip_prefix("**`")?.strip_suffix("`**")
}
