//! Tool servers that behave badly, each a few lines of shell: what is said, and that the others go on.

use std::time::Duration;

use expect_test::{Expect, expect};
use quire_adapters::tools::mcp::McpTools;
use quire_adapters::tools::mcp::config::{ConfigError, FILE, ServerConfig, ToolsConfig};
use quire_core::deep_task::{BackgroundTools, HostTool, ToolEffect};
use quire_runtime::ports::{RuntimeContext, ToolHost as _};
use serde_json::{Map, json};

/// What a server does besides the handshake.
struct Script<'a> {
    /// Run once, at the start.
    start: &'a str,
    /// Answers `tools/list`; `reply` gives a result.
    list: &'a str,
    /// Answers `tools/call`.
    call: &'a str,
}

const ONE_TOOL: &str =
    r#"reply '{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}'"#;
const FINE: &str = r#"reply '{"content":[{"type":"text","text":"seen"}]}'"#;
const GOOD: Script<'_> = Script { start: "", list: ONE_TOOL, call: FINE };

impl Script<'_> {
    fn server(&self, name: &str) -> ServerConfig {
        let Self { start, list, call } = self;
        let script = format!(
            r#"
            reply() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
            {start}
            while read -r line; do
                id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
                case "$line" in
                    *'"server/discover"'*) printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"what?"}}}}\n' "$id" ;;
                    *'"initialize"'*) reply '{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"shell","version":"1"}}}}' ;;
                    *'"tools/list"'*) {list} ;;
                    *'"tools/call"'*) {call} ;;
                esac
            done
            "#
        );
        let mut server = ServerConfig::program(name, "sh", &["-c", &script]);
        server.timeout_ms = 3_000;
        server
    }
}

async fn call(host: &McpTools, tool: &HostTool) -> String {
    let result = host.call(tool, &Map::new()).await;
    format!("{}{}", if result.is_error { "error: " } else { "" }, result.text)
}

/// Lists a server's tools beside a good one's, calls the first of each, and shows what a deep task would see.
async fn check(script: Script<'_>, expected: Expect) {
    let host = McpTools::new(vec![script.server("bad"), GOOD.server("good")]);
    let toolbox = host.tools(RuntimeContext::Background).await;
    let (tools, left_out) = BackgroundTools::of(toolbox.tools);
    let mut seen = String::new();
    for fault in toolbox.faults.iter().chain(&left_out) {
        seen.push_str(&format!("{fault}\n"));
    }
    let of = |server: &str| tools.iter().filter(|tool| tool.server == server).cloned().collect::<Vec<_>>();
    seen.push_str(&format!("{} tools\n", of("bad").len()));
    for tool in of("bad").iter().take(1) {
        seen.push_str(&format!("{}: {}\n", tool.name, call(&host, tool).await));
    }
    let good = of("good");
    assert_eq!(call(&host, &good[0]).await, "seen", "the other server goes on");
    host.close().await;
    expected.assert_eq(&seen);
}

#[tokio::test]
async fn one_that_ends_at_once_is_told_with_its_last_words() {
    let script = Script { start: "echo 'no licence' >&2; exit 3", ..GOOD };
    check(
        script,
        expect![[r#"
        the tool server `bad`: it ended before it said what it is; it said: no licence
        0 tools
    "#]],
    )
    .await;
}

#[tokio::test]
async fn what_is_printed_between_answers_does_no_harm() {
    let script = Script {
        start: "echo Welcome; echo '{}'; echo",
        call: r#"echo thinking; reply '{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}'"#,
        ..GOOD
    };
    check(
        script,
        expect![[r#"
        1 tools
        bad_look: a

        b
    "#]],
    )
    .await;
}

#[tokio::test]
async fn one_that_answers_another_call_times_out() {
    let script = Script { call: r#"id=999; reply '{"content":[]}'"#, ..GOOD };
    check(
        script,
        expect![[r#"
        1 tools
        bad_look: error: `look` of bad gave no answer within 3 s; it was cancelled
    "#]],
    )
    .await;
}

#[tokio::test]
async fn one_that_dies_in_a_call_is_told_and_started_again() {
    let script = Script { call: "echo 'out of memory' >&2; exit 9", ..GOOD };
    check(
        script,
        expect![[r#"
        1 tools
        bad_look: error: the tool server `bad`: it went away in the middle of a call; it said: out of memory
    "#]],
    )
    .await;
    let host = McpTools::new(vec![Script { call: "exit 9", ..GOOD }.server("bad")]);
    let tool = host.tools(RuntimeContext::Background).await.tools.remove(0);
    for _ in 0..2 {
        assert_eq!(call(&host, &tool).await, "error: the tool server `bad`: it went away in the middle of a call");
    }
    host.close().await;
}

#[tokio::test]
async fn a_huge_result_is_cut_and_said_so() {
    let start = r#"huge=$(printf '灯%.0s' $(seq 50000))"#;
    let script = Script { start, call: r#"reply "{\"content\":[{\"type\":\"text\",\"text\":\"$huge\"}]}""#, ..GOOD };
    let host = McpTools::new(vec![script.server("bad")]);
    let tool = host.tools(RuntimeContext::Background).await.tools.remove(0);
    let text = call(&host, &tool).await;
    assert!(text.starts_with("灯灯"));
    assert!(text.ends_with("灯\n\n(cut here: the result has 50000 characters, the first 40000 are shown)"));
    host.close().await;
}

#[tokio::test]
async fn what_is_no_text_is_left_out_by_name_and_nothing_is_nothing() {
    let parts = r#"reply '{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"resource","resource":{"uri":"file:///b","text":"bee"}}]}'"#;
    check(
        Script { call: parts, ..GOOD },
        expect![[r#"
        1 tools
        bad_look: (an image (image/png, 1 kB) is left out: only text can be read here)

        file:///a: a

        file:///b:
        bee
    "#]],
    )
    .await;
    check(
        Script { call: r#"reply '{"content":[],"isError":true}'"#, ..GOOD },
        expect![[r#"
        1 tools
        bad_look: error: 
    "#]],
    )
    .await;
    check(
        Script { call: r#"reply '{"content":[],"structuredContent":{"a":1}}'"#, ..GOOD },
        expect![[r#"
        1 tools
        bad_look: {"a":1}
    "#]],
    )
    .await;
}

#[tokio::test]
async fn tools_that_cannot_be_offered_are_left_out_by_name() {
    let list = r#"reply '{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"odd","inputSchema":{"type":"no such type"},"annotations":{"readOnlyHint":true}},{"name":"acts","inputSchema":{"type":"object"}},{"name":"灯","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"submit","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}'"#;
    check(Script { list, ..GOOD }, expect![[r#"
        the tool `bad_look` of bad is left out: another tool has the same name
        the tool `odd` of bad is left out: the schema of its arguments is none: "no such type" is not valid under any of the schemas listed in the 'anyOf' keyword
        3 tools
        bad_look: seen
    "#]]).await;
}

#[tokio::test]
async fn five_hundred_tools_are_too_many() {
    let list = r#"tools=$(seq 500 | sed 's/.*/{"name":"t&","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}/' | paste -sd,); reply "{\"tools\":[$tools]}""#;
    let host = McpTools::new(vec![Script { list, ..GOOD }.server("bad")]);
    let toolbox = host.tools(RuntimeContext::Background).await;
    assert_eq!(toolbox.tools.len(), 500);
    let (tools, left_out) = BackgroundTools::of(toolbox.tools);
    assert_eq!((tools.iter().count(), left_out.len()), (128, 372));
    assert!(left_out[0].contains("of bad is left out: models take 128 tools at most"), "{}", left_out[0]);
    host.close().await;
}

#[tokio::test]
async fn one_that_asks_the_user_is_told_that_nobody_is_there() {
    let asks = r#"printf '{"jsonrpc":"2.0","id":77,"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}\n'; call=$id; read -r answer; id=$call; reply "{\"content\":[{\"type\":\"text\",\"text\":\"$(printf '%s' "$answer" | tr -d '"')\"}]}""#;
    check(
        Script { call: asks, ..GOOD },
        expect![[r#"
        1 tools
        bad_look: {jsonrpc:2.0,id:77,error:{code:-32600,message:input from the user is not available in the background}}
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_program_and_what_it_started_end_with_the_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pid");
    let start = format!("sleep 1000 & echo $! > {}", file.display());
    let host = McpTools::new(vec![Script { start: &start, ..GOOD }.server("bad")]);
    assert_eq!(host.tools(RuntimeContext::Background).await.tools.len(), 1);
    let pid = std::fs::read_to_string(&file).expect("it was started");
    let lives = || std::path::Path::new(&format!("/proc/{}/cmdline", pid.trim())).exists() && !is_zombie(pid.trim());
    assert!(lives());
    host.close().await;
    for _ in 0..200 {
        if !lives() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("process {pid} outlived its host");
}

fn is_zombie(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

#[tokio::test]
async fn two_servers_with_one_tool_name_have_two_names() {
    let host = McpTools::new(vec![GOOD.server("one"), GOOD.server("two")]);
    let toolbox = host.tools(RuntimeContext::Background).await;
    let names: Vec<&str> = toolbox.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["one_look", "two_look"]);
    assert_eq!(call(&host, &toolbox.tools[1]).await, "seen");
    host.close().await;
}

#[tokio::test]
async fn a_ticked_tool_may_act_and_its_annotations_say_what_may_be_repeated() {
    let list = r#"reply '{"tools":[{"name":"put","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}},{"name":"send","inputSchema":{"type":"object"}}]}'"#;
    let mut server = Script { list, ..GOOD }.server("bad");
    server.ticked.extend(["send".to_owned(), "put".to_owned()]);
    let host = McpTools::new(vec![server]);
    let tools = host.tools(RuntimeContext::Background).await.tools;
    let effects: Vec<(&str, ToolEffect)> = tools.iter().map(|tool| (tool.name.as_str(), tool.effect)).collect();
    assert_eq!(effects, [("put", ToolEffect::Idempotent), ("send", ToolEffect::Acts)]);
    assert_eq!(host.tools(RuntimeContext::Foreground).await.tools, vec![], "it is for deep tasks only");
    host.close().await;
}

#[test]
fn the_configuration_is_written_whole_and_what_cannot_be_read_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = ToolsConfig::default();
    config.servers.push(ServerConfig::program("files", "npx", &["server-filesystem", "/tmp"]));
    config.servers.push(ServerConfig::url("web", "http://127.0.0.1:1/mcp"));
    config.save(folder.path()).expect("it can be written");
    assert_eq!(ToolsConfig::load(folder.path()).expect("it can be read"), config);
    let files: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(files.len(), 1, "no half file is left");

    let file = folder.path().join(FILE);
    std::fs::write(&file, r#"{"servers":[{"name":"files","comand":"npx"}]}"#).expect("it can be spoiled");
    let error = ToolsConfig::load(folder.path()).expect_err("a misspelt field is no field");
    assert!(matches!(error, ConfigError::Content { .. }), "{error}");
    assert!(error.to_string().contains("unknown field `comand`"), "{error}");

    for bad in
        [ServerConfig::program("Big Name", "x", &[]), ServerConfig::program("x", " ", &[]), ServerConfig::url("x", "ftp://x")]
    {
        let config = ToolsConfig { servers: vec![bad], ..ToolsConfig::default() };
        config.check().expect_err("it cannot be used");
    }
    assert_eq!(serde_json::to_value(ToolsConfig::default()).expect("JSON")["deep_task"]["max_rounds"], json!(24));
}
