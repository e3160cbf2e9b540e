//! The page of all fields of a pack, printed from the tables that its reader holds.

use std::fmt::Write as _;

use expect_test::expect_file;
use quire_core::pack::reference::{Field, FieldMap, MAPS};

#[test]
fn the_reference_for_authors_is_the_readers_own_table() {
    let mut page = HEAD.to_owned();
    for FieldMap { place, fields, .. } in MAPS {
        let _ = write!(page, "\n## {place}\n\n| field | value | what it does |\n|---|---|---|\n");
        for Field { name, value, required, restricts, about } in *fields {
            let must = if *required { " *" } else { "" };
            let guard = if *restricts { " !" } else { "" };
            let _ = writeln!(page, "| `{name}`{must}{guard} | {value} | {about} |");
        }
    }
    expect_file!["../../../../docs/packs/reference.md"].assert_eq(&page);
}

const HEAD: &str = "\
# All fields of a pack

This page is printed from the tables by which `quire pack check` reads a pack. How to use the fields stands in the guide
([English](guide.md), [中文](guide.zh-CN.md)).

`*` must be there. `!` keeps something from somebody, so a misspelt one is an error; any other field that is not in these tables
is a warning, and is not read. A field without a value counts as one that is not there.

**Tag**: parts joined by dots, in any script: `chapter.draft`, `角色.A.设定`. **Pattern**: a tag; `*` between parts is exactly one part;
`.*` at the end is zero parts or more; `**` alone is every tag.
";
