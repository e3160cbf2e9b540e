//! Reads `llm-bindings.yaml`: which model profile serves whom. Names of profiles only; a key in it is an error.

use std::collections::BTreeMap;

use super::Bindings;
use super::fields::{self, Fields};
use super::findings::{Findings, Placed};
use super::reference;
use super::yaml::{self, Node, Value};
use crate::ids::SkillId;
use crate::tag::RoleId;

/// The file's path in a pack.
pub(super) const BINDINGS: &str = "llm-bindings.yaml";

/// Reads the file; `skills` are the ids that the manifest lists.
pub(super) fn read<'a>(text: &'a str, skills: &[&str], findings: &mut Findings<'a>) -> Bindings {
    let root = yaml::parse(BINDINGS, text, 0, text.len(), findings).filter(|root| root.value != Value::Null);
    let Some(mut fields) = root.and_then(|root| Fields::of(&reference::BINDINGS, root, findings)) else {
        return Bindings::default();
    };
    let default = fields.take("default").and_then(|node| profile("default", node, findings)).map(|name| name.value);
    let workers = [fields.map("workers", findings), fields.map("skills", findings)].concat();
    let roles = fields.map("roles", findings);
    fields.finish(findings);

    let mut bindings = Bindings { default, workers: BTreeMap::new(), roles: BTreeMap::new() };
    for (skill, name) in profiles(workers, findings) {
        if !skills.contains(&skill.value.as_str()) {
            let message = format!("the pack has no skill `{}`", skill.value);
            findings.warning(skill.at, "unknown-skill", message, "write a skill's id, or drop the line");
        }
        bindings.workers.insert(SkillId::new(skill.value), name);
    }
    for (role, name) in profiles(roles, findings) {
        if let Some(role) = fields::parsed(RoleId::parse, role, findings) {
            bindings.roles.insert(role.value.as_str().to_owned(), name);
        }
    }
    bindings
}

fn profiles<'a>(entries: Vec<(Placed<'a, String>, Node<'a>)>, findings: &mut Findings<'a>) -> Vec<(Placed<'a, String>, String)> {
    let mut profiles = Vec::with_capacity(entries.len());
    for (who, node) in entries {
        if fields::looks_like_a_key(&who.value) {
            fields::unknown(&reference::BINDINGS, &who.value, who.at, findings);
        } else if let Some(name) = profile(&who.value, node, findings) {
            profiles.push((who, name.value));
        }
    }
    profiles
}

/// Reads a profile's name: as a text, or as a map with `profile` or `llmProfileId`. An empty one binds nothing.
fn profile<'a>(who: &str, node: Node<'a>, findings: &mut Findings<'a>) -> Option<Placed<'a, String>> {
    match node.value {
        Value::Null => None,
        Value::Text(ref name) if name.trim().is_empty() => None,
        Value::Map(_) => {
            let mut fields = Fields::of(&reference::BINDING, node, findings)?;
            let name = [fields.take("profile"), fields.take("llmProfileId")].into_iter().flatten().next();
            fields.finish(findings);
            name.and_then(|name| profile(who, name, findings))
        }
        Value::Bool(_) | Value::Number(..) | Value::Text(_) | Value::List(_) => fields::text(who, node, findings),
    }
}
