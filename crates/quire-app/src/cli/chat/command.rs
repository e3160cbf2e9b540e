//! What can be typed after a slash: one command for each thing a user can do, and some that only look.

use crate::words::Lang;

macro_rules! slashes {
    ($($slash:ident: $en:literal $en_usage:literal $en_help:literal, $zh:literal $zh_usage:literal $zh_help:literal;)*) => {
        /// A command of the chat.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Slash {
            $(
                #[doc = $en_help]
                $slash,
            )*
        }

        impl Slash {
            /// All of them, as the help lists them.
            pub const ALL: &[Slash] = &[$(Slash::$slash),*];

            /// What is typed, without what follows.
            pub fn name(self, lang: Lang) -> &'static str {
                match (self, lang) {
                    $((Self::$slash, Lang::En) => $en, (Self::$slash, Lang::Zh) => $zh,)*
                }
            }

            /// What is typed, with what may follow.
            pub fn usage(self, lang: Lang) -> &'static str {
                match (self, lang) {
                    $(
                        (Self::$slash, Lang::En) => concat!($en, $en_usage),
                        (Self::$slash, Lang::Zh) => concat!($zh, $zh_usage),
                    )*
                }
            }

            fn help(self, lang: Lang) -> &'static str {
                match (self, lang) {
                    $((Self::$slash, Lang::En) => $en_help, (Self::$slash, Lang::Zh) => $zh_help,)*
                }
            }
        }
    };
}

slashes! {
    Say: "/say" " WORDS" "say something, also while a card is open", "/说" " 内容" "说话；问题卡开着时也行";
    Confirm: "/confirm" "" "close the intake and begin", "/确认" "" "表已填好，开始";
    Approve: "/approve" "" "let the worker run", "/同意" "" "让它运行";
    No: "/no" " [WHY]" "do not let it run", "/不" " [原因]" "不让它运行";
    Accept: "/accept" "" "make it a fact", "/接受" "" "确认为事实";
    Reject: "/reject" " [WHY]" "send it back", "/退回" " [要改什么]" "退回去改";
    Discard: "/discard" "" "throw it away", "/丢弃" "" "不要了";
    Answer: "/answer" " [QUESTION=ANSWER …]" "answer the card; alone: question by question", "/回答" " [问题=回答 …]" "回答问题卡；不带内容则逐题作答";
    Skip: "/skip" "" "close the card without answers", "/跳过" "" "不回答，关掉问题卡";
    Retry: "/retry" "" "do again what failed or was stopped", "/重试" "" "把失败或停下的再做一次";
    Stop: "/stop" "" "stop what runs; Ctrl-C does it meanwhile", "/停" "" "停下正在做的；运行时按 Ctrl-C";
    Finish: "/finish" "" "end the session for good", "/结束" "" "彻底结束这个会话";
    Edit: "/edit" " TAG [TEXT]" "write a tag's text, in $EDITOR where there is one", "/编辑" " 标签 [内容]" "改一个标签的内容；设了 $EDITOR 就用它";
    Cell: "/cell" " TABLE KEY VALUE" "write a cell; it is yours until you release it", "/改格" " 表 键 值" "改一格；之后归你，直到还回去";
    Release: "/release" " TABLE KEY" "hand a cell back to the workers", "/还格" " 表 键" "把这一格还给执行单元";
    Budget: "/budget" " [rounds=N] [tokens=N] [money=N] [time=15m]" "set what the session may spend; `none` lifts a limit", "/预算" " [rounds=N] [tokens=N] [money=N] [time=15m]" "设预算；none 表示不限";
    Select: "/select" " PACK" "choose the pack", "/选" " 技能包" "选技能包";
    Upgrade: "/upgrade" " [PACK]" "move to another version of the pack", "/升级" " [技能包]" "换到技能包的另一版";
    Reveal: "/reveal" "" "show what the pack hides from you", "/揭示" "" "看技能包对你隐藏的内容";
    Show: "/show" "" "show where the session stands", "/查看" "" "查看现在的情形";
    Board: "/board" " [TAG]" "show the blackboard, or one text of it", "/黑板" " [标签]" "看黑板，或其中一条";
    Context: "/context" " [RUN]" "show what a worker got to see", "/上下文" " [次数]" "看执行单元当时看到了什么";
    Log: "/log" " [all]" "show what has happened", "/日志" " [all]" "看发生过什么";
    Help: "/help" "" "show this", "/帮助" "" "显示这些";
    Quit: "/quit" "" "leave; the session stays", "/退出" "" "离开；会话会留着";
}

/// What a typed line is.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed<'a> {
    /// Nothing.
    Blank,
    /// Words.
    Words(&'a str),
    /// A command and what follows it.
    Slash(Slash, &'a str),
    /// A command that is not there.
    Unknown(&'a str),
}

/// Reads a typed line. Both languages' commands are read always; `//` begins words that begin with a slash.
pub fn read(line: &str) -> Typed<'_> {
    let line = line.trim();
    let Some(named) = line.strip_prefix('/').or_else(|| line.strip_prefix('／')) else {
        return if line.is_empty() { Typed::Blank } else { Typed::Words(line) };
    };
    if named.starts_with('/') {
        return Typed::Words(named);
    }
    let (name, rest) = named.split_once(char::is_whitespace).unwrap_or((named, ""));
    let is_named = |slash: &&Slash| {
        [Lang::En, Lang::Zh].iter().any(|lang| slash.name(*lang).strip_prefix('/') == Some(name.to_lowercase().as_str()))
    };
    match Slash::ALL.iter().find(is_named) {
        Some(slash) => Typed::Slash(*slash, rest.trim()),
        None => Typed::Unknown(line.split_whitespace().next().unwrap_or(line)),
    }
}

/// Lists all commands, a line each.
pub fn help(lang: Lang) -> Vec<(&'static str, &'static str)> {
    Slash::ALL.iter().map(|slash| (slash.usage(lang), slash.help(lang))).collect()
}

/// Reads `key=value` pairs whose values may hold spaces: a pair begins where one of `keys` does.
pub fn pairs(text: &str, keys: &[&str]) -> Vec<String> {
    let mut pairs: Vec<String> = vec![];
    for word in text.split(' ') {
        let begins = word.split_once('=').is_some_and(|(key, _)| keys.contains(&key));
        match pairs.last_mut() {
            Some(pair) if !begins => {
                pair.push(' ');
                pair.push_str(word);
            }
            _ => pairs.push(word.to_owned()),
        }
    }
    pairs.retain(|pair| !pair.trim().is_empty());
    pairs
}

#[cfg(test)]
mod tests {
    use super::{Slash, Typed, pairs, read};

    #[test]
    fn commands_are_read_in_both_languages() {
        assert_eq!(read(" /accept "), Typed::Slash(Slash::Accept, ""));
        assert_eq!(read("／退回 太长"), Typed::Slash(Slash::Reject, "太长"));
        assert_eq!(read("/Reject too  long"), Typed::Slash(Slash::Reject, "too  long"));
        assert_eq!(read("//home is a path"), Typed::Words("/home is a path"));
        assert_eq!(read("/foo bar"), Typed::Unknown("/foo"));
        assert_eq!(read("  "), Typed::Blank);
        assert_eq!(read("接受"), Typed::Words("接受"));
    }

    #[test]
    fn values_may_hold_spaces_and_equal_signs() {
        assert_eq!(pairs("who=B truth=Yes, but a=b  stays", &["who", "truth"]), ["who=B", "truth=Yes, but a=b  stays"]);
        assert_eq!(pairs("", &["q1"]), Vec::<String>::new());
    }
}
