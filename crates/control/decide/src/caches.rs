//! Shares of the caches that a profile wants by itself, and that this machine does not have.
//!
//! The kernel would refuse most of them at the write; a bandwidth that is no step of the machine it would round.

use planish_model::{Access, CacheControl, Knob, Observation, Schemata, ShareOf, ValueType, Want, is_cache};

use crate::error::DecideError;

/// Refuses ways and bandwidths that this machine does not have. Where nothing is shared out, the verdict says so.
///
/// # Errors
/// The resource and its cache, with the reason.
pub(crate) fn refuse(knob: &Knob, want: &Want, observation: &Observation) -> Result<(), DecideError> {
    let (ValueType::Share { share: ShareOf::Schemata }, Some(caches)) = (&knob.r#type, &observation.caches)
    else {
        return Ok(());
    };
    let here =
        observation.knobs.get(&knob.id).into_iter().flatten().any(|reading| reading.access != Access::Absent);
    let literals = want.literals();
    for schemata in literals.iter().filter(|_| here).filter_map(|value| Schemata::parse(value)) {
        refuse_schemata(knob, &schemata, caches)?;
    }
    Ok(())
}

fn refuse_schemata(knob: &Knob, wanted: &Schemata, caches: &CacheControl) -> Result<(), DecideError> {
    let now = Schemata::parse(&caches.default).unwrap_or_default();
    for (resource, domains) in &wanted.0 {
        for (domain, value) in domains {
            let reason = match (caches.resources.get(resource), now.0.get(resource)) {
                (Some(limits), Some(there)) if there.contains_key(domain) => match is_cache(resource) {
                    true => {
                        limits.refusal_of_ways(*value).or_else(|| used(caches, resource, *domain, *value))
                    }
                    false => limits.refusal_of_bandwidth(*value),
                },
                (Some(_), Some(there)) => {
                    let domains: Vec<String> = there.keys().map(ToString::to_string).collect();
                    Some(format!("there is none of this number: there are {}", domains.join(", ")))
                }
                _ => {
                    let there: Vec<&str> = caches.resources.keys().map(String::as_str).collect();
                    Some(format!("this machine shares out {}", there.join(", ")))
                }
            };
            if let Some(reason) = reason {
                let (knob, resource, domain) = (knob.id.clone(), resource.clone(), *domain);
                return Err(DecideError::NoShare { knob, resource, domain, reason });
            }
        }
    }
    Ok(())
}

/// The group that has some of these ways to itself.
fn used(caches: &CacheControl, resource: &str, domain: u32, ways: u64) -> Option<String> {
    let theirs = |schemata: &str| Schemata::parse(schemata)?.0.get(resource)?.get(&domain).copied();
    let exclusive = caches.groups.iter().filter(|(_, group)| group.mode != "shareable");
    exclusive
        .filter(|(_, group)| theirs(&group.schemata).is_some_and(|theirs| theirs & ways != 0))
        .map(|(name, group)| {
            format!("{ways:x} has ways that the group {name} has to itself ({})", group.mode)
        })
        .next()
}
