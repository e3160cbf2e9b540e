//! The words of the program, in its two languages.
//!
//! Every phrase stands here once, in English and in Chinese; one that lacks a language does not compile. What follows from
//! a session (what is pending, why something is refused) is put together in [`session`].
//!
//! Not here: JSON, which is the same in every language; the words of packs and models; command-line help.

use std::fmt::Display;

pub mod session;

/// The language in which the program speaks to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

impl Lang {
    /// Reads the locale: the first of `LC_ALL`, `LC_MESSAGES` and `LANG` that is set decides.
    pub fn of_locale() -> Self {
        let variables = ["LC_ALL", "LC_MESSAGES", "LANG"];
        let locale = variables.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        Self::of_locale_name(&locale.unwrap_or_default())
    }

    fn of_locale_name(name: &str) -> Self {
        if name.to_ascii_lowercase().starts_with("zh") { Self::Zh } else { Self::En }
    }
}

macro_rules! phrases {
    ($($name:ident($($argument:ident),*): $en:literal, $zh:literal;)*) => {
        impl Lang {
            $(
                /// This phrase.
                pub fn $name(self $(, $argument: impl Display)*) -> String {
                    match self {
                        Self::En => format!($en),
                        Self::Zh => format!($zh),
                    }
                }
            )*
        }
    };
}

// Small parts that others are made of.
phrases! {
    comma(): ", ", "、";
    in_quotes(text): "“{text}”", "《{text}》";
    agent(): "the main agent", "总管";
    hidden_text(): "(hidden)", "（已隐藏）";
    none(): "none", "无";
}

// Deep tasks.
phrases! {
    deep_task(task): "deep task {task}", "深挖任务 {task}";
    tasks_under_way(tasks, id): "Deep tasks under way: {tasks}\n  quire task watch {id}   goes on with them", "深挖任务进行中：{tasks}\n  quire task watch {id}   让它们继续";
    works_task(task, round): "deep task {task}, round {round}", "深挖任务 {task}，第 {round} 轮";
    too_many_tasks(running): "{running} deep tasks run already, which is the limit; wait for one, or cancel one", "已有 {running} 个深挖任务在进行，到上限了；等一个结束，或取消一个";
    task_over(task): "deep task {task} is over", "深挖任务 {task} 已经结束";
    no_such_task(task): "there is no deep task {task}", "没有深挖任务 {task}";
    record_equipped(task, tools): "deep task {task} has: {tools}", "深挖任务 {task} 的工具：{tools}";
    record_tool_asked(task, call, attempt): "deep task {task} makes tool call {call}, attempt {attempt}", "深挖任务 {task} 调用工具 {call}，第 {attempt} 次";
    record_tool_answered(task, call, characters): "tool call {call} of deep task {task} answered: {characters} characters", "深挖任务 {task} 的工具调用 {call} 有了结果：{characters} 字";
    record_tool_failed(task, call): "tool call {call} of deep task {task} failed", "深挖任务 {task} 的工具调用 {call} 失败";
    record_tool_lost(task, call): "tool call {call} of deep task {task} has an unknown outcome", "深挖任务 {task} 的工具调用 {call} 结果不明";
    record_overdue(task): "the time of deep task {task} is up", "深挖任务 {task} 的时间用完了";
}

// Where a session stands.
phrases! {
    session_line(id): "Session {id}", "会话 {id}";
    session_head(id, title, pack, stage): "Session {id}{title}, pack {pack}, {stage} stage", "会话 {id}{title}，技能包 {pack}，{stage}阶段";
    stage_design(): "design", "设计";
    stage_play(): "play", "演绎";
    stage_done(): "done", "完结";
    phase_idle(): "idle", "未开始";
    phase_running(): "running", "运行中";
    phase_waiting(): "waiting_user", "等你";
    phase_done(): "done", "已完结";
    phase_error(): "error", "只读";
    reason_skill_selection(): "skill_selection", "选技能包";
    reason_intake(): "intake", "填表";
    reason_input(): "input", "输入";
    reason_approve_step(): "approve_step", "批准";
    reason_review_artifact(): "review_artifact", "审阅";
    reason_worker_questions(): "worker_questions", "答问";
    reason_revision(): "revision", "修改";
    item_line(tag, state, item, characters, hidden): "  {tag}: {state}, item {item}, {characters} characters{hidden}", "  {tag}：{state}，条目 {item}，{characters} 字{hidden}";
    item_hidden(): ", hidden", "，已隐藏";
    state_drafted(): "drafted", "草稿";
    state_accepted(): "accepted", "已确认";
    state_rejected(): "rejected", "已丢弃";
    state_superseded(): "superseded", "已被替换";
    spent(rounds, usage): "Spent: {rounds} rounds, {usage}", "已用：{rounds} 轮，{usage}";
    spent_last(call, who, usage): "Last call: {call} by {who}, {usage}", "最近一次调用：{call}（{who}），{usage}";
    spent_in_all(usage): "Spent in all: {usage}", "合计：{usage}";
    usage(input, share, output, money): "{input} tokens in ({share}% cached), {output} out, {money} money", "输入 {input} 词元（{share}% 命中缓存），输出 {output} 词元，花费 {money}";
    not_begun(): "The session has not begun.", "会话还没有开始。";
    running(pending): "Running: {pending}.", "运行中：{pending}。";
    done(): "The session is done.", "会话已经结束。";
    only_readable(reason): "This session can only be read: {reason}", "这个会话只能查看：{reason}";
    no_session_yet(): "There is no session yet; `quire new short-story` starts one.", "还没有会话；`quire new short-story` 新建一个。";
}

// Models.
phrases! {
    model_reserved(name): "`{name}` is always there; choose another name", "`{name}` 一直都在，请换一个名字";
    model_unnamed(): "name the model as its server does: `--model NAME`; `quire model find` lists local ones", "请写出模型在服务端的名字：`--model 名字`；`quire model find` 列出本机的模型";
    model_next_test(name): "  quire model test {name}   finds out what it can do", "  quire model test {name}   看看它会什么";
    model_bad_price(text): "`{text}` is no price; write it like 2.50", "`{text}` 不是价格，请写成 2.50 这样";
    model_bad_parameter(text): "`--param {text}`: write NAME=VALUE", "`--param {text}`：请写成 名字=值";
    model_type_key(): "Type or paste the key, and end the line.", "请输入或粘贴密钥，然后回车。";
    model_no_key(): "there is no key on stdin; pipe it in, or name a variable with --key-env", "标准输入里没有密钥；请用管道传入，或用 --key-env 指定变量";
    models_none(): "There is no model yet.\n  quire model find   looks for servers on this machine\n  quire model add    adds a model", "还没有模型。\n  quire model find   查找本机的模型服务\n  quire model add    添加模型";
    model_environment(name, model, url): "{name}: {model} at {url}, by the environment's variables", "{name}：{url} 上的 {model}，来自环境变量";
    model_removed(name): "Removed {name}. Sessions that are bound to it wait until there is one of that name again.", "已删除 {name}。绑定它的会话会等到同名的模型再次出现。";
    model_asking(model, url): "Asking {model} at {url}, some fifteen times.", "正在询问 {url} 上的 {model}，大约十五次。";
    model_kept(name, mode): "Kept in {name}: it is told to act by `{mode}`.", "已记入 {name}：按 `{mode}` 方式让它行动。";
    model_not_kept(mode): "Not kept, for the environment is no profile; `{mode}` would be the way to tell it to act.", "环境变量不是配置，结果没有保存；让它行动的合适方式是 `{mode}`。";
    model_silent(): "It does not answer, so nothing else was asked.", "它没有回答，后面的就没有再问。";
    model_refuses(parameter, words): "  refuses `{parameter}`: {words}", "  不接受 `{parameter}`：{words}";
    verdict_yes(): "yes", "会";
    verdict_no(): "no", "不会";
    verdict_unclear(): "unclear", "不清楚";
    ability_chat(): "chat", "对话";
    ability_streaming(): "streaming", "流式输出";
    ability_native_tools(): "native tools", "原生工具";
    ability_forced_tool(): "forced tool", "指定工具";
    ability_parallel_calls(): "parallel calls", "并行调用";
    ability_json_schema(): "JSON schema", "JSON schema";
    ability_json_object(): "JSON object", "JSON 对象";
    ability_reasoning(): "reasoning", "推理";
    ability_usage(): "token counts", "词元计数";
    ability_cached_tokens(): "cached tokens", "缓存词元";
    ability_context_size(): "context size", "上下文大小";
    servers_none(): "No model server answers at the usual ports of this machine; name one with `quire model add --url`.", "本机常用端口上没有模型服务；请用 `quire model add --url` 指定。";
    model_line(name, model, url, default): "{name}: {model} at {url}{default}", "{name}：{url} 上的 {model}{default}";
    model_default(): " (used where nothing else is said)", "（没有指定时使用）";
    model_context(tokens, mode, tested): "  context {tokens} tokens, acts by `{mode}`, {tested}", "  上下文 {tokens} 词元，按 `{mode}` 行动，{tested}";
    model_tested(): "tested", "测试过";
    model_untested(): "not tested yet", "还没有测试";
    key_none(): "no key", "不用密钥";
    key_variable(var): "its key is in the variable {var}", "密钥在变量 {var} 里";
    key_file(): "its key is in a file that only you may read", "密钥在只有你能读的文件里";
    key_keyring(): "its key is in the system's keyring", "密钥在系统钥匙串里";
    model_price(input, cached, output): "  a million tokens cost {input} in, {cached} cached, {output} out", "  每百万词元：输入 {input}，缓存 {cached}，输出 {output}";
}

// What is waited for.
phrases! {
    choose_pack(): "Choose a pack:", "请选一个技能包：";
    agent_wants(skill, reason): "The agent wants {skill} to run: {reason}", "总管想让「{skill}」运行：{reason}";
    it_reads(tags): "  It reads {tags}", "  它会读：{tags}";
    it_writes(tags): "  It writes {tags}", "  它会写：{tags}";
    worker_asks(who): "{who} asks:", "「{who}」想问你：";
    worker_says(who, summary): "{who} says: {summary}", "「{who}」说：{summary}";
    check_fails(check): "check: {check}", "未通过检查：{check}";
    artifact_line(id, skill): "Artifact {id} of {skill}:", "「{skill}」交来的产物 {id}：";
    say_what_to_mend(): "Say what to mend, or decide:", "说说要改什么，或者直接决定：";
    notes_so_far(): "Notes so far:", "已有的修改意见：";
    note_by_check(text): "(check) {text}", "（检查）{text}";
    note_by_review(skill, text): "({skill}) {text}", "（{skill}）{text}";
    label_value_example(): "Label: value", "标签：内容";
    goes_on(): "goes on", "继续";
    stops_it(): "stops it", "停下";
    field_line(label, mark, value): "  {label}{mark}: {value}", "  {label}{mark}：{value}";
    required_mark(): " *", " *";
    cause_failed(message): "failed: {message}", "出错了：{message}";
    cause_stopped(): "stopped by you; retry goes on", "已停下；重试会接着做";
    cause_burst_spent(max): "burst_spent: the agent has used its {max} rounds; retry gives it new ones, or say what you want", "总管连着用完了 {max} 轮；重试会再给它 {max} 轮，也可以直接说你想要什么";
    cause_budget_spent(max, unit, used): "budget_spent: the budget of {max} {unit} is spent ({used} used); raise it with set_budget, then retry", "预算 {max} {unit}已用完（用了 {used}）；提高预算后再重试";
    unit_rounds(): "rounds", "轮";
    unit_tokens(): "tokens", "词元";
    unit_money(): "money", "金额";
    unit_time(): "seconds", "秒";
}

// What is pending, as one clause.
phrases! {
    pending_idle(): "the session has not begun", "会话还没有开始";
    pending_chance(): "chance is at work", "正在抽签掷骰";
    pending_at_work(who): "{who} is at work", "「{who}」正在工作";
    pending_agent(): "the main agent is at work", "总管正在工作";
    pending_done(): "the session is done", "会话已经结束";
    pending_error(reason): "the session can only be read: {reason}", "会话只能查看：{reason}";
    pending_pack(): "a pack is to be chosen", "等你选一个技能包";
    pending_intake(): "the intake waits to be confirmed", "表已填好，等你确认";
    pending_intake_missing(missing): "the intake waits for {missing}", "表里还缺：{missing}";
    pending_input(): "your words are waited for", "等你说话";
    pending_decision(id, skill): "decision {id} waits for approval: run {skill}", "决定 {id} 等你批准：让「{skill}」运行";
    pending_review(artifact): "{artifact} waits for your verdict", "{artifact}等你审阅";
    pending_questions(who): "{who} asks you", "「{who}」在等你回答";
    pending_revision(artifact): "{artifact} waits for an instruction how to mend it", "{artifact}等你说怎么改";
    pending_artifact(id, skill, tags): "artifact {id} of {skill} ({tags})", "「{skill}」的产物 {id}（{tags}）";
    pending_card(id): "; card {id} is open", "；问题卡 {id} 还开着";
    pending_cause(cause): "; {cause}", "；{cause}";
}

// Refusals.
phrases! {
    refused(message): "refused: {message}", "没有执行：{message}";
    refused_pending(pending): "  pending: {pending}", "  现在：{pending}";
    refused_heard(verbs): "  heard now: {verbs}", "  现在可以：{verbs}";
    not_heard(verb): "`{verb}` is not heard now", "现在不能「{verb}」";
    not_pending_decision(named, pending): "decision {named} is not the pending one; decision {pending} is", "决定 {named} 不是眼下这个；眼下是决定 {pending}";
    not_pending_artifact(named, pending): "artifact {named} is not the pending one; artifact {pending} is", "产物 {named} 不是眼下这个；眼下是产物 {pending}";
    not_pending_card(named, pending): "card {named} is not the pending one; card {pending} is", "问题卡 {named} 不是眼下这张；眼下是问题卡 {pending}";
    nothing_said(): "nothing was said", "什么都没有说";
    no_fields_now(): "there are no fields to fill now", "现在没有要填的表";
    no_such_field(field, fields): "there is no field `{field}`; there are: {fields}", "没有「{field}」这一项；有的是：{fields}";
    intake_needs(missing): "the intake still needs: {missing}", "表里还缺：{missing}";
    answer_unknown(question, asked): "there is no question `{question}` on this card; it asks {asked}", "这张卡上没有问题 {question}；有的是 {asked}";
    answer_not_offered(option, question, offered): "`{option}` is not on offer for question `{question}`; choose one of {offered}", "问题 {question} 没有「{option}」这个选项；可选 {offered}";
    answer_rewritten(option, question, label): "option {option} of question `{question}` cannot be rewritten; send it as it is: `{label}`", "问题 {question} 的选项 {option} 不能改写，只能原样用：{label}";
    answer_empty(question): "the answer to question `{question}` is empty; write one, or leave the question out", "问题 {question} 的回答是空的；请写点什么，或者不答这一题";
    answer_twice(question): "question `{question}` is answered twice; send one answer", "问题 {question} 答了两次；只能答一次";
    answer_required_open(questions): "these questions need an answer before work goes on: {questions}", "这些问题必须先回答：{questions}";
    is_table(tag): "`{tag}` is a table; edit one cell of it with edit_cell", "「{tag}」是一张表；请一格一格地改";
    is_no_table(tag): "`{tag}` is not a table; edit it with edit_item", "「{tag}」不是表；请改整段文字";
    is_hidden(tag): "`{tag}` is hidden from you; reveal it first", "「{tag}」对你隐藏着；请先揭示";
    changed_since(tag, newest, base): "`{tag}` was changed since: its newest item is {newest}, not {base}; look at it and edit that one", "「{tag}」后来又变了：最新是条目 {newest}，不是 {base}；请看过再改";
    cell_unknown(key): "the table has no cell `{key}`", "表里没有「{key}」这一格";
    cell_stale(key, rev, value, seen): "cell `{key}` is at revision {rev} with value {value}, not at {seen}; look at it again and name {rev}", "「{key}」已是第 {rev} 版，值为 {value}，不是第 {seen} 版；请再看一眼，按第 {rev} 版来改";
    cell_not_editable(key): "cell `{key}` is not editable", "「{key}」这一格不能改";
    cell_not_yours(key): "cell `{key}` is not yours", "「{key}」这一格不归你";
    same_pack(): "the session has this very version of the pack already", "会话用的就是这一版技能包";
    engine_says(message): "{message}", "引擎的原话（英文）：{message}";
}

// Errors of the program's own.
phrases! {
    error_line(words): "quire: {words}", "quire：{words}";
    no_such_session(id): "there is no session `{id}`; `quire list` shows those there are", "没有会话 `{id}`；`quire list` 列出已有的";
    session_exists(id): "there is a session `{id}` already", "已经有会话 `{id}` 了";
    session_taken(id): "another process has taken over session `{id}`", "会话 `{id}` 已由另一个进程接手";
    no_data_folder(): "this platform has no data folder; give one with --data", "这个系统没有数据文件夹；请用 --data 指定一个";
    write_field_value(given): "`--set {given}`: write FIELD=VALUE", "`--set {given}`：请写成 字段=内容";
    write_question_answer(given): "`{given}`: write QUESTION=ANSWER", "`{given}`：请写成 问题=回答";
    no_such_item(given): "there is no item `{given}`; items have numbers, `quire show` names them", "没有条目 `{given}`；条目用数字编号，`quire show` 会列出";
    no_such_run(given, count): "there is no run `{given}`; the session has had {count}", "没有第 `{given}` 次运行；这个会话一共有 {count} 次";
    no_run_yet(): "no worker has run yet", "还没有执行单元运行过";
    no_pack_yet(): "the session has no pack yet; name one", "会话还没有技能包；请指定一个";
    name_a_limit(): "name a limit: --rounds, --tokens, --money or --time", "请至少写一项上限：--rounds、--tokens、--money 或 --time";
    type_until_end(): "Type the text; end it with Ctrl-D on a line of its own.", "请输入文字；另起一行按 Ctrl-D 结束。";
    model_missing(message): "the session can begin, and before its first model works: {message}", "会话可以开始了，但模型还用不上：{message}";
    no_limit(given): "`{given}` is no limit; see `quire set-budget --help`", "`{given}` 不是有效的上限；见 `quire set-budget --help`";
    pack_binds(profile, message): "the pack binds the profile `{profile}`: {message}", "技能包绑定了模型配置 `{profile}`：{message}";
    bad_tag(tag, error): "{error}", "`{tag}` 不是合法的标签：{error}";
    stdin_unreadable(): "the text on stdin cannot be read", "标准输入读不出来";
    prompt_hidden(run, id): "the prompt of run {run} holds texts that are hidden from you; `quire reveal {id}` shows them", "第 {run} 次运行的提示词里有对你隐藏的文字；`quire reveal {id}` 会揭示";
}

// What a worker got to see.
phrases! {
    run_head(run, who, tokens, budget): "Run {run}: {who}, {tokens} tokens of {budget}", "第 {run} 次运行：「{who}」，{tokens} / {budget} 词元";
    run_stable(tokens, bytes): "The same from run to run: {tokens} tokens ({bytes} bytes of segments)", "每次都相同的开头：{tokens} 词元（其中段占 {bytes} 字节）";
    run_differs(run, segment, tokens, held): "Differs from run {run} first in {segment}, after {tokens} tokens: {held}", "与第 {run} 次运行相比，从 {segment} 开始不同，之前 {tokens} 词元相同：{held}";
    prefix_held(): "the stable beginning has held", "固定的开头没有变";
    prefix_broken(): "a part that should stay the same has changed", "本该不变的部分变了";
    segment_tokens(tokens): "{tokens} tokens", "{tokens} 词元";
    segment_cut(): ", cut", "，有截断";
    segment_item(tag, item): "      {tag}: item {item}", "      {tag}：条目 {item}";
    segment_items(tag, count, first, last): "      {tag}: {count} items, {first} to {last}", "      {tag}：{count} 个条目，{first} 至 {last}";
    left_out(): "Left out:", "没有给它看的：";
    omitted_isolation(): "the skill's isolation keeps it away", "这项技能的隔离规则不许看";
    omitted_policy(): "the segment's policy shows less than there is", "这一段的策略只取一部分";
    omitted_budget(): "no room", "放不下";
    omitted_not_accepted(): "not a fact (yet)", "还没有确认";
    omitted_no_match(): "nothing has such a tag", "没有这样的标签";
    omitted_shown_above(): "a segment above shows it", "前面的段已经给了";
}

// The journal, a record a line.
phrases! {
    record_started(title): "started {title}", "开始 {title}";
    record_user(verb): "user {verb}", "用户 {verb}";
    record_drew(seed): "drew by seed {seed}", "掷骰，种子 {seed}";
    record_asked(model, who, call, attempt): "asked {model} for {who}, call {call}, attempt {attempt}", "为{who}请求 {model}，调用 {call}，第 {attempt} 次";
    record_agent(): "agent", "总管";
    record_replied(call, said, usage): "reply to call {call}: {said}, {usage}", "调用 {call} 有了回复：{said}，{usage}";
    record_text(): "text", "文字";
    record_failed(call, message): "call {call} failed: {message}", "调用 {call} 失败：{message}";
    record_over(call, cause): "call {call} is over: {cause}", "调用 {call} 已作废：{cause}";
}

// Work as it goes on.
phrases! {
    works(who, round): "{who}, round {round}", "{who}，第 {round} 轮";
    works_again(attempt): ", attempt {attempt}", "，第 {attempt} 次尝试";
    works_hidden(): " (its text is hidden from you)", "（内容对你隐藏）";
    works_done(seconds): "done in {seconds} s", "用时 {seconds} 秒";
    works_elapsed(seconds): "{seconds} s", "{seconds} 秒";
    works_thinking(characters): "thinking, {characters} characters", "思考中，{characters} 字";
    works_stop_key(): "Ctrl-C stops it", "Ctrl-C 停下";
    works_retry(message, seconds): "{message}; again in {seconds} s", "{message}；{seconds} 秒后再试";
}

// Packs.
phrases! {
    pack_unusable(errors): "the pack cannot be used:\n{errors}", "这个技能包不能用：\n{errors}";
    pack_counts(en_errors, en_warnings, errors, warnings): "{en_errors}, {en_warnings}", "{errors} 个错误，{warnings} 个警告";
    help_line(help): "  help: {help}", "  建议：{help}";
}

// The chat.
phrases! {
    chat_opened(id): "Session {id}. Type your words, or /help.", "会话 {id}。直接说话，或输入 /帮助。";
    chat_left(id): "The session stays where it is; `quire chat {id}` comes back to it.", "会话停在这里；`quire chat {id}` 可以回来。";
    chat_ended(id): "`quire show {id}` shows what came of it.", "`quire show {id}` 查看全部结果。";
    chat_options_of_new(id): "session `{id}` is there already; --title, --model and --burst are for a new one", "会话 `{id}` 已经在了；--title、--model、--burst 只用于新会话";
    chat_now(): "Now: ", "现在可以：";
    chat_words_input(): "your words", "直接说话";
    chat_words_intake(): "`Label: value` lines", "按「标签：内容」一行一项填写";
    chat_words_reason(): "words: why not", "直接说为什么不";
    chat_words_reject(): "words: what to change", "直接说要改什么";
    chat_words_instruction(): "words: what to mend", "直接说怎么改";
    chat_no_such_command(given): "there is no command {given}; /help lists them", "没有命令 {given}；/帮助 会列出全部";
    chat_needs(usage): "write: {usage}", "请写成：{usage}";
    chat_nothing_typed(): "Type something, or /help.", "请输入点什么，或者 /帮助。";
    chat_changes(tag, before): "Changes in {tag} since item {before}", "{tag} 的改动（对照条目 {before}）";
    chat_no_changes(tag, before): "{tag} is the same as item {before}", "{tag} 与条目 {before} 相同";
    chat_unchanged_lines(count): "⋯ {count} unchanged", "⋯ {count} 段未变";
    chat_edit_ask(tag): "Write the new text of {tag}; a line \"\"\" begins and ends a longer one:", "写下 {tag} 的新内容；长文用 \"\"\" 开头和结尾：";
    chat_edit_same(): "The text is as it was; nothing was sent.", "内容没有变，什么也没有发。";
    chat_editor_failed(editor, error): "the editor `{editor}` did not work: {error}; set EDITOR to another", "编辑器 `{editor}` 没有用成：{error}；可以用 EDITOR 换一个";
    chat_board_empty(): "The blackboard is empty.", "黑板还是空的。";
    chat_no_such_tag(tag, tags): "nothing is written under `{tag}`; there are: {tags}", "「{tag}」下没有内容；已有：{tags}";
    chat_item_head(tag, state, item): "{tag} · {state} · item {item}", "{tag} · {state} · 条目 {item}";
    chat_row_yours(): "yours", "归你";
    chat_demo(): "This is the built-in demo. No model is asked: what the agent and the workers say here comes from a script.", "这是内置演示。没有请求任何模型：总管和执行单元说的话都来自剧本。";
    chat_demo_real(id, folder): "Everything else is real: session {id} lies in {folder}.", "其余都是真的：会话 {id} 存放在 {folder}。";
    chat_suggestion(line): "Enter alone takes the script's line: {line}", "直接回车采用剧本里的一句：{line}";
    chat_done(): "Done.", "好了。";
    chat_kept(characters): "{characters} characters that had come are kept; /log shows them.", "已写出的 {characters} 字都留着，/日志 可以看到。";
    chat_incomplete(call): "Left unfinished, call {call}:", "调用 {call} 没写完的：";
    chat_gone_on(): "Something happened in the meantime; this is where it stands now.", "这期间有了新变化；现在的情形如下。";
    demo_footer(id): "\nquire show {id}      shows where it stands\nquire journal {id}   shows every step\nquire context {id}   shows what the last worker got to see", "\nquire show {id}      查看现在的情形\nquire journal {id}   查看每一步\nquire context {id}   查看最后一个执行单元看到了什么";
}

// Question cards.
phrases! {
    card_page(page, pages): "Question {page}/{pages}", "问题 {page}/{pages}";
    card_one(): "Question", "问题";
    card_required(): "must be answered", "必答";
    card_other(text): "own words: {text}", "自己的话：{text}";
    card_fixed(): "(fixed)", "（不可改写）";
    card_keys_letters(): "a letter chooses", "字母选择";
    card_keys_edit(): "`e A` edits it first", "e A 改写后选用";
    card_keys_other(): "or write your own answer", "也可以自己写";
    card_keys_open(): "write your answer", "写下回答";
    card_keys_continue(): "Enter goes on", "回车继续";
    card_keys_send(): "Enter sends", "回车发送";
    card_keys_skip(): "`s` skips", "s 跳过";
    card_keys_back(): "`<` goes back", "< 返回上一题";
    card_choose_first(): "Choose a letter or write an answer first.", "请先选一项，或写下回答。";
    card_must_be_answered(): "This question must be answered; it cannot be skipped.", "这一题必须回答，不能跳过。";
    card_only_options(offered): "only the options are welcome here: {offered}", "这一题只能选：{offered}";
    card_not_editable(option): "option {option} cannot be rewritten", "选项 {option} 不能改写";
    card_edit_now(option): "Write the new text of option {option}:", "写下选项 {option} 的新内容：";
    card_in_review(): "Questions with it (all optional; /answer begins):", "附带的问题（都可不答；/回答 开始作答）：";
    card_first_page(): "This is the first question.", "已经是第一题了。";
}

#[cfg(test)]
mod tests {
    use super::Lang;

    #[test]
    fn the_locale_names_the_language() {
        for (name, lang) in [
            ("zh_CN.UTF-8", Lang::Zh),
            ("zh-Hant", Lang::Zh),
            ("en_GB.UTF-8", Lang::En),
            ("C", Lang::En),
            ("de_DE", Lang::En),
            ("", Lang::En),
        ] {
            assert_eq!(Lang::of_locale_name(name), lang, "{name}");
        }
    }
}
