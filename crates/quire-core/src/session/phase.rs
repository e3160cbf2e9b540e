//! Who may act: the five phases, and what exactly the user is waited for.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::event::Action;
use crate::ids::{ArtifactId, CallId, DecisionId, RunId, SkillId, Timestamp};
use crate::question::Card;
use crate::tag::RoleId;

/// Who may act now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Nobody: the session has not begun.
    Idle,
    /// A model works, or chance.
    Running(Running),
    /// The user, and for one reason.
    WaitingUser(Waiting),
    /// Nobody any more.
    Done,
    /// Nobody: what is on disk cannot be read any further.
    Error {
        /// What is wrong, and where.
        reason: String,
    },
}

/// The one thing that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Running {
    /// Draws are made for the turn that begins; the agent comes next.
    Drawing,
    /// A model is asked.
    Asking(Asking),
}

/// The one call that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// The call.
    pub call: CallId,
    /// Who asks.
    pub asker: Asker,
    /// Attempts journaled so far.
    pub attempts: u32,
    /// When the first attempt was journaled.
    pub asked: Option<Timestamp>,
}

/// Who asks a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asker {
    /// The main agent.
    Agent,
    /// A worker.
    Worker(RunId),
}

/// The one reason the user is waited for, with all its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// For the choice of a pack.
    SkillSelection,
    /// For the fields of the intake; they stand in the session.
    Intake,
    /// For the user's words.
    Input {
        /// The opening words, or what the agent says.
        message: Option<Arc<str>>,
        /// What went wrong, where something did.
        cause: Option<Cause>,
        /// The agent's questions; all optional.
        card: Option<Card>,
    },
    /// For leave to run a worker.
    ApproveStep(Decision),
    /// For a verdict.
    ReviewArtifact {
        /// The artifact.
        artifact: ArtifactId,
        /// The worker's questions; all optional.
        card: Option<Card>,
        /// What went wrong with the rerun, where something did.
        cause: Option<Cause>,
    },
    /// For answers without which a run does not go on.
    WorkerQuestions {
        /// The run.
        run: RunId,
        /// Its questions.
        card: Card,
    },
    /// For an instruction how to mend an artifact.
    Revision {
        /// The artifact.
        artifact: ArtifactId,
        /// What went wrong with the rerun, where something did.
        cause: Option<Cause>,
    },
}

/// A worker the agent chose, before the user's leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Its number.
    pub id: DecisionId,
    /// The skill.
    pub skill: SkillId,
    /// The role.
    pub role: Option<RoleId>,
    /// Why the agent chose it.
    pub reason: Arc<str>,
    /// The agent's call that waits for the outcome.
    pub(super) answers: String,
}

/// Why work stopped short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The kind of stop.
    pub kind: CauseKind,
    /// What happened, in the provider's own words where there are some.
    pub message: Arc<str>,
    /// What `retry` does again.
    pub again: Asker,
}

/// Kinds of stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// A model or a worker failed.
    Failed,
    /// The user stopped it.
    Stopped,
    /// The agent used up its rounds.
    BurstSpent,
    /// The session used up its budget.
    BudgetSpent,
}

impl CauseKind {
    /// The kind's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::BurstSpent => "burst_spent",
            Self::BudgetSpent => "budget_spent",
        }
    }
}

/// The main agent's rounds since the user's last hard event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Burst {
    /// Rounds asked.
    pub used: u32,
    /// Rounds allowed.
    pub max: u32,
}

impl Burst {
    /// Rounds allowed where neither pack nor user says.
    pub const MAX_DEFAULT: u32 = 12;

    /// Says whether no further round may be asked.
    pub fn is_spent(self) -> bool {
        self.used >= self.max
    }
}

/// The business a session is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Making the settings.
    Design,
    /// Running turns.
    Play,
    /// Over.
    Done,
}

impl Stage {
    /// The stage's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Design => "design",
            Self::Play => "play",
            Self::Done => "done",
        }
    }
}

macro_rules! verbs {
    ($($(#[$doc:meta])* $verb:ident $name:literal)*) => {
        /// What a user can do, by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Verb {
            $($(#[$doc])* $verb,)*
        }

        impl Verb {
            /// All of them, in SPEC's order.
            pub const ALL: &[Verb] = &[$(Verb::$verb),*];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Verb::$verb => $name,)*
                }
            }
        }
    };
}

verbs! {
    /// Chooses a pack.
    SelectPack "select_pack"
    /// Says something.
    SubmitInput "submit_input"
    /// Closes the intake.
    ConfirmIntake "confirm_intake"
    /// Lets a worker run.
    Approve "approve"
    /// Does not let it run.
    RejectStep "reject_step"
    /// Makes an artifact a fact.
    Accept "accept"
    /// Sends it back.
    Reject "reject"
    /// Throws it away.
    Discard "discard"
    /// Answers a card.
    Answer "answer"
    /// Closes a card.
    Skip "skip"
    /// Does again what failed.
    Retry "retry"
    /// Sets the budget.
    SetBudget "set_budget"
    /// Stops what runs.
    Stop "stop"
    /// Ends the session.
    Finish "finish"
    /// Writes a text.
    EditItem "edit_item"
    /// Writes a cell.
    EditCell "edit_cell"
    /// Hands a cell back.
    ReleaseCell "release_cell"
    /// Moves to another version of the pack.
    UpgradePack "upgrade_pack"
    /// Shows what is hidden.
    Reveal "reveal"
    /// Starts a deep task.
    StartTask "start_task"
    /// Ends a deep task.
    CancelTask "cancel_task"
}

impl Action {
    /// Returns what is done, without the how.
    pub fn verb(&self) -> Verb {
        match self {
            Self::SelectPack { .. } => Verb::SelectPack,
            Self::SubmitInput { .. } => Verb::SubmitInput,
            Self::ConfirmIntake => Verb::ConfirmIntake,
            Self::Approve { .. } => Verb::Approve,
            Self::RejectStep { .. } => Verb::RejectStep,
            Self::Accept { .. } => Verb::Accept,
            Self::Reject { .. } => Verb::Reject,
            Self::Discard { .. } => Verb::Discard,
            Self::Answer { .. } => Verb::Answer,
            Self::Skip { .. } => Verb::Skip,
            Self::Retry => Verb::Retry,
            Self::SetBudget { .. } => Verb::SetBudget,
            Self::Stop => Verb::Stop,
            Self::Finish => Verb::Finish,
            Self::EditItem { .. } => Verb::EditItem,
            Self::EditCell { .. } => Verb::EditCell,
            Self::ReleaseCell { .. } => Verb::ReleaseCell,
            Self::UpgradePack { .. } => Verb::UpgradePack,
            Self::Reveal => Verb::Reveal,
            Self::StartTask { .. } => Verb::StartTask,
            Self::CancelTask { .. } => Verb::CancelTask,
        }
    }
}

impl Phase {
    /// Says whether a user action is heard in this phase and for this reason.
    ///
    /// [`Session::hears`](super::Session::hears) knows more: whether what the action waits for is there.
    pub fn hears(&self, verb: Verb) -> bool {
        match self {
            Self::Idle | Self::Error { .. } => false,
            Self::Done => verb == Verb::Reveal,
            Self::Running(_) => {
                matches!(verb, Verb::Stop | Verb::Finish | Verb::SetBudget | Verb::Reveal | Verb::StartTask | Verb::CancelTask)
            }
            Self::WaitingUser(waiting) => waiting.hears(verb),
        }
    }

    /// The phase's name on the wire.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running(_) => "running",
            Self::WaitingUser(_) => "waiting_user",
            Self::Done => "done",
            Self::Error { .. } => "error",
        }
    }

    /// Returns what the user is waited for.
    pub fn waiting(&self) -> Option<&Waiting> {
        match self {
            Self::WaitingUser(waiting) => Some(waiting),
            Self::Idle | Self::Running(_) | Self::Done | Self::Error { .. } => None,
        }
    }

    /// Returns what is under way.
    pub fn running(&self) -> Option<&Running> {
        match self {
            Self::Running(running) => Some(running),
            Self::Idle | Self::WaitingUser(_) | Self::Done | Self::Error { .. } => None,
        }
    }

    /// Returns the call under way.
    pub fn asking(&self) -> Option<&Asking> {
        match self {
            Self::Running(Running::Asking(asking)) => Some(asking),
            Self::Running(Running::Drawing) | Self::Idle | Self::WaitingUser(_) | Self::Done | Self::Error { .. } => None,
        }
    }
}

impl Running {
    /// Returns who is at work, or comes next.
    pub fn asker(&self) -> Asker {
        match self {
            Self::Drawing => Asker::Agent,
            Self::Asking(asking) => asking.asker,
        }
    }

    /// Returns the effect that is owed while this is under way.
    pub(super) fn owes(&self) -> Effect {
        match self {
            Self::Drawing => Effect::Draw,
            Self::Asking(asking) => Effect::AskModel { call: asking.call },
        }
    }

    /// Returns the effect that breaks it off, where there is something to break off.
    pub(super) fn broken_off_by(&self) -> Option<Effect> {
        match self {
            Self::Drawing => None,
            Self::Asking(asking) => Some(Effect::CancelModel { call: asking.call }),
        }
    }
}

impl Waiting {
    fn hears(&self, verb: Verb) -> bool {
        match verb {
            Verb::SetBudget | Verb::Finish | Verb::EditItem | Verb::EditCell | Verb::ReleaseCell | Verb::Reveal => true,
            Verb::StartTask | Verb::CancelTask => true,
            Verb::Stop => false,
            Verb::SelectPack => matches!(self, Self::SkillSelection),
            Verb::SubmitInput => !matches!(self, Self::SkillSelection),
            Verb::ConfirmIntake => matches!(self, Self::Intake),
            Verb::Approve | Verb::RejectStep => matches!(self, Self::ApproveStep(_)),
            Verb::Accept => matches!(self, Self::ReviewArtifact { .. } | Self::Revision { .. }),
            Verb::Reject => matches!(self, Self::ReviewArtifact { .. }),
            Verb::Discard => matches!(self, Self::ReviewArtifact { .. } | Self::Revision { .. } | Self::WorkerQuestions { .. }),
            Verb::Answer | Verb::Skip => self.card().is_some(),
            Verb::Retry => self.cause().is_some(),
            Verb::UpgradePack => matches!(self, Self::Input { cause: None, card: None, .. }),
        }
    }

    /// The reason's name on the wire.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::SkillSelection => "skill_selection",
            Self::Intake => "intake",
            Self::Input { .. } => "input",
            Self::ApproveStep(_) => "approve_step",
            Self::ReviewArtifact { .. } => "review_artifact",
            Self::WorkerQuestions { .. } => "worker_questions",
            Self::Revision { .. } => "revision",
        }
    }

    /// Returns the open card.
    pub fn card(&self) -> Option<&Card> {
        match self {
            Self::Input { card, .. } | Self::ReviewArtifact { card, .. } => card.as_ref(),
            Self::WorkerQuestions { card, .. } => Some(card),
            Self::SkillSelection | Self::Intake | Self::ApproveStep(_) | Self::Revision { .. } => None,
        }
    }

    /// Returns why work stopped short.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Input { cause, .. } | Self::ReviewArtifact { cause, .. } | Self::Revision { cause, .. } => cause.as_ref(),
            Self::SkillSelection | Self::Intake | Self::ApproveStep(_) | Self::WorkerQuestions { .. } => None,
        }
    }

    /// Returns the artifact in question.
    pub fn artifact(&self) -> Option<ArtifactId> {
        match self {
            Self::ReviewArtifact { artifact, .. } | Self::Revision { artifact, .. } => Some(*artifact),
            Self::SkillSelection | Self::Intake | Self::Input { .. } | Self::ApproveStep(_) | Self::WorkerQuestions { .. } => {
                None
            }
        }
    }
}
