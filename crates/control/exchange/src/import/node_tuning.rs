//! An object of the Node Tuning operator: the profiles of tuned that it holds.

use super::collect::Collector;
use super::tuned;
use super::yaml::Node;

/// The profiles of tuned in a document, each as a text with the line numbers of the file.
pub(super) fn profiles(document: &Node) -> Vec<&Node> {
    let profiles = document.get("spec").and_then(|spec| spec.get("profile"));
    let items = profiles.map_or(&[][..], Node::items).iter();
    items.filter_map(|profile| profile.get("data")).collect()
}

pub(super) fn read(documents: &[Node], collector: &mut Collector<'_>) {
    for data in documents.iter().flat_map(profiles) {
        tuned::read(&data.numbered(), None, collector);
    }
}
