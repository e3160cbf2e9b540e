//! Many deep tasks at once: the real driver and store, models from a script, and cancels at any moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use quire_adapters::providers::scripted::Scripted;
use quire_adapters::stores::sqlite::SqliteStore;
use quire_core::chance::Seed;
use quire_core::deep_task::{Caps, DeepTask, Ending, HostTool, ToolEffect, ToolResult};
use quire_core::event::{Action, Budget, Start};
use quire_core::ids::{SessionId, TaskId, Timestamp};
use quire_core::message::Failure;
use quire_core::session::Session;
use quire_runtime::driver::Ports;
use quire_runtime::fleet::Fleet;
use quire_runtime::ports::{Answered, Chance, Clock, ModelProvider, Models, RuntimeContext, ToolHost, Toolbox};
use quire_runtime::retry::RetryPolicy;
use quire_scenario::Scenario;
use quire_testkit::play::pack_files;
use serde_json::{Map, Value};

/// A clock that goes on by a millisecond at each look.
#[derive(Default)]
struct Ticks(AtomicI64);

impl Clock for Ticks {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

impl Chance for Ticks {
    fn seed(&self) -> Seed {
        Seed(1)
    }
}

/// One script for every profile.
struct OneScript(Arc<Scripted>);

impl Models for OneScript {
    fn provider(&self, _profile: &str) -> Result<Arc<dyn ModelProvider>, Failure> {
        Ok(self.0.clone())
    }
}

/// `look` answers at once, `hang` never; counts what hangs.
#[derive(Default)]
struct Host {
    hanging: Arc<AtomicUsize>,
}

struct Hanging(Arc<AtomicUsize>);

impl Drop for Hanging {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl ToolHost for Host {
    async fn tools(&self, _context: RuntimeContext) -> Toolbox {
        let tool = |name: &str| HostTool {
            name: name.to_owned(),
            description: "".into(),
            parameters: r#"{"type":"object"}"#.into(),
            effect: ToolEffect::Reads,
            server: "test".to_owned(),
            own_name: name.to_owned(),
        };
        Toolbox { tools: vec![tool("look"), tool("hang")], faults: vec![] }
    }

    async fn call(&self, tool: &HostTool, _arguments: &Map<String, Value>) -> ToolResult {
        if tool.name == "hang" {
            self.hanging.fetch_add(1, Ordering::SeqCst);
            let _hanging = Hanging(self.hanging.clone());
            std::future::pending::<()>().await;
        }
        ToolResult::fine("Paraffin.")
    }
}

/// Tasks 2 and 4 of a session hang in their second call; the others come to an end.
const SCRIPT: &str = "
    pack    novel
    task(1) call look {\"q\": 1}
    task(1) call look {\"q\": 2}
    task(1) text: One.
    task(2) call look {}
    task(2) call hang {}
    task(3) call look {}
    task(3) text: Three.
    task(4) call hang {}
    task(5) call look {}
     and    call look {\"q\": 2}
    task(5) text: Five.
";

struct World {
    fleet: Fleet,
    host: Arc<Host>,
    _folder: tempfile::TempDir,
}

impl World {
    async fn new(script: &str, caps: Caps) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let scenario = Scenario::parse("tasks.scenario", script).expect("it can be played");
        let host = Arc::new(Host::default());
        let ports = Ports {
            store: Arc::new(SqliteStore::open(folder.path()).await.expect("a store")),
            models: Arc::new(OneScript(Arc::new(Scripted::new(scenario)))),
            clock: Arc::new(Ticks::default()),
            chance: Arc::new(Ticks::default()),
            retry: RetryPolicy::default(),
            tools: host.clone(),
            task_caps: caps,
        };
        Self { fleet: Fleet::new(ports), host, _folder: folder }
    }

    async fn session(&self, name: &str) -> SessionId {
        let id = SessionId::new(name);
        let start = Start {
            title: String::new(),
            pack: Some(pack_files("novel")),
            profile: "script".to_owned(),
            burst_max: None,
            budget: Budget::default(),
            offer: vec![],
        };
        self.fleet.start(&id, start).await.expect("it begins");
        id
    }

    async fn act(&self, id: &SessionId, action: Action) -> bool {
        matches!(self.fleet.act(id, &action).await.expect("it is answered"), Answered::Heard { .. })
    }

    async fn start_task(&self, id: &SessionId) -> bool {
        self.act(id, Action::StartTask { task: "Dig.".into(), title: String::new(), grants: vec![] }).await
    }

    async fn look(&self, id: &SessionId) -> Session {
        self.fleet.look(id).await.expect("it can be read").session
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_tasks_in_ten_sessions_end_as_they_should_whatever_is_cancelled_when() {
    let world = Arc::new(World::new(SCRIPT, Caps::default()).await);
    let plays = (0..10_u64).map(|number| {
        let world = world.clone();
        tokio::spawn(async move { play(&world, number).await })
    });
    for played in futures::future::join_all(plays).await {
        played.expect("it is played to its end");
    }
    assert_eq!(world.host.hanging.load(Ordering::SeqCst), 0, "no cancelled call goes on");
}

async fn play(world: &World, number: u64) {
    let id = world.session(&format!("session-{number}")).await;
    // Seeded, so that a failure can be played again.
    let mut random = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut draw = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    for _ in 0..4 {
        assert!(world.start_task(&id).await, "four may run at once");
    }
    let cancelled_early = TaskId(1 + draw(4));
    world.act(&id, Action::CancelTask { task: cancelled_early }).await;
    for task in [2, 4].map(TaskId) {
        let begun = Instant::now();
        world.act(&id, Action::CancelTask { task }).await;
        assert!(begun.elapsed() < Duration::from_secs(20), "a cancel is heard while everything else works");
    }
    assert!(world.start_task(&id).await, "there is room again");
    world.fleet.tasks_settled(&id, None).await.expect("all come to an end");
    let session = world.look(&id).await;
    let endings: Vec<&Ending> = session.tasks().iter().filter_map(DeepTask::ending).collect();
    assert_eq!(endings.len(), 5);
    for (task, ending) in session.tasks().iter().zip(endings) {
        let may_be_cancelled = [cancelled_early, TaskId(2), TaskId(4)].contains(&task.id);
        match ending {
            Ending::Done => assert!(![2, 4].contains(&task.id.0)),
            Ending::Cancelled => assert!(may_be_cancelled, "{} was cancelled by nobody", task.id),
            Ending::CutOff(_) | Ending::Failed { .. } => panic!("{}: {ending:?}", task.id),
        }
    }
    let (records, damage) = world.fleet.history(&id).await.expect("it can be read");
    assert_eq!(damage, None);
    assert!(Session::replay(id.clone(), &records) == session, "the journal tells the same");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_tool_is_broken_off_when_the_tasks_time_is_up() {
    let script = "pack novel\ntask call look {}\ntask call hang {}\n";
    let caps = Caps { max_time_ms: Some(300), ..Caps::default() };
    let world = World::new(script, caps).await;
    let id = world.session("overdue").await;
    assert!(world.start_task(&id).await);
    let opened = world.fleet.tasks_settled(&id, Some(TaskId(1))).await.expect("it comes to an end");
    let task = &opened.session.tasks()[0];
    assert_eq!(task.state_word(), "cut_off");
    let result = opened.session.board().item(task.result.expect("there is a result"));
    assert_eq!(&*result.content, "[cut_off: time]\n\nlook {}\nParaffin.");
    assert_eq!(world.host.hanging.load(Ordering::SeqCst), 0);
}
