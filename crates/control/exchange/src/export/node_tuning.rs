//! An object of the Node Tuning operator: a profile of tuned, and the nodes that it is for.

use super::{ExportedFile, Head, tuned};
use crate::item::Item;

pub(super) fn files(head: &Head<'_>, items: &[Item]) -> Vec<ExportedFile> {
    let name = format!("planish-{}", head.name);
    let data: String = tuned::text(head, items)
        .lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("      {line}\n") })
        .collect();
    let text = format!(
        "{}apiVersion: tuned.openshift.io/v1\nkind: Tuned\nmetadata:\n  name: {name}\n  \
         namespace: openshift-cluster-node-tuning-operator\nspec:\n  profile:\n  - name: {name}\n    data: |\n{data}  \
         recommend:\n  - match:\n    - label: planish.dev/profile\n      value: \"{}\"\n    \
         priority: 20\n    profile: {name}\n",
        head.comment(),
        head.name
    );
    vec![ExportedFile { path: format!("{name}.yaml"), text }]
}
