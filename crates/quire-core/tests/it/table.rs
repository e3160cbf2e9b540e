use expect_test::expect;
use quire_core::table::{Patch, Table};
use serde_json::json;

fn table() -> Table {
    let content = json!({"rows": [
        {"key": "hp", "value": 7, "rev": 3},
        {"key": "name", "value": "Marit", "rev": 1, "source": "user"},
        {"key": "seed", "value": 12, "rev": 1, "editable": false},
    ]});
    Table::read(Some(&content.to_string())).expect("a table")
}

#[test]
fn a_cell_that_is_not_editable_takes_no_word_of_the_user() {
    let mut table = table();
    let error = table.edit("seed", json!(13), 1).expect_err("it is fixed");
    expect!["cell `seed` is not editable"].assert_eq(&error.to_string());
    assert_eq!(table, self::table());
}

#[test]
fn a_patch_passes_by_what_it_may_not_write() {
    let mut table = table();
    let seen = table.clone();
    let patch: Patch = serde_json::from_value(json!({
        "patch": {"hp": 5, "name": "Anna", "mood": "calm", "lost": 1},
        "expectedRev": {"hp": 2, "lost": 4},
    }))
    .expect("a patch");
    let passed_by = table.merge(&patch, &seen).join("\n");
    expect![[r#"
        `hp` was written since: it is 7 (rev 3), not rev 2
        `name` belongs to the user and stays "Marit" (rev 1)
        `lost` does not exist (rev 0), not rev 4"#]]
    .assert_eq(&passed_by);
    assert_eq!(table.rev("mood"), 1);
}
