//! The SQLite store: the rules of every store, and what only files, disks and processes can do to one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use expect_test::{Expect, expect};
use quire_adapters::stores::sqlite::SqliteStore;
use quire_core::event::Action;
use quire_core::ids::{RecordId, SessionId};
use quire_runtime::ports::{Lease, Store, StoreError};
use quire_testkit::store::{Journal, conforms};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread")]
async fn it_does_what_every_store_must() {
    let folder = folder();
    let open = async || Arc::new(open(folder.path()).await) as Arc<dyn Store>;
    conforms(open).await;
}

#[tokio::test]
async fn what_was_written_is_there_after_the_next_start() {
    let folder = folder();
    let store = open(folder.path()).await;
    let (mut journal, lease) = begin(&store, "lamp").await;
    store.append(&lease, journal.say(&"A long text. ".repeat(1_000))).await.unwrap();
    let ticket = store.post(journal.session(), &Action::Stop).await.unwrap();
    drop(store);

    let store = open(folder.path()).await;
    let loaded = store.load(journal.session()).await.unwrap();
    assert_eq!((loaded.records.as_slice(), loaded.head), (journal.records(), RecordId(2)));
    assert_eq!(store.inbox(journal.session()).await.unwrap(), [(ticket, Action::Stop)]);
    let lease = store.claim(journal.session()).await.unwrap().expect("the owner is gone");
    store.append(&lease, journal.say("and on it goes")).await.unwrap();
}

#[tokio::test]
async fn closed_stores_leave_no_lock_files() {
    let folder = folder();
    drop(open(folder.path()).await);
    std::fs::write(folder.path().join("owners/of-one-who-died.lock"), "").unwrap();
    let store = open(folder.path()).await;
    let count = || std::fs::read_dir(folder.path().join("owners")).unwrap().count();
    assert_eq!(count(), 1, "the dead one's file is cleared away");
    drop(store);
    assert_eq!(count(), 0);
}

#[tokio::test]
async fn a_folder_of_a_newer_quire_is_refused_and_left_as_it_is() {
    let folder = folder();
    drop(open(folder.path()).await);
    let mut connection = connect(folder.path()).await;
    sqlx::query("UPDATE meta SET value = 99 WHERE key = 'format'").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    check_refused(
        folder.path(),
        expect!["cannot use DATA/quire.db: its format is 99, and this program knows up to 1: a newer quire wrote this folder; use that one"],
    )
    .await;
    let mut connection = connect(folder.path()).await;
    let format: i64 = sqlx::query_scalar("SELECT value FROM meta").fetch_one(&mut connection).await.unwrap();
    assert_eq!(format, 99);
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    let folder = folder();
    let mut connection = connect(folder.path()).await;
    sqlx::query("CREATE TABLE recipes (name TEXT)").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    check_refused(
        folder.path(),
        expect!["cannot use DATA/quire.db: it is not a database of quire; move it away, or name another data folder"],
    )
    .await;
    let mut connection = connect(folder.path()).await;
    let tables: Vec<String> = sqlx::query_scalar("SELECT name FROM sqlite_schema").fetch_all(&mut connection).await.unwrap();
    assert_eq!(tables, ["recipes"]);
}

#[tokio::test]
async fn a_damaged_database_is_refused_and_left_as_it_is() {
    let folder = folder();
    let garbage = "This was a database once. ".repeat(1_000);
    std::fs::write(folder.path().join("quire.db"), &garbage).unwrap();
    check_refused(folder.path(), expect!["cannot use DATA/quire.db: it is damaged; it was left as it is; restore a backup, or move it away (error returned from database: (code: 26) file is not a database)"]).await;
    assert_eq!(std::fs::read_to_string(folder.path().join("quire.db")).unwrap(), garbage);
}

#[tokio::test]
async fn a_damaged_page_is_named_when_it_is_read() {
    let folder = folder();
    let store = open(folder.path()).await;
    let (mut journal, lease) = begin(&store, "lamp").await;
    for number in 0..50 {
        store.append(&lease, journal.say(&format!("{number}").repeat(3_000))).await.unwrap();
    }
    drop(store);
    let mut connection = connect(folder.path()).await;
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let path = folder.path().join("quire.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let after_the_schema = 20 * 4096;
    bytes[after_the_schema..].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();

    let store = open(folder.path()).await;
    let error = store.load(journal.session()).await.unwrap_err();
    said(
        folder.path(),
        &error,
        &expect![
            "cannot use DATA/quire.db: it is damaged; it was left as it is; restore a backup, or move it away (error returned from database: (code: 11) database disk image is malformed)"
        ],
    );
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let folder = folder();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "mine").unwrap();
    let error = SqliteStore::open(&file).await.err().expect("a file is no folder");
    said(
        folder.path(),
        &error,
        &expect![
            "cannot use the data folder DATA/notes.txt: Not a directory (os error 20); name a folder that can be made and written, or change its permissions"
        ],
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[cfg(unix)]
#[tokio::test]
async fn a_read_only_folder_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let set_mode = |mode| std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o555);
    let is_root = std::fs::write(folder.path().join("probe"), "").is_ok();
    if !is_root {
        check_refused(folder.path(), expect!["cannot use the data folder DATA: Permission denied (os error 13); name a folder that can be made and written, or change its permissions"]).await;
    }
    set_mode(0o755);
}

#[tokio::test]
async fn a_full_disk_is_named_and_nothing_is_half_written() {
    let folder = folder();
    let store = SqliteStore::open_at_most(folder.path(), 100).await.unwrap();
    let (mut journal, lease) = begin(&store, "lamp").await;
    let (mut second, second_lease) = begin(&store, "second").await;

    let too_much = journal.say(&"Words without end. ".repeat(100_000));
    let (full, small) = tokio::join!(store.append(&lease, too_much), store.append(&second_lease, second.say("small")));
    said(
        folder.path(),
        &full.unwrap_err(),
        &expect![
            "cannot use DATA/quire.db: the disk is full; nothing was written; free some space and try again (error returned from database: (code: 13) database or disk is full)"
        ],
    );
    small.expect("what still has room is written, though it was queued beside");

    let loaded = store.load(journal.session()).await.unwrap();
    assert_eq!((loaded.records.len(), loaded.texts.len(), loaded.head), (1, 0, RecordId(1)));
    drop(store);
    let store = open(folder.path()).await;
    let lease = store.claim(journal.session()).await.unwrap().expect("the owner is gone");
    let mut journal = Journal::new("lamp");
    journal.say("begin");
    store.append(&lease, journal.say(&"Words without end. ".repeat(100_000))).await.expect("there is room now");
}

#[tokio::test]
async fn a_folder_that_goes_away_is_not_made_anew() {
    let parent = folder();
    let (here, away) = (parent.path().join("data"), parent.path().join("away"));
    let store = open(&here).await;
    let (mut journal, lease) = begin(&store, "lamp").await;
    let second = journal.say("second");

    std::fs::rename(&here, &away).unwrap();
    let error = store.append(&lease, second.clone()).await.unwrap_err();
    said(
        parent.path(),
        &error,
        &expect![
            "the data folder DATA/data was removed or replaced while quire was using it; nothing was written and nothing made anew; put the folder back, or start quire again to use what is there now"
        ],
    );
    assert!(store.load(journal.session()).await.is_err());
    assert!(store.list().await.is_err());
    assert!(!here.exists(), "no empty twin");

    // Somebody else's folder comes in its place.
    let other = open(&here).await;
    assert!(store.append(&lease, second.clone()).await.is_err());
    assert_eq!(other.list().await.unwrap(), []);
    drop(other);
    std::fs::remove_dir_all(&here).unwrap();

    std::fs::rename(&away, &here).unwrap();
    store.append(&lease, second).await.expect("the folder is back");
    assert_eq!(open(&here).await.load(journal.session()).await.unwrap().records, journal.records());
}

#[tokio::test]
async fn a_killed_owner_is_replaced_at_once() {
    let folder = folder();
    let mut child = Child::spawn_as("own", folder.path());
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    while !line.contains("owning") {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "the child ended early");
    }
    let store = open(folder.path()).await;
    let session = SessionId::new("owned by a child");
    assert_eq!(store.claim(&session).await.unwrap(), None, "it lives");
    child.kill().unwrap();
    child.wait().unwrap();
    let lease = store.claim(&session).await.unwrap().expect("it is dead");
    assert_eq!(lease.fence, 2);
}

#[tokio::test]
async fn many_processes_write_at_once_and_nothing_is_lost() {
    let (processes, appends) = (8, 200);
    let folder = folder();
    let store = open(folder.path()).await;
    begin(&store, "for all").await;
    let mut reader = connect(folder.path()).await;
    let mut long_read = reader.begin().await.unwrap();
    sqlx::query("SELECT count(*) FROM records").fetch_one(&mut *long_read).await.unwrap();

    let children: Vec<Child> =
        (0..processes).map(|number| Child::spawn_as(&format!("write {number} {appends}"), folder.path())).collect();
    for mut child in children {
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    drop(long_read);
    for number in 0..processes {
        let loaded = store.load(&SessionId::new(format!("writer {number}"))).await.unwrap();
        assert_eq!(loaded.records.len(), appends + 1);
    }
    assert_eq!(store.inbox(&SessionId::new("for all")).await.unwrap().len(), processes * appends);
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn as_a_child_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = std::env::var(FOLDER).expect("whoever gives a role gives a folder");
    let role: Vec<&str> = role.split(' ').collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(Path::new(&folder)).await;
        match role.as_slice() {
            ["own"] => {
                begin(&store, "owned by a child").await;
                println!("owning");
                std::io::stdout().flush().unwrap();
                // Until the parent kills us, or is gone itself.
                std::io::stdin().read_line(&mut String::new()).unwrap();
            }
            ["write", number, appends] => {
                let (mut journal, lease) = begin(&store, &format!("writer {number}")).await;
                for number in 0..appends.parse().unwrap() {
                    store.append(&lease, journal.say(&format!("append {number}"))).await.unwrap();
                    store.post(&SessionId::new("for all"), &Action::Stop).await.unwrap();
                }
            }
            unknown => panic!("{unknown:?} is no role"),
        }
    });
}

const ROLE: &str = "QUIRE_TEST_ROLE";
const FOLDER: &str = "QUIRE_TEST_FOLDER";

trait SpawnAs {
    fn spawn_as(role: &str, folder: &Path) -> Self;
}

impl SpawnAs for Child {
    fn spawn_as(role: &str, folder: &Path) -> Self {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sqlite::as_a_child_process", "--ignored", "--nocapture"])
            .env(ROLE, role)
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

async fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder).await.unwrap()
}

async fn begin(store: &SqliteStore, session: &str) -> (Journal, Lease) {
    let mut journal = Journal::new(session);
    let first = journal.say("begin");
    let lease = store.create(journal.session(), first).await.unwrap();
    (journal, lease)
}

async fn connect(folder: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(folder.join("quire.db")).create_if_missing(true).connect().await.unwrap()
}

async fn check_refused(folder: &Path, expected: Expect) {
    let error = SqliteStore::open(folder).await.err().expect("it is refused");
    said(folder, &error, &expected);
}

fn said(folder: &Path, error: &StoreError, expected: &Expect) {
    let folder = folder.to_str().expect("a temporary folder has a plain name");
    expected.assert_eq(&error.to_string().replace(folder, "DATA"));
}
