//! Where the usual providers are. What stands here is a beginning: a probe finds out the rest.

use super::Kind;
use crate::providers::tool_mode::ToolMode;

/// A provider or a server as it usually is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it speaks.
    pub kind: Kind,
    /// Where it is.
    pub base_url: &'static str,
    /// The variable that usually holds its key; none for servers that want none.
    pub key_var: Option<&'static str>,
    /// The context of its usual models in tokens.
    pub context_tokens: u32,
    /// Whether reasoning goes back with the calls it led to.
    pub echo_reasoning: bool,
    /// What its models usually can.
    pub tool_mode: ToolMode,
    /// The port of a server on this machine.
    pub local_port: Option<u16>,
}

const CLOUD: Preset = Preset {
    name: "",
    kind: Kind::OpenAi,
    base_url: "",
    key_var: None,
    context_tokens: 128_000,
    echo_reasoning: false,
    tool_mode: ToolMode::Native,
    local_port: None,
};

/// A server on the user's own machine; what is loaded there decides, so little is assumed.
const LOCAL: Preset = Preset { context_tokens: 8_192, tool_mode: ToolMode::JsonSchema, ..CLOUD };

/// All of them, clouds first.
pub const PRESETS: [Preset; 13] = [
    Preset { name: "openai", base_url: "https://api.openai.com/v1", key_var: Some("OPENAI_API_KEY"), ..CLOUD },
    Preset {
        name: "anthropic",
        kind: Kind::Anthropic,
        base_url: "https://api.anthropic.com/v1",
        key_var: Some("ANTHROPIC_API_KEY"),
        context_tokens: 200_000,
        ..CLOUD
    },
    Preset {
        name: "gemini",
        kind: Kind::Gemini,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        key_var: Some("GEMINI_API_KEY"),
        context_tokens: 1_000_000,
        ..CLOUD
    },
    Preset {
        name: "deepseek",
        base_url: "https://api.deepseek.com/v1",
        key_var: Some("DEEPSEEK_API_KEY"),
        echo_reasoning: true,
        ..CLOUD
    },
    Preset { name: "openrouter", base_url: "https://openrouter.ai/api/v1", key_var: Some("OPENROUTER_API_KEY"), ..CLOUD },
    Preset {
        name: "moonshot",
        base_url: "https://api.moonshot.ai/v1",
        key_var: Some("MOONSHOT_API_KEY"),
        echo_reasoning: true,
        ..CLOUD
    },
    Preset { name: "glm", base_url: "https://open.bigmodel.cn/api/paas/v4", key_var: Some("ZHIPUAI_API_KEY"), ..CLOUD },
    Preset {
        name: "qwen",
        base_url: "https://dashscope.aliyuncs.com/compatible-mode/v1",
        key_var: Some("DASHSCOPE_API_KEY"),
        ..CLOUD
    },
    Preset { name: "ollama", base_url: "http://127.0.0.1:11434/v1", local_port: Some(11_434), ..LOCAL },
    Preset { name: "lmstudio", base_url: "http://127.0.0.1:1234/v1", local_port: Some(1_234), ..LOCAL },
    Preset { name: "llamacpp", base_url: "http://127.0.0.1:8080/v1", local_port: Some(8_080), ..LOCAL },
    Preset { name: "vllm", base_url: "http://127.0.0.1:8000/v1", local_port: Some(8_000), ..LOCAL },
    Preset {
        name: "koboldcpp",
        base_url: "http://127.0.0.1:5001/v1",
        local_port: Some(5_001),
        tool_mode: ToolMode::Text,
        ..LOCAL
    },
];

/// Finds a preset by its name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
