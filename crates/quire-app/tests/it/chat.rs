//! `quire chat` through a pipe: what is typed stands after `▌`, everything else is what a person reads.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use expect_test::{Expect, expect};
use quire_testkit::fake_openai::{FakeOpenAi, FakeReply};

use crate::desk::Desk;

/// Plays lines on a new short story whose model speaks from a scenario, and compares the whole transcript.
fn check(lang: &str, scenario: &str, lines: &str, expect: Expect) {
    let desk = Desk::new();
    let model = desk.scenario(scenario);
    let told = chat(&desk, lang, &["short-story", "--title", "灯", "--model", &model], lines);
    expect.assert_eq(&without_id(&told));
}

/// Returns everything that was told, and the exit code.
fn chat(desk: &Desk, lang: &str, arguments: &[&str], lines: &str) -> String {
    let ran = desk.quire_given(&[&["--lang", lang, "chat"], arguments].concat(), lines);
    format!("{}{}exit {}\n", ran.out, ran.err, ran.code)
}

/// The session's id is drawn: it stands for itself.
fn without_id(told: &str) -> String {
    let id = id_of(told);
    told.replace(&id, "ID").lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn id_of(told: &str) -> String {
    let is_id =
        |word: &&str| word.len() == 8 && word.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    let first = told.lines().next().unwrap_or_default();
    let id = first.split(|letter: char| !letter.is_ascii_alphanumeric()).find(is_id);
    id.unwrap_or_else(|| panic!("the first line names the session: {told}")).to_owned()
}

const STORY: &str = r#"
agent   run_worker outline: 有了想法，还没有大纲。
worker  ask_user
        ? who: 谁在回应她？ [寡妇 | 没有人，只是一扇百叶窗] (required)
        ? 故事里闻起来是什么味道？
worker  submit
        + outline.draft:
          # 大纲

          一、最后一夜。
          二、她收起灯。
        summary: 两拍。
worker  submit
        + outline.draft:
          # 大纲

          一、最后一夜。
          二、她把灯留在窗台上，没有收。
agent   ask_user: 大纲定了。要不要接着写？
        ? 接着写吗？ [写 | 不写]
agent   finish: 用户说到此为止。
"#;

#[test]
fn a_short_story_is_played_in_chinese() {
    check(
        "zh",
        STORY,
        "灯塔守夜人的最后一夜\n/确认\n\ne b\n没有人，\\\n只是风\n\nｓ\n海盐\n\n结尾太满，少说一句。\n/接受\nb\n\n",
        expect![[r#"
            会话 ID。直接说话，或输入 /帮助。

            What story shall we write?

            Tell me the idea in a sentence or a page: a person, a place, something that cannot stay as it is. Everything else may be left open, and you can change your mind at every turn.

              Idea *：
              Length：
              Tone：
              Point of view：
              Keep out：

            现在可以：按「标签：内容」一行一项填写 · /帮助
            ▌ 灯塔守夜人的最后一夜

              Idea *：灯塔守夜人的最后一夜
              Length：
              Tone：
              Point of view：
              Keep out：

            现在可以：按「标签：内容」一行一项填写 · /确认 · /帮助
            ▌ /确认
            · 总管，第 1 轮
            · Outline，第 1 轮

            「Outline」想问你：
            问题 1/2 · 必答
            谁在回应她？
              ○ A  寡妇
              ○ B  没有人，只是一扇百叶窗
              字母选择 · e A 改写后选用 · 也可以自己写

            现在可以：/丢弃 · /帮助
            1/2 ▌
            请先选一项，或写下回答。
            1/2 ▌ e b
            写下选项 B 的新内容：
            B ▌ 没有人，
              只是风
            问题 1/2 · 必答
            谁在回应她？
              ○ A  寡妇
              ● B  没有人，
                   只是风
              字母选择 · e A 改写后选用 · 也可以自己写 · 回车继续
            1/2 ▌
            问题 2/2
            故事里闻起来是什么味道？
              写下回答 · 回车发送 · s 跳过 · < 返回上一题
            2/2 ▌ ｓ
            · Outline，第 2 轮

            ── outline.draft ──
            # 大纲

            一、最后一夜。
            二、她收起灯。

            「Outline」说：两拍。
            「Outline」交来的产物 1：

            现在可以：/接受 · 直接说要改什么 · /丢弃 · /帮助
            ▌ 海盐
            · Outline，第 1 轮

            ── outline.draft ──
            # 大纲

            一、最后一夜。
            二、她把灯留在窗台上，没有收。

            「Outline」交来的产物 2：
            outline.draft 的改动（对照条目 2）
            ⋯ 2 段未变
            二、她[-收起灯-]{+把灯留在窗台上，没有收+}。

            现在可以：/接受 · 直接说要改什么 · /丢弃 · /帮助
            ▌
            请输入点什么，或者 /帮助。
            ▌ 结尾太满，少说一句。
            · Outline，第 1 轮

            ── outline.draft ──
            # 大纲

            一、最后一夜。
            二、她把灯留在窗台上，没有收。

            「Outline」交来的产物 3：
            outline.draft 与条目 3 相同

            现在可以：/接受 · 直接说要改什么 · /丢弃 · /帮助
            ▌ /接受
            · 总管，第 1 轮

            大纲定了。要不要接着写？

            问题
            接着写吗？
              ○ A  写
              ○ B  不写
              字母选择 · e A 改写后选用 · 也可以自己写 · 回车继续 · s 跳过

            现在可以：/说 内容 · /帮助
            ? ▌ b
            问题
            接着写吗？
              ○ A  写
              ● B  不写
              字母选择 · e A 改写后选用 · 也可以自己写 · 回车发送 · s 跳过
            ? ▌
            · 总管，第 1 轮

            ── outline.draft ──
            # 大纲

            一、最后一夜。
            二、她把灯留在窗台上，没有收。

            会话已经结束。
            `quire show ID` 查看全部结果。
            exit 0
        "#]],
    );
}

#[test]
fn what_cannot_be_done_is_said_in_english_and_harms_nothing() {
    check(
        "en",
        STORY,
        "/accept\n/confirm\n/dance\n\nIdea: A lamp.\n/confirm\n/answer who=\n/answer nobody=A\n/skip\n/answer who=b q1=salt and tar\n\
         /accept now\n/edit outline.draft\n\"\"\"\nOne beat.\n\nNo more.\n\"\"\"\n/edit user.brief lamp\n/board outline.draft\n/cell a b\n\
         /budget rounds=many\n/budget rounds=50\n/discard\n/quit\n",
        expect![[r#"
            Session ID. Type your words, or /help.

            What story shall we write?

            Tell me the idea in a sentence or a page: a person, a place, something that cannot stay as it is. Everything else may be left open, and you can change your mind at every turn.

              Idea *:
              Length:
              Tone:
              Point of view:
              Keep out:

            Now: `Label: value` lines · /help
            ▌ /accept
            refused: `accept` is not heard now
              pending: the intake waits for Idea

            Now: `Label: value` lines · /help
            ▌ /confirm
            refused: the intake still needs: Idea
              pending: the intake waits for Idea

            Now: `Label: value` lines · /help
            ▌ /dance
            there is no command /dance; /help lists them
            ▌
            Type something, or /help.
            ▌ Idea: A lamp.

              Idea *: A lamp.
              Length:
              Tone:
              Point of view:
              Keep out:

            Now: `Label: value` lines · /confirm · /help
            ▌ /confirm
            · the main agent, round 1
            · Outline, round 1

            Outline asks:
            Question 1/2 · must be answered
            谁在回应她？
              ○ A  寡妇
              ○ B  没有人，只是一扇百叶窗
              a letter chooses · `e A` edits it first · or write your own answer

            Now: /discard · /help
            1/2 ▌ /answer who=
            the answer to question `who` is empty; write one, or leave the question out
            1/2 ▌ /answer nobody=A
            there is no question `nobody` on this card; it asks `who`, `q2`
            1/2 ▌ /skip
            refused: these questions need an answer before work goes on: `who` (谁在回应她？)
              pending: Outline asks you; card 1 is open

            Now: /discard · /help
            1/2 ▌ /answer who=b q1=salt and tar
            · Outline, round 2

            ── outline.draft ──
            # 大纲

            一、最后一夜。
            二、她收起灯。

            Outline says: 两拍。
            Artifact 1 of Outline:

            Now: /accept · words: what to change · /discard · /help
            ▌ /accept now
            write: /accept
            ▌ /edit outline.draft
            Write the new text of outline.draft; a line """ begins and ends a longer one:
            ▌ One beat.

              No more.

            ── outline.draft ──
            One beat.

            No more.

            Outline says: 两拍。
            Artifact 1 of Outline:
            Changes in outline.draft since item 2
            [-# 大纲-]
            {+One beat.+}
            [-一、最后一夜。-]
            [-二、她收起灯。-]
            {+No more.+}

            Now: /accept · words: what to change · /discard · /help
            ▌ /edit user.brief lamp
            Done.

            Now: /accept · words: what to change · /discard · /help
            ▌ /board outline.draft
            outline.draft · drafted · item 3
            One beat.

            No more.
            ▌ /cell a b
            write: /cell TABLE KEY VALUE
            ▌ /budget rounds=many
            `many` is no limit; see `quire set-budget --help`
            ▌ /budget rounds=50
            Done.

            Now: /accept · words: what to change · /discard · /help
            ▌ /discard
            · the main agent, round 1

            大纲定了。要不要接着写？

            Question
            接着写吗？
              ○ A  写
              ○ B  不写
              a letter chooses · `e A` edits it first · or write your own answer · Enter goes on · `s` skips

            Now: /say WORDS · /help
            ? ▌ /quit

            The session stays where it is; `quire chat ID` comes back to it.
            exit 0
        "#]],
    );
}

#[test]
fn what_cannot_be_done_is_said_in_chinese() {
    check(
        "zh",
        STORY,
        "/接受\n/确认\n/跳舞\n想法：灯\n/确认\n/回答 who=\n/跳过\n/停\n/黑板 没有\n/帮助\n",
        expect![[r#"
            会话 ID。直接说话，或输入 /帮助。

            What story shall we write?

            Tell me the idea in a sentence or a page: a person, a place, something that cannot stay as it is. Everything else may be left open, and you can change your mind at every turn.

              Idea *：
              Length：
              Tone：
              Point of view：
              Keep out：

            现在可以：按「标签：内容」一行一项填写 · /帮助
            ▌ /接受
            没有执行：现在不能「接受 accept」
              现在：表里还缺：Idea

            现在可以：按「标签：内容」一行一项填写 · /帮助
            ▌ /确认
            没有执行：表里还缺：Idea
              现在：表里还缺：Idea

            现在可以：按「标签：内容」一行一项填写 · /帮助
            ▌ /跳舞
            没有命令 /跳舞；/帮助 会列出全部
            ▌ 想法：灯

              Idea *：想法：灯
              Length：
              Tone：
              Point of view：
              Keep out：

            现在可以：按「标签：内容」一行一项填写 · /确认 · /帮助
            ▌ /确认
            · 总管，第 1 轮
            · Outline，第 1 轮

            「Outline」想问你：
            问题 1/2 · 必答
            谁在回应她？
              ○ A  寡妇
              ○ B  没有人，只是一扇百叶窗
              字母选择 · e A 改写后选用 · 也可以自己写

            现在可以：/丢弃 · /帮助
            1/2 ▌ /回答 who=
            问题 who 的回答是空的；请写点什么，或者不答这一题
            1/2 ▌ /跳过
            没有执行：这些问题必须先回答：`who` (谁在回应她？)
              现在：「Outline」在等你回答；问题卡 1 还开着

            现在可以：/丢弃 · /帮助
            1/2 ▌ /停
            没有执行：现在不能「停下 stop」
              现在：「Outline」在等你回答；问题卡 1 还开着

            现在可以：/丢弃 · /帮助
            1/2 ▌ /黑板 没有
            「没有」下没有内容；已有：user.brief
            1/2 ▌ /帮助
              /说 内容                        说话；问题卡开着时也行
              /确认                           表已填好，开始
              /同意                           让它运行
              /不 [原因]                      不让它运行
              /接受                           确认为事实
              /退回 [要改什么]                退回去改
              /丢弃                           不要了
              /回答 [问题=回答 …]             回答问题卡；不带内容则逐题作答
              /跳过                           不回答，关掉问题卡
              /重试                           把失败或停下的再做一次
              /停                             停下正在做的；运行时按 Ctrl-C
              /结束                           彻底结束这个会话
              /编辑 标签 [内容]               改一个标签的内容；设了 $EDITOR 就用它
              /改格 表 键 值                  改一格；之后归你，直到还回去
              /还格 表 键                     把这一格还给执行单元
              /预算 [rounds=N] [tokens=N] [money=N] [time=15m]  设预算；none 表示不限
              /选 技能包                      选技能包
              /升级 [技能包]                  换到技能包的另一版
              /揭示                           看技能包对你隐藏的内容
              /查看                           查看现在的情形
              /黑板 [标签]                    看黑板，或其中一条
              /上下文 [次数]                  看执行单元当时看到了什么
              /日志 [all]                     看发生过什么
              /帮助                           显示这些
              /退出                           离开；会话会留着

            会话停在这里；`quire chat ID` 可以回来。
            exit 0
        "#]],
    );
}

#[test]
fn one_comes_back_to_where_a_session_stands() {
    let desk = Desk::new();
    let model = desk.scenario(STORY);
    let told = chat(&desk, "en", &["short-story", "--model", &model], "灯\n/confirm\n/answer who=A\n/accept\n");
    let id = id_of(&told);
    let told = chat(&desk, "en", &[&id], "");
    expect![[r#"
        Session ID. Type your words, or /help.
        Session ID, pack short-story, play stage
          outline.confirmed: accepted, item 3, 21 characters
          outline.draft: accepted, item 2, 21 characters
          user.brief: accepted, item 1, 7 characters
        Spent: 4 rounds, 0 tokens in (0% cached), 0 out, 0.0000 money

        ── outline.draft ──
        # 大纲

        一、最后一夜。
        二、她收起灯。

        大纲定了。要不要接着写？

        Question
        接着写吗？
          ○ A  写
          ○ B  不写
          a letter chooses · `e A` edits it first · or write your own answer · Enter goes on · `s` skips

        Now: /say WORDS · /help

        The session stays where it is; `quire chat ID` comes back to it.
        exit 0
    "#]]
    .assert_eq(&without_id(&told));
    let told = chat(&desk, "zh", &[&id, "--title", "x"], "");
    expect![[r#"
        quire：会话 `ID` 已经在了；--title、--model、--burst 只用于新会话
        exit 2
    "#]]
    .assert_eq(&told.replace(&id, "ID"));
}

#[test]
fn the_language_is_the_persons_and_json_is_the_same_in_both() {
    let desk = Desk::new();
    let model = desk.scenario(STORY);
    let told = chat(&desk, "zh", &["short-story", "--model", &model], "灯\n/confirm\n");
    let id = id_of(&told);
    let run = |lang: &str, arguments: &[&str]| {
        let ran = desk.quire(&[&["--lang", lang], arguments].concat());
        format!("{}{}", ran.out, ran.err)
            .replace(&id, "ID")
            .lines()
            .map(|line| format!("{}\n", line.trim_end()))
            .collect::<String>()
    };
    let told: String = [["list", ""], ["show", &id], ["context", &id], ["accept", &id], ["show", "nowhere"]]
        .map(|[command, on]| {
            let arguments: Vec<&str> = [command, on].into_iter().filter(|word| !word.is_empty()).collect();
            format!("$ {command}\n{}", run("zh", &arguments))
        })
        .concat();
    expect![[r#"
        $ list
        ID  等你（答问）             short-story
        $ show
        会话 ID，技能包 short-story，演绎阶段
          user.brief：已确认，条目 1，7 字
        已用：2 轮，输入 0 词元（0% 命中缓存），输出 0 词元，花费 0.0000
        最近一次调用：2（outline），输入 0 词元（0% 命中缓存），输出 0 词元，花费 0.0000
        「Outline」想问你：
          who: 谁在回应她？ *
              A  寡妇
              B  没有人，只是一扇百叶窗
          q2: 故事里闻起来是什么味道？
          quire answer ID who=…
          quire skip ID
          quire discard ID
        $ context
        第 1 次运行：「Outline」，1862 / 128000 词元
        每次都相同的开头：1834 词元（其中段占 57 字节）
          system                      1814 词元
          brief                         20 词元
              user.brief：条目 1
          final                         28 词元
        没有给它看的：
          accepted                 outline.confirmed: 没有这样的标签
          latest                   用户.最新输入: 没有这样的标签
        $ accept
        quire：没有执行：现在不能「接受 accept」
          现在：「Outline」在等你回答；问题卡 1 还开着
          现在可以：说话 say、丢弃 discard、回答 answer、跳过 skip、设预算 set-budget、结束 finish、编辑 edit、改格 edit-cell、还格 release-cell、揭示 reveal、开深挖任务 task start、取消深挖任务 task cancel
        $ show
        quire：没有会话 `nowhere`；`quire list` 列出已有的
    "#]].assert_eq(&told);
    for arguments in
        [["show", &id, "--json"], ["accept", &id, "--json"], ["context", "nowhere", "--json"], ["show", "nowhere", "--json"]]
    {
        assert_eq!(run("zh", &arguments), run("en", &arguments));
    }
}

/// Ctrl-C while a model writes stops the run; the next Ctrl-C, where nothing runs, leaves.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_stops_the_run_and_not_the_program() {
    let server = FakeOpenAi::start().await;
    server.reply(FakeReply::chunks([b": the connection stands\n\n".to_vec()]).then_hang());
    let desk = Desk::new().with_server(server.url());
    let mut child =
        desk.command(&["--lang", "en", "chat", "short-story"]).stdin(Stdio::piped()).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map(|line| line.expect("stdout is UTF-8"));
    let mut read_until = |what: &str| {
        let mut told = vec![];
        for line in lines.by_ref() {
            told.push(line);
            if told.last().is_some_and(|line| line.contains(what)) {
                break;
            }
        }
        told.join("\n") + "\n"
    };
    let interrupt = || {
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is there");
        assert!(sent.success());
    };
    stdin.write_all("A lamp.\n/confirm\n".as_bytes()).expect("the lines can be written");
    let mut told = read_until("round 1");
    interrupt();
    told.push_str(&read_until("/help"));
    interrupt();
    told.push_str(&read_until("never said"));
    let code = child.wait().expect("the program ends").code();
    expect![[r#"
        Session ID. Type your words, or /help.

        What story shall we write?

        Tell me the idea in a sentence or a page: a person, a place, something that cannot stay as it is. Everything else may be left open, and you can change your mind at every turn.

          Idea *:
          Length:
          Tone:
          Point of view:
          Keep out:

        Now: `Label: value` lines · /help
        ▌ A lamp.

          Idea *: A lamp.
          Length:
          Tone:
          Point of view:
          Keep out:

        Now: `Label: value` lines · /confirm · /help
        ▌ /confirm
        · the main agent, round 1

        stopped by you; retry goes on

        Now: /retry · your words · /help

        The session stays where it is; `quire chat ID` comes back to it.
    "#]].assert_eq(&without_id(&told));
    assert_eq!(code, Some(0));
}
