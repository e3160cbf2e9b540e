//! Many sessions at once. An idle session costs disk and no memory: it is folded in when something comes, and let go after.
//! Only the last few are kept at hand, so that a play of a thousand turns is not read again at each.
//!
//! User actions go through the session's durable inbox, whoever owns the session: this process, or another on the same
//! folder. Each is answered once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quire_core::deep_task::DeepTask;
use quire_core::event::{Action, Start};
use quire_core::ids::{SessionId, TaskId};
use quire_core::journal::{Damage, Record};
use quire_core::session::Phase;
use tokio::sync::{Notify, broadcast};

use crate::driver::{self, Drive, Errand, Opened, Ports, StartError};
use crate::ports::{Answered, StoreError, Summary};
use crate::watch::Watched;

/// How often one who waits for another process looks again.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// Sessions kept at hand after they were driven.
const AT_HAND_MAX: usize = 16;
/// Watched things kept for a slow listener before it misses some.
const WATCH_BACKLOG: usize = 4096;

/// The sessions of one data folder, as far as this process drives them.
#[derive(Clone)]
pub struct Fleet {
    ports: Ports,
    watch: broadcast::Sender<Watched>,
    driven: Arc<Mutex<HashMap<SessionId, Arc<Notify>>>>,
    at_hand: Arc<Mutex<VecDeque<Opened>>>,
}

impl Fleet {
    /// Makes a fleet that drives nothing yet.
    pub fn new(ports: Ports) -> Self {
        Self { ports, watch: broadcast::Sender::new(WATCH_BACKLOG), driven: Arc::default(), at_hand: Arc::default() }
    }

    /// Listens to what happens from now on in sessions that this process drives.
    pub fn watch(&self) -> broadcast::Receiver<Watched> {
        self.watch.subscribe()
    }

    /// Begins a session; it waits for its user.
    pub async fn start(&self, id: &SessionId, start: Start) -> Result<(), StartError> {
        driver::start(&self.ports, id, start).await
    }

    /// Posts a user action and waits for its answer, not for what follows from it.
    pub async fn act(&self, id: &SessionId, action: &Action) -> Result<Answered, StoreError> {
        let mut watch = self.watch.subscribe();
        let ticket = self.ports.store.post(id, action).await?;
        loop {
            if let Some(answer) = self.ports.store.answer(ticket).await? {
                return Ok(answer);
            }
            self.wake(id, Errand::Answer);
            self.next_sign(id, &mut watch).await.map_err(|error| still_posted(id, error))?;
        }
    }

    /// Waits until the session's models are done: it waits for the user, is done, or cannot go on. Drives it if nobody else does.
    pub async fn settled(&self, id: &SessionId) -> Result<Summary, StoreError> {
        let mut watch = self.watch.subscribe();
        loop {
            let summary = self.ports.store.summary(id).await?;
            let has_post = !self.ports.store.inbox(id).await?.is_empty();
            if !driver::is_running(&summary) && !has_post {
                return Ok(summary);
            }
            self.wake(id, Errand::GoOn);
            let sign = self.next_sign(id, &mut watch).await?;
            // Nobody can go on with a damaged journal, whatever the list says of the session.
            if sign == Sign::Left && matches!(self.look(id).await?.session.phase(), Phase::Error { .. }) {
                return Ok(summary);
            }
        }
    }

    /// Waits until a deep task is over, or all are where none is named. Drives the session if nobody else does.
    ///
    /// The session's models may go on, and so may other tasks.
    pub async fn tasks_settled(&self, id: &SessionId, task: Option<TaskId>) -> Result<Opened, StoreError> {
        let mut watch = self.watch.subscribe();
        loop {
            let opened = self.look(id).await?;
            let is_meant = |other: &&DeepTask| task.is_none_or(|task| task == other.id);
            let is_readable = !matches!(opened.session.phase(), Phase::Error { .. });
            let runs = is_readable && opened.session.tasks().iter().filter(is_meant).any(DeepTask::is_running);
            if !runs {
                return Ok(opened);
            }
            self.wake(id, Errand::GoOn);
            self.next_sign(id, &mut watch).await?;
        }
    }

    /// Reads a session as it stands.
    pub async fn look(&self, id: &SessionId) -> Result<Opened, StoreError> {
        if let Some(known) = self.at_hand(id)
            && known.is_present(self.ports.store.as_ref()).await?
        {
            return Ok(known);
        }
        driver::open(self.ports.store.as_ref(), id).await
    }

    /// Reads what has happened in a session, and what ends its journal early.
    pub async fn history(&self, id: &SessionId) -> Result<(Vec<Record>, Option<Damage>), StoreError> {
        driver::history(self.ports.store.as_ref(), id).await
    }

    fn at_hand(&self, id: &SessionId) -> Option<Opened> {
        let at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
        at_hand.iter().find(|opened| opened.session.id() == id).cloned()
    }

    fn take_from_hand(&self, id: &SessionId) -> Option<Opened> {
        let mut at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
        let place = at_hand.iter().position(|opened| opened.session.id() == id)?;
        at_hand.remove(place)
    }

    fn keep_at_hand(&self, opened: Opened) {
        let mut at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
        at_hand.push_front(opened);
        at_hand.truncate(AT_HAND_MAX);
    }

    /// Drives a session in the background, unless this process does so already; then its driver is nudged.
    pub fn wake(&self, id: &SessionId, errand: Errand) {
        let mut driven = self.driven.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(nudge) = driven.get(id) {
            nudge.notify_one();
            return;
        }
        let nudge = Arc::new(Notify::new());
        driven.insert(id.clone(), nudge.clone());
        tokio::spawn(self.clone().drive(id.clone(), errand, nudge));
    }

    async fn drive(self, id: SessionId, errand: Errand, nudge: Arc<Notify>) {
        let known = self.take_from_hand(&id);
        let work = {
            let (fleet, id) = (self.clone(), id.clone());
            tokio::spawn(async move { driver::drive(&fleet.ports, &id, known, errand, &nudge, &fleet.watch).await })
        };
        let driven = work.await.unwrap_or_else(|fault| {
            let message = format!("a fault in quire itself: {fault}; what was recorded is safe, `quire resume {id}` goes on");
            Err(StoreError::Unusable { message })
        });
        let watched = match driven {
            Ok(Drive::Quiet(opened)) => {
                self.keep_at_hand(*opened);
                Watched::Left { session: id.clone() }
            }
            Ok(Drive::Elsewhere) => Watched::Left { session: id.clone() },
            Err(error) => Watched::Failed { session: id.clone(), error },
        };
        self.driven.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        // Who posted while this driver was on its way out hears of it here and wakes another.
        self.watch.send(watched).ok();
    }

    /// Waits for something to happen to a session, here or in another process.
    async fn next_sign(&self, id: &SessionId, watch: &mut broadcast::Receiver<Watched>) -> Result<Sign, StoreError> {
        let sign = async {
            loop {
                match watch.recv().await {
                    Ok(Watched::Failed { session, error }) if session == *id => return Err(error),
                    Ok(Watched::Left { session }) if session == *id => return Ok(Sign::Left),
                    Ok(Watched::Recorded { session, .. } | Watched::Refused { session }) if session == *id => {
                        return Ok(Sign::Moved);
                    }
                    Ok(_) => {}
                    Err(broadcast::error::RecvError::Lagged(_) | broadcast::error::RecvError::Closed) => return Ok(Sign::Moved),
                }
            }
        };
        tokio::select! {
            sign = sign => sign,
            () = tokio::time::sleep(LOOK_PAUSE) => Ok(Sign::Moved),
        }
    }
}

/// What those who wait for a session are woken by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// Something may have happened.
    Moved,
    /// This process does not drive it any more.
    Left,
}

/// Says of a failure that the posted action has not gone with it.
fn still_posted(id: &SessionId, error: StoreError) -> StoreError {
    match error {
        StoreError::Unusable { message } => StoreError::Unusable {
            message: format!(
                "{message}; what you asked for lies in the session's inbox, and `quire resume {id}` takes it from there"
            ),
        },
        StoreError::NoSession(_) | StoreError::SessionExists(_) | StoreError::Fenced(_) => error,
    }
}
