//! A question card on a terminal: a page for each question, answers kept until all are sent together.
//!
//! Pure: a typed line goes in, what to do next comes out. Whether the answers are good enough is the session's to say.

use std::collections::BTreeMap;

use quire_core::question::{Answer, Card, OTHER, Question, QuestionOption};

use crate::cli::paint::{Paint, printable};
use crate::words::Lang;

/// A card while it is answered.
#[derive(Debug)]
pub struct CardPlay {
    /// The card.
    pub card: Card,
    page: usize,
    chosen: BTreeMap<String, Answer>,
    rewriting: Option<QuestionOption>,
}

/// What follows from a typed line.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// The page is shown (again).
    Show,
    /// The person is told something.
    Say(String),
    /// The person leaves the card open and goes back to what it belongs to.
    Leave,
    /// These answers are sent.
    Send(Vec<Answer>),
    /// The card is closed without answers.
    Skip,
}

impl CardPlay {
    /// Begins with the first question.
    pub fn new(card: Card) -> Self {
        Self { card, page: 0, chosen: BTreeMap::new(), rewriting: None }
    }

    /// Says whether nothing was answered yet.
    pub fn is_untouched(&self) -> bool {
        self.chosen.is_empty() && self.rewriting.is_none() && self.page == 0
    }

    /// Says whether a line would choose or rewrite an option of the first question: then it is meant for the card.
    pub fn is_meant(&self, line: &str) -> bool {
        let question = self.question();
        option(question, line).is_some() || rewritten(question, line).is_some()
    }

    /// What stands before the cursor, and what is there to be changed.
    pub fn prompt(&self) -> (String, String) {
        match &self.rewriting {
            Some(option) => (format!("{} ▌ ", printable(&option.id)), self.text_of(option).to_owned()),
            None if self.card.questions.len() == 1 => ("? ▌ ".to_owned(), String::new()),
            None => (format!("{}/{} ▌ ", self.page + 1, self.card.questions.len()), String::new()),
        }
    }

    /// Takes a typed line.
    pub fn typed(&mut self, lang: Lang, line: &str) -> Step {
        let line = line.trim();
        if let Some(option) = self.rewriting.take() {
            if !line.is_empty() {
                self.choose(&option.id, line);
            }
            return Step::Show;
        }
        let question = self.question().clone();
        if line.is_empty() {
            let is_answered = self.chosen.contains_key(&question.id);
            return if is_answered || !question.required { self.go_on() } else { Step::Say(lang.card_choose_first()) };
        }
        if let Some(option) = option(&question, line) {
            self.choose(&option.id, &option.label);
            return Step::Show;
        }
        if let Some(option) = rewritten(&question, line) {
            if !option.editable {
                return Step::Say(lang.card_not_editable(&option.id));
            }
            self.rewriting = Some(option.clone());
            return Step::Say(lang.card_edit_now(&option.id));
        }
        match narrow(line).as_str() {
            "s" | "S" if question.required => Step::Say(lang.card_must_be_answered()),
            "s" | "S" => {
                self.chosen.remove(&question.id);
                self.go_on()
            }
            "<" | "《" if self.page == 0 => Step::Leave,
            "<" | "《" => {
                self.page -= 1;
                Step::Show
            }
            _ if question.allow_other || question.options.is_empty() => {
                self.choose(OTHER, line);
                Step::Show
            }
            _ => Step::Say(lang.card_only_options(offered(lang, &question))),
        }
    }

    fn choose(&mut self, option_id: &str, text: &str) {
        let question_id = self.question().id.clone();
        let answer = Answer { question_id: question_id.clone(), option_id: option_id.to_owned(), text: text.to_owned() };
        self.chosen.insert(question_id, answer);
    }

    fn go_on(&mut self) -> Step {
        if self.page + 1 < self.card.questions.len() {
            self.page += 1;
            return Step::Show;
        }
        let answers: Vec<Answer> =
            self.card.questions.iter().filter_map(|question| self.chosen.get(&question.id).cloned()).collect();
        if answers.is_empty() { Step::Skip } else { Step::Send(answers) }
    }

    fn question(&self) -> &Question {
        &self.card.questions[self.page]
    }

    fn text_of<'a>(&'a self, option: &'a QuestionOption) -> &'a str {
        let chosen = self.chosen.get(&self.question().id).filter(|answer| answer.option_id == option.id);
        chosen.map_or(&option.label, |answer| &answer.text)
    }

    /// Shows the page: the question, its options with what is chosen, and the keys.
    pub fn shown(&self, lang: Lang, paint: Paint) -> String {
        let question = self.question();
        let pages = self.card.questions.len();
        let head = if pages == 1 { lang.card_one() } else { lang.card_page(self.page + 1, pages) };
        let must = if question.required { format!(" · {}", lang.card_required()) } else { String::new() };
        let mut text = format!("{}\n{}\n", paint.dim(&format!("{head}{must}")), paint.markdown(&question.prompt));
        let chosen = self.chosen.get(&question.id);
        let line = |mark: &str, label: &str, is_chosen: bool| {
            let dot = if is_chosen { "●" } else { "○" };
            let first = format!("  {dot} {mark}{}", if mark.is_empty() { "" } else { "  " });
            let hang = " ".repeat(unicode_width::UnicodeWidthStr::width(first.as_str()));
            let shown = paint.wrap(&printable(label), &first, &hang);
            format!("{}\n", if is_chosen { paint.accent(&shown) } else { shown })
        };
        for option in &question.options {
            let is_chosen = chosen.is_some_and(|answer| answer.option_id == option.id);
            let fixed = if option.editable { String::new() } else { format!(" {}", lang.card_fixed()) };
            text.push_str(&line(&printable(&option.id), &format!("{}{fixed}", self.text_of(option)), is_chosen));
        }
        if let Some(answer) = chosen.filter(|answer| answer.option_id == OTHER) {
            text.push_str(&line("", &lang.card_other(&answer.text), true));
        }
        let keys = self.keys(lang).join(" · ");
        text.push_str(&format!("{}\n", paint.dim(&paint.wrap(&keys, "  ", "  "))));
        text
    }

    fn keys(&self, lang: Lang) -> Vec<String> {
        let question = self.question();
        let is_last = self.page + 1 == self.card.questions.len();
        let may_go_on = !question.required || self.chosen.contains_key(&question.id);
        let sends = is_last && !self.chosen.is_empty();
        let keys = [
            (!question.options.is_empty()).then(|| lang.card_keys_letters()),
            question.options.iter().any(|option| option.editable).then(|| lang.card_keys_edit()),
            (!question.options.is_empty() && question.allow_other).then(|| lang.card_keys_other()),
            question.options.is_empty().then(|| lang.card_keys_open()),
            may_go_on.then(|| if sends { lang.card_keys_send() } else { lang.card_keys_continue() }),
            (!question.required).then(|| lang.card_keys_skip()),
            (self.page > 0).then(|| lang.card_keys_back()),
        ];
        keys.into_iter().flatten().collect()
    }
}

/// Finds an option by what was typed: its letter in either case, also as a Chinese keyboard writes it.
fn option<'a>(question: &'a Question, typed: &str) -> Option<&'a QuestionOption> {
    let typed = narrow(typed.trim()).to_lowercase();
    question.options.iter().find(|option| option.id.to_lowercase() == typed)
}

fn rewritten<'a>(question: &'a Question, line: &str) -> Option<&'a QuestionOption> {
    let line = narrow(line.trim());
    let (verb, named) = line.split_once(' ')?;
    if verb.eq_ignore_ascii_case("e") { option(question, named) } else { None }
}

/// Turns full-width letters into plain ones.
fn narrow(text: &str) -> String {
    let plain = |letter: char| match letter {
        '！'..='～' => char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter),
        '\u{3000}' => ' ',
        other => other,
    };
    text.chars().map(plain).collect()
}

fn offered(lang: Lang, question: &Question) -> String {
    question.options.iter().map(|option| option.id.as_str()).collect::<Vec<_>>().join(&lang.comma())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use quire_core::ids::CardId;
    use quire_core::question::{Card, read_questions};
    use serde_json::json;

    use super::{CardPlay, Step};
    use crate::cli::paint::Paint;
    use crate::words::Lang;

    /// Plays lines on a card of three questions; each is shown with what it led to.
    fn check(lang: Lang, lines: &[&str], expect: Expect) {
        let questions = read_questions(&json!([
            { "id": "who", "prompt": "Who?", "options": ["the widow", { "label": "nobody", "editable": false }], "required": true },
            { "id": "how", "prompt": "How?", "options": ["by day"], "allowOther": false },
            "Why?",
        ]));
        let mut play = CardPlay::new(Card::new(CardId(1), questions));
        let mut told = play.shown(lang, Paint::PLAIN);
        for line in lines {
            let (prompt, _) = play.prompt();
            told.push_str(&format!("{prompt}{line}\n"));
            match play.typed(lang, line) {
                Step::Show => told.push_str(&play.shown(lang, Paint::PLAIN)),
                Step::Say(words) => told.push_str(&format!("{words}\n")),
                Step::Leave => told.push_str("left\n"),
                Step::Skip => told.push_str("skipped\n"),
                Step::Send(answers) => {
                    for answer in answers {
                        told.push_str(&format!("sent {}={}: {}\n", answer.question_id, answer.option_id, answer.text));
                    }
                }
            }
        }
        expect.assert_eq(&told);
    }

    #[test]
    fn a_required_question_is_neither_passed_nor_skipped() {
        check(
            Lang::En,
            &["", "s", "e b", "b", "", "s", ""],
            expect![[r#"
                Question 1/3 · must be answered
                Who?
                  ○ A  the widow
                  ○ B  nobody (fixed)
                  a letter chooses · `e A` edits it first · or write your own answer
                1/3 ▌ 
                Choose a letter or write an answer first.
                1/3 ▌ s
                This question must be answered; it cannot be skipped.
                1/3 ▌ e b
                option B cannot be rewritten
                1/3 ▌ b
                Question 1/3 · must be answered
                Who?
                  ○ A  the widow
                  ● B  nobody (fixed)
                  a letter chooses · `e A` edits it first · or write your own answer · Enter goes on
                1/3 ▌ 
                Question 2/3
                How?
                  ○ A  by day
                  a letter chooses · `e A` edits it first · Enter goes on · `s` skips · `<` goes back
                2/3 ▌ s
                Question 3/3
                Why?
                  write your answer · Enter sends · `s` skips · `<` goes back
                3/3 ▌ 
                sent who=B: nobody
            "#]],
        );
    }

    #[test]
    fn an_option_is_rewritten_and_answers_are_sent_together() {
        check(
            Lang::Zh,
            &["ｅ Ａ", "寡妇，七十岁", "", "自己来", "ａ", "", "<", "", "因为冰", ""],
            expect![[r#"
                问题 1/3 · 必答
                Who?
                  ○ A  the widow
                  ○ B  nobody （不可改写）
                  字母选择 · e A 改写后选用 · 也可以自己写
                1/3 ▌ ｅ Ａ
                写下选项 A 的新内容：
                A ▌ 寡妇，七十岁
                问题 1/3 · 必答
                Who?
                  ● A  寡妇，七十岁
                  ○ B  nobody （不可改写）
                  字母选择 · e A 改写后选用 · 也可以自己写 · 回车继续
                1/3 ▌ 
                问题 2/3
                How?
                  ○ A  by day
                  字母选择 · e A 改写后选用 · 回车继续 · s 跳过 · < 返回上一题
                2/3 ▌ 自己来
                这一题只能选：A
                2/3 ▌ ａ
                问题 2/3
                How?
                  ● A  by day
                  字母选择 · e A 改写后选用 · 回车继续 · s 跳过 · < 返回上一题
                2/3 ▌ 
                问题 3/3
                Why?
                  写下回答 · 回车发送 · s 跳过 · < 返回上一题
                3/3 ▌ <
                问题 2/3
                How?
                  ● A  by day
                  字母选择 · e A 改写后选用 · 回车继续 · s 跳过 · < 返回上一题
                2/3 ▌ 
                问题 3/3
                Why?
                  写下回答 · 回车发送 · s 跳过 · < 返回上一题
                3/3 ▌ 因为冰
                问题 3/3
                Why?
                  ● 自己的话：因为冰
                  写下回答 · 回车发送 · s 跳过 · < 返回上一题
                3/3 ▌ 
                sent who=A: 寡妇，七十岁
                sent how=A: by day
                sent q1=other: 因为冰
            "#]],
        );
    }
}
