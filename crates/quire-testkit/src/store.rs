//! What every store must do, whatever it stands on.
//!
//! Each rule takes sessions of its own, so all of them run on one place, beside whatever lies there already.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use quire_core::event::{Action, Event};
use quire_core::ids::{RecordId, SessionId, Timestamp};
use quire_core::journal::{self, StoredRecord};
use quire_core::session::Refusal;
use quire_runtime::ports::{Answered, Append, Lease, Store, StoreError, Summary, Ticket};

/// Runs every rule; panics at the first that is broken. `open` opens one more store on the same place each time.
pub async fn conforms(open: impl AsyncFn() -> Arc<dyn Store>) {
    let (store, other) = (open().await, open().await);
    a_journal_is_read_as_it_was_written(&*store, &*other).await;
    a_record_may_follow_any_other(&*store).await;
    ids_only_rise(&*store).await;
    a_session_begins_once(&*store, &*other).await;
    nothing_is_known_of_a_session_that_was_never_begun(&*store).await;
    a_living_owner_keeps_its_session(&*store, &*other).await;
    an_older_lease_writes_nothing(&*store, &*other).await;
    an_action_is_answered_once(&*store, &*other).await;
    a_record_and_its_answer_are_written_together(&*store).await;
    the_list_begins_with_the_latest_change(&*store, &*other).await;
    many_sessions_are_written_at_once(&store, &other).await;
    a_dropped_write_is_whole_or_absent(&store).await;
    a_store_that_is_closed_owns_nothing(open().await, &*store).await;
}

/// Writes one session's records for a test, as the driver would.
#[derive(Debug)]
pub struct Journal {
    session: SessionId,
    records: Vec<StoredRecord>,
}

impl Journal {
    /// Begins an empty one.
    pub fn new(session: &str) -> Self {
        Self { session: SessionId::new(session), records: vec![] }
    }

    /// Returns the session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the records made so far.
    pub fn records(&self) -> &[StoredRecord] {
        &self.records
    }

    /// Makes a record of the user saying `text`, after the newest one.
    pub fn say(&mut self, text: &str) -> Append {
        let parent = self.records.last().map(|record| record.id);
        self.say_after(parent, text)
    }

    /// Makes a record of the user saying `text`, after any other.
    pub fn say_after(&mut self, parent: Option<RecordId>, text: &str) -> Append {
        let parent = parent.map(|parent| self.records.iter().find(|record| record.id == parent).expect("the parent was made"));
        let parent = parent.map(|parent| (parent.id, &parent.hash));
        let count = self.records.len() as u64 + 1;
        let (id, time) = (RecordId(count), Timestamp(1_000 * count as i64));
        let event = Event::User(Action::SubmitInput { text: text.into(), values: Default::default() });
        let (record, texts) = journal::encode(&self.session, parent, id, time, &event);
        self.records.push(record.clone());
        let summary = Summary {
            session: self.session.clone(),
            title: format!("after {count}"),
            pack: "short-story".to_owned(),
            phase: "waiting_user".to_owned(),
            reason: "input".to_owned(),
            stage: "design".to_owned(),
            started: Timestamp(1_000),
            changed: time,
        };
        Append { record, texts, summary, answers: None }
    }
}

async fn begin(store: &dyn Store, session: &str) -> (Journal, Lease) {
    let mut journal = Journal::new(session);
    let first = journal.say("begin");
    let lease = store.create(journal.session(), first).await.expect("a new session begins");
    (journal, lease)
}

async fn a_journal_is_read_as_it_was_written(store: &dyn Store, other: &dyn Store) {
    let (mut journal, lease) = begin(store, "round trip").await;
    let long = "灯塔 🕯 the lamp had been dark for a week\0\n".repeat(4_000);
    let mut texts = BTreeSet::new();
    for text in ["short", &long, "", &long, "it's \"quoted\" {\"$text\": 1}"] {
        let append = journal.say(text);
        texts.extend(append.texts.keys().cloned());
        store.append(&lease, append).await.expect("an owner appends");
    }
    for reader in [store, other] {
        let loaded = reader.load(journal.session()).await.expect("a journal is read");
        assert_eq!(loaded.records, journal.records());
        assert_eq!(loaded.head, RecordId(6));
        assert_eq!(loaded.texts.keys().cloned().collect::<BTreeSet<_>>(), texts, "the same text is kept once");
        let (path, damage) = journal::read_path(journal.session(), &loaded.records, &loaded.texts, loaded.head);
        assert_eq!((path.len(), damage), (6, None));
        assert_eq!(reader.newest(journal.session()).await.expect("it is there"), RecordId(6));
        let line = reader.summary(journal.session()).await.expect("it is there");
        assert_eq!((line.title.as_str(), line.started, line.changed), ("after 6", Timestamp(1_000), Timestamp(6_000)));
    }
    // A text that another session keeps already is there for this one too.
    let (mut second, lease) = begin(other, "round trip, second").await;
    other.append(&lease, second.say(&long)).await.expect("an owner appends");
    let loaded = store.load(second.session()).await.expect("a journal is read");
    assert_eq!(loaded.texts.len(), 1);
}

async fn a_record_may_follow_any_other(store: &dyn Store) {
    let (mut journal, lease) = begin(store, "branches").await;
    for parent in [1, 2, 1, 4] {
        let append = journal.say_after(Some(RecordId(parent)), &format!("after {parent}"));
        store.append(&lease, append).await.expect("an owner appends");
    }
    let loaded = store.load(journal.session()).await.expect("a journal is read");
    assert_eq!(loaded.records, journal.records());
    let (path, damage) = journal::read_path(journal.session(), &loaded.records, &loaded.texts, loaded.head);
    let path: Vec<u64> = path.iter().map(|record| record.id.0).collect();
    assert_eq!((path, damage), (vec![1, 4, 5], None));
}

async fn ids_only_rise(store: &dyn Store) {
    let (mut journal, lease) = begin(store, "rising ids").await;
    let second = journal.say("second");
    store.append(&lease, second.clone()).await.expect("an owner appends");
    let again = store.append(&lease, second).await.expect_err("record 2 is there already");
    assert!(matches!(again, StoreError::Unusable { .. }), "{again}");
    store.append(&lease, journal.say("third")).await.expect("what was refused harmed nothing");
    let loaded = store.load(journal.session()).await.expect("a journal is read");
    assert_eq!(loaded.records, journal.records());
}

async fn a_session_begins_once(store: &dyn Store, other: &dyn Store) {
    let (journal, _) = begin(store, "begun").await;
    for second in [store, other] {
        let error = second.create(journal.session(), Journal::new("begun").say("mine")).await.expect_err("it is there");
        assert!(matches!(&error, StoreError::SessionExists(session) if session == journal.session()), "{error}");
    }
    assert_eq!(store.load(journal.session()).await.expect("a journal is read").records, journal.records());
}

async fn nothing_is_known_of_a_session_that_was_never_begun(store: &dyn Store) {
    let session = SessionId::new("never begun");
    let lease = Lease { session: session.clone(), fence: 1 };
    let errors = [
        store.claim(&session).await.map(|_| ()),
        store.append(&lease, Journal::new("never begun").say("hello")).await,
        store.load(&session).await.map(|_| ()),
        store.newest(&session).await.map(|_| ()),
        store.summary(&session).await.map(|_| ()),
        store.post(&session, &Action::Stop).await.map(|_| ()),
    ];
    for error in errors {
        assert!(matches!(&error, Err(StoreError::NoSession(named)) if *named == session), "{error:?}");
    }
    let list = store.list().await.expect("there is a list");
    assert!(list.iter().all(|line| line.session != session), "what was refused left no line");
}

async fn a_living_owner_keeps_its_session(store: &dyn Store, other: &dyn Store) {
    let (mut journal, lease) = begin(store, "owned").await;
    assert_eq!(other.claim(journal.session()).await.expect("it is there"), None);
    store.append(&lease, journal.say("still mine")).await.expect("an owner appends");

    store.release(&lease).await.expect("a lease is given back");
    let fenced = store.append(&lease, journal.say("too late")).await;
    assert!(matches!(fenced, Err(StoreError::Fenced(_))), "a lease that was given back writes nothing: {fenced:?}");
    let theirs = other.claim(journal.session()).await.expect("it is there").expect("nobody owns it");
    assert!(theirs.fence > lease.fence, "each owner's fence is higher");

    store.release(&lease).await.expect("a lease of old may be given back");
    assert_eq!(store.claim(journal.session()).await.expect("it is there"), None, "and frees nothing by that");
}

async fn an_older_lease_writes_nothing(store: &dyn Store, other: &dyn Store) {
    let (mut journal, older) = begin(store, "fenced").await;
    let ticket = other.post(journal.session(), &Action::Stop).await.expect("anybody posts");
    let newer = store.claim(journal.session()).await.expect("it is there").expect("it is ours");
    assert!(newer.fence > older.fence);

    let second = journal.say("second");
    let fenced = [store.append(&older, second.clone()).await, store.refuse(&older, ticket, refused()).await];
    for fenced in fenced {
        assert!(matches!(&fenced, Err(StoreError::Fenced(session)) if session == journal.session()), "{fenced:?}");
    }
    assert_eq!(store.newest(journal.session()).await.expect("it is there"), RecordId(1));
    assert_eq!(store.answer(ticket).await.expect("it was posted"), None);
    store.append(&newer, second).await.expect("an owner appends");

    // Two stores' leases never have the same number, though both are of one session.
    store.release(&newer).await.expect("a lease is given back");
    other.claim(journal.session()).await.expect("it is there").expect("nobody owns it");
    let fenced = store.append(&newer, journal.say("third")).await;
    assert!(matches!(fenced, Err(StoreError::Fenced(_))), "{fenced:?}");
}

async fn an_action_is_answered_once(store: &dyn Store, other: &dyn Store) {
    let (mut journal, lease) = begin(store, "inbox").await;
    let session = journal.session().clone();
    assert_eq!(store.inbox(&session).await.expect("there is an inbox"), []);
    let long = Action::SubmitInput { text: "灯塔".repeat(10_000).into(), values: Default::default() };
    let stop = other.post(&session, &Action::Stop).await.expect("anybody posts");
    let say = store.post(&session, &long).await.expect("anybody posts");
    let finish = other.post(&session, &Action::Finish).await.expect("anybody posts");
    let waiting = store.inbox(&session).await.expect("there is an inbox");
    assert_eq!(waiting, [(stop, Action::Stop), (say, long), (finish, Action::Finish)], "the oldest first");

    let heard = Answered::Heard { record: RecordId(2) };
    let append = Append { answers: Some((say, heard.clone())), ..journal.say("heard") };
    store.append(&lease, append).await.expect("an owner appends");
    store.refuse(&lease, stop, refused()).await.expect("an owner refuses");
    for reader in [store, other] {
        assert_eq!(reader.inbox(&session).await.expect("there is an inbox"), [(finish, Action::Finish)]);
        assert_eq!(reader.answer(say).await.expect("it was posted"), Some(heard.clone()));
        assert_eq!(reader.answer(stop).await.expect("it was posted"), Some(refused()));
        assert_eq!(reader.answer(finish).await.expect("it was posted"), None);
    }

    let again = store.refuse(&lease, say, refused()).await;
    assert!(matches!(again, Err(StoreError::Unusable { .. })), "a second answer is an error: {again:?}");
    assert_eq!(store.answer(say).await.expect("it was posted"), Some(heard), "and the first one stands");
    let never = store.answer(Ticket(u64::from(u32::MAX))).await;
    assert!(matches!(never, Err(StoreError::Unusable { .. })), "nobody waits for what was never posted: {never:?}");
}

async fn a_record_and_its_answer_are_written_together(store: &dyn Store) {
    let (mut journal, lease) = begin(store, "both or neither").await;
    let ticket = store.post(journal.session(), &Action::Stop).await.expect("anybody posts");
    store.refuse(&lease, ticket, refused()).await.expect("an owner refuses");
    let before = store.load(journal.session()).await.expect("a journal is read");
    let line = store.summary(journal.session()).await.expect("it is there");

    let heard = Answered::Heard { record: RecordId(2) };
    let append = Append { answers: Some((ticket, heard)), ..journal.say(&"a text of its own ".repeat(100)) };
    let twice = store.append(&lease, append).await;
    assert!(matches!(twice, Err(StoreError::Unusable { .. })), "{twice:?}");
    let after = store.load(journal.session()).await.expect("a journal is read");
    assert_eq!((after.records, after.texts, after.head), (before.records, before.texts, before.head));
    assert_eq!(store.summary(journal.session()).await.expect("it is there"), line);
    assert_eq!(store.answer(ticket).await.expect("it was posted"), Some(refused()));
}

async fn the_list_begins_with_the_latest_change(store: &dyn Store, other: &dyn Store) {
    let names = ["list, a", "list, b", "list, c"];
    let mut begun = vec![];
    for name in names {
        begun.push(begin(store, name).await);
    }
    for (number, count) in [(2, 1), (0, 3)] {
        for _ in 0..count {
            let (journal, lease) = &mut begun[number];
            store.append(lease, journal.say("more")).await.expect("an owner appends");
        }
    }
    let list = other.list().await.expect("there is a list");
    assert!(list.is_sorted_by(|a, b| a.changed >= b.changed));
    let ours: Vec<&str> = list.iter().map(|line| line.session.as_str()).filter(|name| names.contains(name)).collect();
    assert_eq!(ours, ["list, a", "list, c", "list, b"]);
    let line = list.iter().find(|line| line.session.as_str() == "list, a").expect("it is listed");
    assert_eq!(*line, store.summary(&line.session).await.expect("it is there"));
}

async fn many_sessions_are_written_at_once(store: &Arc<dyn Store>, other: &Arc<dyn Store>) {
    let write = async |store: Arc<dyn Store>, name: String| {
        let (mut journal, lease) = begin(&*store, &name).await;
        for number in 0..10 {
            store.append(&lease, journal.say(&format!("{number}, to {name}"))).await.expect("an owner appends");
            store.post(journal.session(), &Action::Stop).await.expect("anybody posts");
        }
        journal
    };
    let written = join_all((0..64).map(|number| {
        let store = if number % 2 == 0 { store } else { other };
        write(Arc::clone(store), format!("at once, {number}"))
    }));
    for journal in written.await {
        let loaded = other.load(journal.session()).await.expect("a journal is read");
        assert_eq!(loaded.records, journal.records());
        assert_eq!(store.inbox(journal.session()).await.expect("there is an inbox").len(), 10);
    }
}

async fn a_dropped_write_is_whole_or_absent(store: &Arc<dyn Store>) {
    let (mut journal, lease) = begin(&**store, "dropped").await;
    let second = journal.say("second");
    {
        let mut append = std::pin::pin!(store.append(&lease, second));
        // Done or not: from here on nobody waits for it.
        let _ = futures::poll!(&mut append);
    }
    {
        let mut claim = std::pin::pin!(store.claim(journal.session()));
        let _ = futures::poll!(&mut claim);
    }
    let lease = store.claim(journal.session()).await.expect("it is there").expect("it is ours");
    let loaded = store.load(journal.session()).await.expect("a journal is read");
    assert!(journal.records().starts_with(&loaded.records));
    assert_eq!(loaded.head, loaded.records.last().expect("it was begun").id);
    let mut journal = Journal { records: loaded.records, ..journal };
    store.append(&lease, journal.say("next")).await.expect("an owner appends");
}

async fn a_store_that_is_closed_owns_nothing(closing: Arc<dyn Store>, store: &dyn Store) {
    let (journal, lease) = begin(&*closing, "closed").await;
    assert_eq!(store.claim(journal.session()).await.expect("it is there"), None);
    drop(closing);
    let ours = store.claim(journal.session()).await.expect("it is there").expect("its owner is gone");
    assert!(ours.fence > lease.fence);
}

fn refused() -> Answered {
    let refusal = Refusal {
        message: "nothing runs".to_owned(),
        pending: "waiting for the user's words".to_owned(),
        heard: vec!["submit_input".to_owned(), "finish".to_owned()],
    };
    Answered::Refused { refusal }
}
