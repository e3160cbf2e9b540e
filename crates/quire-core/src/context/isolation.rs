//! What a run may see of the blackboard and hear of notes: the one place where isolation is decided.
//!
//! Asked for each tag before anything of it is fetched, whichever pattern meant it. Fails closed: what is not surely the
//! run's own is kept from it. A run's own earlier text is its own and is not asked about here.
//!
//! `pack check` asks the same rules about patterns ([`hidden_whatever_runs`]), so that it warns of exactly what a run will
//! never see.

use super::{Note, NoteSource};
use crate::pack::{Isolation, Skill};
use crate::tag::{Pattern, RoleId, Tag};

/// First parts of the tags that belong to roles; the second part is the role.
const ROLE_ROOTS: [&str; 2] = ["角色", "role"];

/// Parts of a role's tags that are for the user's eyes.
const USER_ONLY: [&str; 3] = ["思考", "推理", "thought"];

/// What one run may see.
pub(super) struct Sight<'a> {
    skill: &'a Skill,
    role: Option<&'a RoleId>,
}

impl<'a> Sight<'a> {
    /// Makes the sight of a run.
    pub(super) fn of(skill: &'a Skill, role: Option<&'a RoleId>) -> Self {
        Self { skill, role }
    }

    /// Says whether texts of `tag` may reach the run at all.
    pub(super) fn allows(&self, tag: &Tag) -> bool {
        let pattern = Pattern::from(tag);
        let declared = self.skill.input_tags.iter().any(|input| input.matches(tag));
        let in_view = match self.skill.isolation {
            Some(Isolation::RolePov) => self.is_in_own_view(tag),
            Some(Isolation::BlindReview) | None => true,
        };
        // `blind` holds under every isolation, also under none: who writes it down means it.
        declared && in_view && blinded(self.skill.blind.iter(), &pattern).is_none()
    }

    /// Says whether a note reaches the run.
    pub(super) fn hears(&self, note: &Note) -> bool {
        match (&note.from, self.skill.isolation) {
            (NoteSource::User | NoteSource::Check, _) | (NoteSource::Review(_), None) => true,
            (NoteSource::Review(_), Some(Isolation::RolePov | Isolation::BlindReview)) => false,
        }
    }

    /// Of roles' tags only the own role's, without what is for the user only. Nobody's role is no role: without one, no
    /// role's tag is in view, and neither is the bare `角色`, which may tell of all of them.
    fn is_in_own_view(&self, tag: &Tag) -> bool {
        let pattern = Pattern::from(tag);
        let is_own = tag.parts().nth(1).is_some_and(|role| Some(role) == self.role.map(RoleId::as_str));
        !is_of_roles(&pattern) || (is_own && user_only(&pattern).is_none())
    }
}

/// Says why no run of a skill ever sees anything that `pattern` means; none where some run may.
pub(crate) fn hidden_whatever_runs<'a>(
    isolation: Option<Isolation>,
    blind: impl Iterator<Item = &'a Pattern>,
    pattern: &Pattern,
) -> Option<String> {
    let of_user = match isolation {
        Some(Isolation::RolePov) => user_only(pattern).map(|part| format!("`role_pov` keeps `{part}` from every worker")),
        Some(Isolation::BlindReview) | None => None,
    };
    of_user.or_else(|| blinded(blind, pattern).map(|blind| format!("`blind` hides `{blind}` and its life-cycle siblings")))
}

/// Returns the part of a role's tags that makes them the user's alone.
fn user_only(pattern: &Pattern) -> Option<&str> {
    let part = pattern.parts().skip(2).find(|part| is_any_of(part, &USER_ONLY));
    part.filter(|_| is_of_roles(pattern))
}

fn is_of_roles(pattern: &Pattern) -> bool {
    pattern.parts().next().is_some_and(|root| is_any_of(root, &ROLE_ROOTS))
}

/// Returns the blind pattern that hides all `pattern` means: itself, or under another name of its life.
fn blinded<'a>(mut blind: impl Iterator<Item = &'a Pattern>, pattern: &Pattern) -> Option<&'a Pattern> {
    let names = pattern.siblings();
    blind.find(|blind| names.iter().any(|name| blind.covers(name)))
}

/// Tags tell upper from lower case; a pack that writes `Role.B.Thought` still means a role's thought.
fn is_any_of(part: &str, words: &[&str]) -> bool {
    words.iter().any(|word| part.eq_ignore_ascii_case(word))
}
