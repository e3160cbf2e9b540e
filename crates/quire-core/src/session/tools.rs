//! The tools the models are told of, and the reading of their arguments.
//!
//! A tool's JSON Schema here is both what the model is shown and what its arguments are held against.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::message::{ToolCall, ToolSpec};
use crate::question::{Question, read_questions};
use crate::reply;

/// What the main agent may call, in the order it is told of them.
///
/// The set is fixed for a session's whole life, so that the provider's cache holds; `declare_instance_ready` is only there
/// where the pack has a design stage.
pub(super) static AGENT_TOOLS: [ToolSpec; 11] = [
    ToolSpec {
        name: "read_blackboard",
        description: "Reads texts from the blackboard, with state and item number. Patterns: an exact tag; `a.*` for a and everything below; `a.*.b` for one part; `**` for all.",
        parameters: r#"{"type":"object","properties":{"tags":{"type":"array","items":{"type":"string"},"minItems":1,"description":"Tags or patterns."}},"required":["tags"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "list_workers",
        description: "Lists the skills that can run in this stage: what each does, reads and writes, and which required tags are missing.",
        parameters: r#"{"type":"object","properties":{},"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "list_artifacts",
        description: "Lists what workers have handed in: id, skill, state, tags, summary.",
        parameters: r#"{"type":"object","properties":{},"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "delegate_task",
        description: "Has a sub-agent dig into one question in the background, with tools for search and the like. It sees nothing of this session: put everything it has to know into `task`. You go on at once; you are told when there is a result, and read it with `read_blackboard` under `委托.<taskId>.结果`.",
        parameters: r#"{"type":"object","properties":{"task":{"type":"string","minLength":1,"description":"The question, with all that is needed to answer it."},"title":{"type":"string","description":"A name for the user."}},"required":["task"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "cancel_delegate_task",
        description: "Ends a delegated task; what it has found until then is kept.",
        parameters: r#"{"type":"object","properties":{"taskId":{"type":["string","integer"]}},"required":["taskId"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "list_delegated_tasks",
        description: "Lists delegated tasks: id, title, state, what each has used, where its result is.",
        parameters: r#"{"type":"object","properties":{},"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "run_worker",
        description: "Lets one skill work. What it reads and writes is declared in the pack and cannot be given here. Ends your turn until there is an outcome.",
        parameters: r#"{"type":"object","properties":{"workerId":{"type":"string","description":"The skill's id."},"reason":{"type":"string","description":"Why this skill, now; for the user, not for the worker."},"requiresApproval":{"type":"boolean","description":"Whether the user is asked before it runs."},"roleId":{"type":"string","description":"The role it works for, where the skill needs one."}},"required":["workerId","reason","requiresApproval"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "ask_user",
        description: "Speaks to the user and waits for them: an assessment, and questions where some are open. The user may answer, skip, or say something else.",
        parameters: r#"{"type":"object","properties":{"assessment":{"type":"string","description":"What you have to say."},"questions":{"type":"array","items":{"type":"object","properties":{"prompt":{"type":"string"},"options":{"type":"array","items":{"type":"string"}},"allowOther":{"type":"boolean"},"required":{"type":"boolean"}},"required":["prompt"]}}},"required":["assessment"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "review_blackboard",
        description: "Shows the user where things stand, in your words, and waits for them.",
        parameters: r#"{"type":"object","properties":{"summary":{"type":"string"}},"required":["summary"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "finish",
        description: "Ends the session for good, when everything the user wants is done.",
        parameters: r#"{"type":"object","properties":{"reason":{"type":"string"}},"required":["reason"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "declare_instance_ready",
        description: "Ends the design stage, when everything play needs is accepted. Name design skills that are left out on purpose, each with the reason.",
        parameters: r#"{"type":"object","properties":{"reason":{"type":"string"},"skipped":{"type":"array","items":{"type":"object","properties":{"skillId":{"type":"string"},"reason":{"type":"string"}},"required":["skillId","reason"],"additionalProperties":false}}},"required":["reason"],"additionalProperties":false}"#,
    },
];

/// What a worker may call.
pub(super) static WORKER_TOOLS: [ToolSpec; 2] = [
    ToolSpec {
        name: "submit",
        description: "Hands in your work: each text under one of your output tags, whole. Ends your run.",
        parameters: r#"{"type":"object","properties":{"outputs":{"type":"object","description":"The whole text of each output tag, by tag.","additionalProperties":{"type":"string"}},"summary":{"type":"string","description":"One or two sentences on what you made or changed."},"questions":{"type":"array","items":{"type":"object","properties":{"prompt":{"type":"string"},"options":{"type":"array","items":{"type":"string"}},"allowOther":{"type":"boolean"},"required":{"type":"boolean"}},"required":["prompt"]},"description":"What you would like to know for the next version."}},"required":["outputs"],"additionalProperties":false}"#,
    },
    ToolSpec {
        name: "ask_user",
        description: "Asks the user, when you cannot work without an answer. Hands nothing in; you go on when they have answered.",
        parameters: r#"{"type":"object","properties":{"questions":{"type":"array","minItems":1,"items":{"type":"object","properties":{"prompt":{"type":"string"},"options":{"type":"array","items":{"type":"string"}},"allowOther":{"type":"boolean"},"required":{"type":"boolean"}},"required":["prompt"]}}},"required":["questions"],"additionalProperties":false}"#,
    },
];

/// One call of the main agent, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AgentCall {
    /// The loop goes on.
    Loop(LoopCall),
    /// The loop ends, if it is taken.
    Boundary(BoundaryCall),
}

/// A call whose result is appended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LoopCall {
    ReadBlackboard { tags: Vec<String> },
    ListWorkers,
    ListArtifacts,
    DelegateTask { task: String, title: String },
    CancelTask { task: String },
    ListTasks,
}

/// A call that ends the loop.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum BoundaryCall {
    RunWorker(RunWorker),
    AskUser { assessment: String, questions: Vec<Question> },
    ReviewBlackboard { summary: String },
    DeclareInstanceReady(DeclareReady),
    Finish { reason: String },
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunWorker {
    pub worker_id: String,
    pub reason: String,
    pub requires_approval: bool,
    pub role_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct DeclareReady {
    pub reason: String,
    #[serde(default)]
    pub skipped: Vec<Skipped>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Skipped {
    pub skill_id: String,
    pub reason: String,
}

/// One call of a worker, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum WorkerCall {
    Submit { outputs: BTreeMap<String, String>, summary: String, questions: Vec<Question> },
    AskUser { questions: Vec<Question> },
}

/// Says whether a tool ends the main agent's loop, whatever its arguments.
pub(super) fn is_boundary(name: &str) -> bool {
    matches!(name, "run_worker" | "ask_user" | "review_blackboard" | "declare_instance_ready" | "finish")
}

/// Reads a call of the main agent, or says what the model has to mend.
pub(super) fn read_agent_call(tools: &[&ToolSpec], call: &ToolCall, was_cut: bool) -> Result<AgentCall, String> {
    let spec = find(tools, &call.name)?;
    let mut arguments = reply::arguments(&call.arguments, was_cut)?.value;
    // First of all: a worker's tags are the pack's to declare, whatever else is wrong with the call.
    if let Some(key) = ["inputTags", "outputTags", "input_tags", "output_tags"].iter().find(|key| arguments.contains_key(**key)) {
        return Err(format!(
            "the main agent brings no inputTags or outputTags: leave out `{key}`; the pack declares what a skill reads and writes"
        ));
    }
    let questions = take_questions(&mut arguments);
    check(spec, &arguments)?;
    Ok(match spec.name {
        "read_blackboard" => {
            let tags = arguments.remove("tags").unwrap_or_default();
            AgentCall::Loop(LoopCall::ReadBlackboard { tags: typed(tags)? })
        }
        "list_workers" => AgentCall::Loop(LoopCall::ListWorkers),
        "list_artifacts" => AgentCall::Loop(LoopCall::ListArtifacts),
        "delegate_task" => {
            AgentCall::Loop(LoopCall::DelegateTask { task: text(&arguments, "task"), title: text(&arguments, "title") })
        }
        "cancel_delegate_task" => {
            let task = arguments.get("taskId").map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
            AgentCall::Loop(LoopCall::CancelTask { task: task.unwrap_or_default() })
        }
        "list_delegated_tasks" => AgentCall::Loop(LoopCall::ListTasks),
        "run_worker" => AgentCall::Boundary(BoundaryCall::RunWorker(typed(arguments.into())?)),
        "ask_user" => AgentCall::Boundary(BoundaryCall::AskUser { assessment: text(&arguments, "assessment"), questions }),
        "review_blackboard" => AgentCall::Boundary(BoundaryCall::ReviewBlackboard { summary: text(&arguments, "summary") }),
        "declare_instance_ready" => AgentCall::Boundary(BoundaryCall::DeclareInstanceReady(typed(arguments.into())?)),
        "finish" => AgentCall::Boundary(BoundaryCall::Finish { reason: text(&arguments, "reason") }),
        other => unreachable!("`{other}` is in the list and has no arm"),
    })
}

/// Reads a call of a worker, or says what the model has to mend.
pub(super) fn read_worker_call(call: &ToolCall, was_cut: bool) -> Result<WorkerCall, String> {
    let tools: Vec<&ToolSpec> = WORKER_TOOLS.iter().collect();
    let spec = find(&tools, &call.name)?;
    let mut arguments = reply::arguments(&call.arguments, was_cut)?.value;
    let questions = take_questions(&mut arguments);
    match spec.name {
        "submit" => {
            if let Some(Value::Object(outputs)) = arguments.get_mut("outputs") {
                // As in a reply without a call: null is no output.
                outputs.retain(|_, text| !text.is_null());
                outputs.values_mut().for_each(write_as_text);
            }
            check(spec, &arguments)?;
            let outputs = typed(arguments.get("outputs").cloned().unwrap_or_default())?;
            Ok(WorkerCall::Submit { outputs, summary: text(&arguments, "summary"), questions })
        }
        "ask_user" => {
            check(spec, &arguments)?;
            if questions.is_empty() {
                return Err("`ask_user` holds no question; ask at least one, or `submit` your work".to_owned());
            }
            Ok(WorkerCall::AskUser { questions })
        }
        other => unreachable!("`{other}` is in the list and has no arm"),
    }
}

fn find<'a>(tools: &[&'a ToolSpec], name: &str) -> Result<&'a ToolSpec, String> {
    tools.iter().find(|tool| tool.name == name).copied().ok_or_else(|| {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
        format!("there is no tool `{name}`; there are: {}", names.join(", "))
    })
}

// Cards are read leniently (SPEC §8), so they do not take part in the strict check.
fn take_questions(arguments: &mut Map<String, Value>) -> Vec<Question> {
    arguments.remove("questions").map(|questions| read_questions(&questions)).unwrap_or_default()
}

/// What each tool's arguments are held against, by the tool's schema; made once, since making one takes longer than a check.
static VALIDATORS: LazyLock<BTreeMap<&str, Validator>> = LazyLock::new(|| {
    let specs = AGENT_TOOLS.iter().chain(&WORKER_TOOLS);
    specs.map(|spec| (spec.parameters, validator(spec))).collect()
});

fn validator(spec: &ToolSpec) -> Validator {
    let mut schema: Value = serde_json::from_str(spec.parameters).expect("a tool's schema is JSON");
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        // They have been taken out by now.
        required.retain(|name| name != "questions");
    }
    jsonschema::validator_for(&schema).expect("a tool's schema is one")
}

fn check(spec: &ToolSpec, arguments: &Map<String, Value>) -> Result<(), String> {
    let validator = &VALIDATORS[spec.parameters];
    let mut faults: Vec<String> = (validator.iter_errors(&Value::Object(arguments.clone())))
        .map(|error| match error.instance_path().to_string() {
            path if path.is_empty() => error.to_string(),
            path => format!("{path}: {error}"),
        })
        .collect();
    if faults.is_empty() {
        return Ok(());
    }
    faults.sort();
    Err(format!("the arguments of `{}` do not fit: {}; nothing was done", spec.name, faults.join("; ")))
}

// Models that are asked for JSON in a text often write the JSON itself; it means the same.
fn write_as_text(value: &mut Value) {
    if !value.is_string() {
        *value = Value::String(value.to_string());
    }
}

fn text(arguments: &Map<String, Value>, name: &str) -> String {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| format!("the arguments do not fit: {error}"))
}
