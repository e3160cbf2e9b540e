//! Deep tasks beside the session: how they start, what they hear, where their result goes.
//!
//! A task runs in any phase and changes none; it neither starts nor resets a burst. Its rounds and tokens count into what
//! the session has spent. Its result is an accepted item `委托.<id>.结果`, a line in the log, and news for the agent.

use std::sync::Arc;

use super::agent::{name_calls, one_line};
use super::{Effect, Heard, Session, grant};
use crate::blackboard::{ItemState, Source};
use crate::deep_task::{BackgroundTools, Cap, DeepTask, Ending, HostCall, Origin, TaskAsking, TaskState, ToolResult};
use crate::event::{ModelAsked, TaskEquipped};
use crate::ids::{CallId, HostCallId, TaskId, Timestamp};
use crate::message::{Failure, FailureKind, Finish, Message, Reply, ToolCall};
use crate::tag::{Pattern, Tag};

/// Tasks that may run at once in one session.
pub const TASKS_RUNNING_MAX: usize = 4;

const LOST: &str = "the outcome of this call is unknown: the program was stopped while the tool was at work, and the tool may \
                    have acted. It was not called again. Find out what came of it before you do.";
const NOTHING_SAID: &str = "Your reply was empty. Call a tool, or reply with your result.";

impl Session {
    /// All deep tasks, oldest first.
    pub fn tasks(&self) -> &[DeepTask] {
        &self.tasks
    }

    /// Returns one deep task.
    pub fn task(&self, id: TaskId) -> Option<&DeepTask> {
        let index = usize::try_from(id.0).ok()?.checked_sub(1)?;
        self.tasks.get(index)
    }

    /// Returns the deep task whose model is asked by `call`.
    pub fn task_asking(&self, call: CallId) -> Option<&DeepTask> {
        self.tasks.iter().find(|task| task.asking().is_some_and(|asking| asking.call == call))
    }

    pub(super) fn started_task(&mut self, now: Timestamp, task: &str, title: &str, grants: Vec<Pattern>) -> Heard {
        self.start_task(now, task, title, Origin::User, grants).map(|(_, effects)| effects).map_err(|fault| self.refuse(fault))
    }

    pub(super) fn cancelled_task(&mut self, now: Timestamp, id: TaskId) -> Heard {
        self.running_task(id).map_err(|fault| self.refuse(fault))?;
        Ok(self.end_task(now, id, Ending::Cancelled))
    }

    pub(super) fn delegate_task(&mut self, now: Timestamp, task: &str, title: &str) -> Result<(String, Vec<Effect>), String> {
        let (id, effects) = self.start_task(now, task, title, Origin::Agent, vec![])?;
        Ok((format!("deep task {id} has begun; its result will be `{}`", result_tag(id)), effects))
    }

    pub(super) fn cancel_delegated(&mut self, now: Timestamp, id: &str) -> Result<(String, Vec<Effect>), String> {
        let id = id.trim().parse().map(TaskId).map_err(|_| format!("there is no deep task `{id}`; ids are numbers"))?;
        self.running_task(id)?;
        let effects = self.end_task(now, id, Ending::Cancelled);
        Ok((format!("deep task {id} is cancelled"), effects))
    }

    pub(super) fn list_tasks(&self) -> String {
        let describe = |task: &DeepTask| {
            let result = task.result.map(|_| format!("; result: `{}`", result_tag(task.id))).unwrap_or_default();
            format!("- {}: {}, {} ({}){result}\n", task.id, task.title, state_words(task), task.used())
        };
        let list: String = self.tasks.iter().map(describe).collect();
        if list.is_empty() { "no task has been delegated".to_owned() } else { list }
    }

    /// Cancels all that run, since the session ends.
    pub(super) fn cancel_tasks(&mut self, now: Timestamp) -> Vec<Effect> {
        let running: Vec<TaskId> = self.tasks.iter().filter(|task| task.is_running()).map(|task| task.id).collect();
        running.into_iter().flat_map(|task| self.end_task(now, task, Ending::Cancelled)).collect()
    }

    fn start_task(
        &mut self,
        now: Timestamp,
        task: &str,
        title: &str,
        origin: Origin,
        grants: Vec<Pattern>,
    ) -> Result<(TaskId, Vec<Effect>), String> {
        if task.trim().is_empty() {
            return Err("the task says nothing; write what is to be found out".to_owned());
        }
        let running = self.tasks.iter().filter(|task| task.is_running()).count();
        if running >= TASKS_RUNNING_MAX {
            return Err(format!("{running} deep tasks run already, which is the limit; wait for one, or cancel one"));
        }
        let id = TaskId(self.tasks.len() as u64 + 1);
        let task = DeepTask::new(now, id, task, title, origin, grants);
        self.log(format!("{}: started deep task {id}: {}", origin.as_str(), one_line(&task.title, 160)));
        let owed = task.owes();
        self.tasks.push(task);
        Ok((id, owed.into_iter().collect()))
    }

    fn running_task(&self, id: TaskId) -> Result<&DeepTask, String> {
        match self.task(id) {
            Some(task) if task.is_running() => Ok(task),
            Some(task) => Err(format!("deep task {id} is over: {}", state_words(task))),
            None => Err(format!("there is no deep task {id}; {}", self.tasks_there_are())),
        }
    }

    fn tasks_there_are(&self) -> String {
        match self.tasks.len() {
            0 => "none has been started".to_owned(),
            1 => "there is only 1".to_owned(),
            count => format!("there are 1 to {count}"),
        }
    }

    fn task_mut(&mut self, id: TaskId) -> &mut DeepTask {
        &mut self.tasks[id.0 as usize - 1]
    }

    pub(super) fn task_equipped(&mut self, now: Timestamp, equipped: TaskEquipped) -> Heard {
        let TaskEquipped { task: id, caps, tools, faults } = equipped;
        if self.task(id).is_none_or(|task| task.state != TaskState::Equipping) {
            return Err(self.refuse(format!("deep task {id} waits for no tools")));
        }
        let granted = grant::tools(&self.task_mut(id).grants);
        let (tools, left_out) = BackgroundTools::of(granted.into_iter().chain(tools).collect());
        for fault in faults.iter().chain(&left_out) {
            self.log(format!("deep task {id}: {fault}"));
        }
        let task = self.task_mut(id);
        task.tools = tools;
        task.caps = caps;
        Ok(self.ask_task(now, id))
    }

    /// Lets a task have its next round, if its caps and the session's budget allow.
    fn ask_task(&mut self, now: Timestamp, id: TaskId) -> Vec<Effect> {
        let is_budget_spent = self.budget_spent().is_some();
        let cap = self.task_mut(id).cap_on_asking().or(is_budget_spent.then_some(Cap::Budget));
        if let Some(cap) = cap {
            return self.end_task(now, id, Ending::CutOff(cap));
        }
        let call = self.calls.take();
        self.task_mut(id).state = TaskState::Asking(TaskAsking { call, attempts: 0, asked: None });
        vec![Effect::AskModel { call }]
    }

    pub(super) fn task_asked(&mut self, now: Timestamp, id: TaskId, asked: &ModelAsked) -> Heard {
        let task = self.task_mut(id);
        let TaskState::Asking(asking) = &mut task.state else { unreachable!("its model is asked") };
        if asked.attempt != asking.attempts + 1 {
            let made = asking.attempts;
            return Err(self.refuse(format!("attempt {} does not follow attempt {made}", asked.attempt)));
        }
        asking.attempts = asked.attempt;
        asking.asked = Some(now);
        if asked.attempt == 1 {
            // An older program's instructions stay this task's.
            if let (0, Some(instructions), Some(first)) = (task.rounds, asked.fixed.first(), task.messages.first_mut()) {
                *first = Message::System { text: instructions.clone() };
            }
            task.rounds += 1;
            self.spent.rounds += 1;
        }
        Ok(vec![])
    }

    pub(super) fn task_replied(&mut self, now: Timestamp, id: TaskId, reply: Reply) -> Heard {
        if self.task_mut(id).asking().is_some_and(|asking| asking.attempts == 0) {
            return Err(self.refuse(format!("the model of deep task {id} was never asked")));
        }
        self.count_work(now, id);
        self.spent.usage += reply.usage;
        let round = self.calls;
        let task = self.task_mut(id);
        task.usage += reply.usage;
        task.answered += 1;
        let was_cut = reply.finish == Finish::Length;
        if reply.finish == Finish::ContentFilter {
            let words = if reply.text.is_empty() { "it gave no words" } else { &reply.text };
            let message = format!("the provider's filter stopped the reply: {words}");
            return Ok(self.end_task(now, id, Ending::Failed { message }));
        }
        if reply.calls.is_empty() && reply.text.trim().is_empty() {
            task.messages.push(Message::user(NOTHING_SAID));
            return Ok(self.ask_task(now, id));
        }
        let mut calls = reply.calls;
        name_calls(&mut calls, &task.messages, round);
        task.was_cut = was_cut;
        task.owed = calls.iter().cloned().collect();
        let is_result = calls.is_empty();
        task.messages.push(Message::Assistant { text: reply.text, reasoning: reply.reasoning, calls });
        Ok(match (is_result, was_cut) {
            (false, _) => self.next_tool(now, id),
            (true, false) => self.end_task(now, id, Ending::Done),
            (true, true) => self.end_task(now, id, Ending::CutOff(Cap::Length)),
        })
    }

    pub(super) fn task_failed(&mut self, now: Timestamp, id: TaskId, failure: &Failure) -> Vec<Effect> {
        self.count_work(now, id);
        self.task_mut(id).answered += 1;
        let ending = match failure.kind {
            FailureKind::NoRoom => Ending::CutOff(Cap::Room),
            FailureKind::Network
            | FailureKind::Unavailable
            | FailureKind::Rejected
            | FailureKind::Cut
            | FailureKind::Refused
            | FailureKind::Setup
            | FailureKind::Unusable => Ending::Failed { message: failure.message.clone() },
        };
        self.end_task(now, id, ending)
    }

    /// Goes on to the next call of the last reply that a host tool has to carry out; then to the next round.
    fn next_tool(&mut self, now: Timestamp, id: TaskId) -> Vec<Effect> {
        loop {
            let task = self.task_mut(id);
            if let Some(cap) = task.cap_on_work() {
                return self.end_task(now, id, Ending::CutOff(cap));
            }
            let Some(call) = task.owed.pop_front() else { return self.ask_task(now, id) };
            let result = match task.read_call(&call) {
                Ok((tool, arguments)) if !grant::is_granted(&tool) => {
                    let host_call = task.host_calls.take();
                    let calling = HostCall { id: host_call, tool, arguments, attempts: 0, asked: None, answers: call };
                    task.state = TaskState::Calling(Box::new(calling));
                    return vec![Effect::CallTool { task: id, call: host_call }];
                }
                Ok((tool, arguments)) => {
                    let grants = task.grants.clone();
                    self.read_granted(&grants, &tool.name, &arguments)
                }
                Err(fault) => ToolResult::error(fault),
            };
            if let Some(cap) = self.task_mut(id).answer(&call, &result) {
                return self.end_task(now, id, Ending::CutOff(cap));
            }
        }
    }

    pub(super) fn tool_asked(&mut self, now: Timestamp, id: TaskId, call: HostCallId, attempt: u32) -> Heard {
        let calling = self.calling(id, call)?;
        if calling.is_lost() {
            return Err(self.refuse(format!("tool call {call} of deep task {id} may have acted and is not made again")));
        }
        if attempt != calling.attempts + 1 {
            let made = calling.attempts;
            return Err(self.refuse(format!("attempt {attempt} does not follow attempt {made}")));
        }
        if let TaskState::Calling(calling) = &mut self.task_mut(id).state {
            calling.attempts = attempt;
            calling.asked = Some(now);
        }
        Ok(vec![])
    }

    pub(super) fn tool_answered(&mut self, now: Timestamp, id: TaskId, call: HostCallId, result: &ToolResult) -> Heard {
        let calling = self.calling(id, call)?;
        if calling.attempts == 0 {
            return Err(self.refuse(format!("tool call {call} of deep task {id} was never made")));
        }
        let answers = calling.answers.clone();
        Ok(self.go_on_after_tool(now, id, &answers, result))
    }

    pub(super) fn tool_lost(&mut self, now: Timestamp, id: TaskId, call: HostCallId) -> Heard {
        let calling = self.calling(id, call)?;
        if !calling.is_lost() {
            return Err(self.refuse(format!("tool call {call} of deep task {id} is not lost: it can be made")));
        }
        let answers = calling.answers.clone();
        Ok(self.go_on_after_tool(now, id, &answers, &ToolResult::fine(LOST)))
    }

    fn go_on_after_tool(&mut self, now: Timestamp, id: TaskId, answers: &ToolCall, result: &ToolResult) -> Vec<Effect> {
        self.count_work(now, id);
        match self.task_mut(id).answer(answers, result) {
            Some(cap) => self.end_task(now, id, Ending::CutOff(cap)),
            None => self.next_tool(now, id),
        }
    }

    fn calling(&self, id: TaskId, call: HostCallId) -> Result<&HostCall, super::Refusal> {
        let calling = self.task(id).and_then(DeepTask::calling).filter(|calling| calling.id == call);
        calling.ok_or_else(|| self.refuse(format!("nobody waits for tool call {call} of deep task {id}")))
    }

    pub(super) fn task_overdue(&mut self, now: Timestamp, id: TaskId) -> Heard {
        self.running_task(id).map_err(|fault| self.refuse(fault))?;
        self.count_work(now, id);
        Ok(self.end_task(now, id, Ending::CutOff(Cap::Time)))
    }

    /// Counts the time of what was under way: from its latest attempt, so that nobody's absence counts.
    fn count_work(&mut self, now: Timestamp, id: TaskId) {
        let task = self.task_mut(id);
        let (asked, is_model) = match &task.state {
            TaskState::Asking(asking) => (asking.asked, true),
            TaskState::Calling(calling) => (calling.asked, false),
            TaskState::Equipping | TaskState::Over(_) => (None, false),
        };
        let worked_ms = asked.map_or(0, |asked| now.0.saturating_sub(asked.0).max(0) as u64);
        task.time_ms += worked_ms;
        if is_model {
            self.spent.time_ms += worked_ms;
        }
    }

    /// Ends a task and hands over what there is.
    fn end_task(&mut self, now: Timestamp, id: TaskId, ending: Ending) -> Vec<Effect> {
        let task = self.task_mut(id);
        let result = task.handed_over(&ending);
        // Only these two come while a request is under way; the others come by its outcome.
        let is_broken_off = matches!(ending, Ending::Cancelled | Ending::CutOff(Cap::Time));
        let broken_off = task.asking().filter(|_| is_broken_off).map(|asking| asking.call);
        task.state = TaskState::Over(ending);
        task.ended = Some(now);
        task.owed.clear();
        task.messages.clear();
        let mut news = format!("deep task {id} ({}): {}", one_line(&task.title, 60), state_words(task));
        if let Some(text) = result {
            let tag = result_tag(id);
            news.push_str(&format!("; result: {tag}, {} characters", text.chars().count()));
            let item = self.write(now, tag, Arc::from(text), Source::Task(id), ItemState::Accepted, &[]);
            self.task_mut(id).result = Some(item);
        }
        self.tell(news);
        broken_off.map(|call| Effect::CancelModel { call }).into_iter().collect()
    }
}

/// Returns the tag of a task's result.
pub fn result_tag(task: TaskId) -> Tag {
    Tag::parse(&format!("委托.{task}.结果")).expect("a tag of our own")
}

fn state_words(task: &DeepTask) -> String {
    match &task.state {
        TaskState::Equipping => "running: looks up its tools".to_owned(),
        TaskState::Asking(_) => "running: thinks".to_owned(),
        TaskState::Calling(calling) => format!("running: calls {}", calling.tool.name),
        TaskState::Over(Ending::Done) => "done".to_owned(),
        TaskState::Over(Ending::CutOff(cap)) => format!("cut_off by {}", cap.as_str()),
        TaskState::Over(Ending::Cancelled) => "cancelled".to_owned(),
        TaskState::Over(Ending::Failed { message }) => format!("failed: {}", one_line(message, 200)),
    }
}
