//! What must hold of the table `[placement]` of a profile on every host. What a host cannot do is decide's to refuse.

use crate::{PlacementRequest, ServiceRequest, Undo};

use super::{Catalogue, CatalogueError, located};

impl Catalogue {
    /// Checks a placement as its profile says it, before any host is looked at.
    pub(super) fn check_placement(
        &self,
        file: &str,
        text: &str,
        placement: &PlacementRequest,
    ) -> Result<(), CatalogueError> {
        for (index, service) in placement.service.iter().enumerate() {
            let at = || located(file, text, text.find(&service.unit));
            let earlier = placement.service.iter().take(index);
            let twice = earlier.into_iter().any(|other| other.unit == service.unit);
            let rule = twice.then_some("a unit is placed once").or_else(|| broken_rule(service));
            if let Some(rule) = rule {
                return Err(CatalogueError::Rule { file: at(), id: service.unit.clone(), rule });
            }
            for id in service.pools.keys() {
                let knob = self.knob_in(&at(), id)?;
                if knob.undo != Undo::Subtract || !knob.path.contains("{node}") {
                    let rule = "is no pool of a node: those are hugepages.2m and its sisters";
                    return Err(CatalogueError::Rule { file: at(), id: id.to_string(), rule });
                }
            }
        }
        Ok(())
    }
}

/// The rule that one service breaks.
fn broken_rule(service: &ServiceRequest) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@:_.-".contains(c);
    let name = service.unit.strip_suffix(".service").unwrap_or_default();
    if name.is_empty() || !service.unit.chars().all(plain) || name.starts_with('.') {
        return Some("a unit is named in full, with .service behind its name and without escapes");
    }
    if name.ends_with('@') {
        return Some("a template runs nothing by itself: name an instance of it, NAME@INSTANCE.service");
    }
    match (&service.cpus, service.node, service.cores) {
        (None, None, _) => Some("a service says its node or its cpus"),
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) => Some("cpus take the place of node and cores"),
        (_, _, Some(0)) => Some("a service gets one core or more"),
        (Some(cpus), ..) if cpus.is_empty() => Some("a service gets one core or more"),
        _ => None,
    }
}
