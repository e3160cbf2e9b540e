//! Question cards: what models ask, and which answers are heard.

use expect_test::{Expect, expect};
use quire_core::ids::CardId;
use quire_core::question::{Answer, Card, Question, QuestionOption, read_questions};
use serde_json::{Value, json};

fn shown(questions: &[Question]) -> String {
    let option =
        |option: &QuestionOption| format!("\n  {} {}{}", option.id, option.label, if option.editable { "" } else { " (fixed)" });
    let question = |question: &Question| {
        let marks = [(question.required, " required"), (!question.allow_other, " options only")];
        let marks: String = marks.iter().filter(|mark| mark.0).map(|mark| mark.1).collect();
        let options: String = question.options.iter().map(option).collect();
        format!("{}: {}{marks}{options}\n", question.id, question.prompt)
    };
    questions.iter().map(question).collect()
}

fn check(asked: Value, expected: Expect) {
    expected.assert_eq(&shown(&read_questions(&asked)));
}

#[test]
fn questions_are_read_leniently() {
    check(
        json!({"questions": [
            "Who tells it?", "  ",
            {"id": "tone", "prompt": "Which tone?", "options": ["dry", {"id": "A", "label": "warm"}, ""], "required": true},
            {"id": "tone", "question": "How long?", "choices": [{"id": "s", "text": "short", "editable": false}, {"id": "l", "label": "long"}], "allowOther": false},
            {"id": 7, "prompt": "Name?", "allowOther": false},
            {"options": ["yes", "no"]},
            {"id": "q1", "prompt": "Keeps its id"},
        ]}),
        expect![[r#"
            q2: Who tells it?
            tone: Which tone? required
              A dry
              B warm
            q3: How long? options only
              s short (fixed)
              l long
            7: Name?
            q4: Which one?
              A yes
              B no
            q1: Keeps its id
        "#]],
    );
    check(
        json!("One question?"),
        expect![[r#"
        q1: One question?
    "#]],
    );
    check(
        json!({"prompt": "Just one?"}),
        expect![[r#"
        q1: Just one?
    "#]],
    );
}

#[test]
fn letters_go_on_after_z() {
    let asked = json!([{"prompt": "?", "options": (0..28).collect::<Vec<_>>()}]);
    let ids: Vec<String> = read_questions(&asked)[0].options.iter().map(|option| option.id.clone()).collect();
    assert_eq!(ids[24..], ["Y", "Z", "AA", "AB"]);
}

#[test]
fn a_card_that_cannot_be_read_still_asks_something() {
    for broken in [json!([{}]), json!(["", " "]), json!(5), json!([null]), json!({"id": "x"}), json!([[1]])] {
        check(
            broken,
            expect![[r#"
            q1: The question could not be read. What should be known before the work goes on?
        "#]],
        );
    }
    for nothing in [json!(null), json!([]), json!({}), json!({"questions": []}), json!(" ")] {
        check(nothing, expect![[""]]);
    }
}

fn card() -> Card {
    let questions = read_questions(&json!([
        {"id": "tone", "prompt": "Which tone?", "options": ["dry", {"label": "warm", "editable": false}], "allowOther": false, "required": true},
        {"id": "end", "prompt": "How does it end?", "options": ["well"]},
        {"id": "name", "prompt": "Her name?", "required": true},
    ]));
    Card { id: CardId(1), questions }
}

fn answer(question: &str, option: &str, text: &str) -> Answer {
    Answer { question_id: question.to_owned(), option_id: option.to_owned(), text: text.to_owned() }
}

#[test]
fn answers_that_do_not_fit_are_refused_with_the_way_out() {
    let attempts = [
        vec![answer("tone", "A", "dry, but kind"), answer("name", "other", "雨")],
        vec![answer("mood", "A", "dry")],
        vec![answer("tone", "C", "cold")],
        vec![answer("tone", "other", "cold")],
        vec![answer("tone", "B", "warmer")],
        vec![answer("name", "other", " ")],
        vec![answer("end", "A", "well"), answer("end", "other", "badly")],
        vec![answer("end", "A", "well")],
        vec![],
    ];
    let heard = |answers: &Vec<Answer>| match card().check(answers) {
        Ok(()) => "heard\n".to_owned(),
        Err(error) => format!("{error}\n"),
    };
    expect![[r#"
        heard
        there is no question `mood` on this card; it asks `tone`, `end`, `name`
        `C` is not on offer for question `tone`; choose one of A, B
        `other` is not on offer for question `tone`; choose one of A, B
        option B of question `tone` cannot be rewritten; send it as it is: `warm`
        the answer to question `name` is empty; write one, or leave the question out
        question `end` is answered twice; send one answer
        these questions need an answer before work goes on: `tone` (Which tone?), `name` (Her name?)
        these questions need an answer before work goes on: `tone` (Which tone?), `name` (Her name?)
    "#]]
    .assert_eq(&attempts.iter().map(heard).collect::<String>());
}

#[test]
fn what_a_person_types_becomes_an_answer() {
    let typed = [("tone", "b"), ("tone", "dry"), ("tone", "cold"), ("end", "badly"), ("name", "A"), ("who", "x"), ("name", "")];
    let read = |(question, value): &(&str, &str)| match card().answer(question, value) {
        Ok(answer) => format!("{question}={value} → {} {}\n", answer.option_id, answer.text),
        Err(error) => format!("{question}={value} → {error}\n"),
    };
    expect![[r#"
        tone=b → B warm
        tone=dry → A dry
        tone=cold → `cold` is not on offer for question `tone`; choose one of A, B
        end=badly → other badly
        name=A → other A
        who=x → there is no question `who` on this card; it asks `tone`, `end`, `name`
        name= → the answer to question `name` is empty; write one, or leave the question out
    "#]]
    .assert_eq(&typed.iter().map(read).collect::<String>());
}

#[test]
fn the_model_is_told_each_question() {
    expect![[r#"
        Which tone? — dry, but kind
        How does it end? — (not answered)
        Her name? — 雨"#]]
    .assert_eq(&card().told(&[answer("name", "other", "雨"), answer("tone", "A", "dry, but kind")]));
}
