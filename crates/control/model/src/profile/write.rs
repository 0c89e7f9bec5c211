//! Writing a profile, and values of it, as TOML that a user will read and edit.
//!
//! The only place where text of TOML is made: names and commands are what a user types, and a string of JSON or of a
//! shell is not always one of TOML.

use serde::Serialize;
use toml::ser::ValueSerializer;

use super::{GuideLine, Profile, Want};
use crate::{KnobId, PlacementRequest};

/// A value as TOML says it behind a `=`: a text in quotes, a list, an inline table. It is read back as it was.
///
/// # Panics
/// For what TOML has no word for, such as nothing: no value of the control plane is that.
#[must_use]
pub fn toml_value<T: Serialize + ?Sized>(value: &T) -> String {
    let mut text = String::new();
    value.serialize(ValueSerializer::new(&mut text)).expect("plain data with text keys");
    text
}

/// What of a profile has tables of its own.
#[derive(Serialize)]
struct Tables<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<&'a PlacementRequest>,
    #[serde(skip_serializing_if = "<[GuideLine]>::is_empty")]
    guide: &'a [GuideLine],
}

impl Profile {
    /// The text of a file that is read as this profile.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text =
            format!("name    = {}\nsummary = {}\n", toml_value(&self.name), toml_value(&self.summary));
        if !self.inherits.is_empty() {
            text += &format!("inherits = {}\n", toml_value(&self.inherits));
        }
        let lists = [("programs", &self.programs), ("packages", &self.packages)];
        for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            text += &format!("{key} = {}\n", toml_value(list));
        }
        let limits = [("service_min", &self.service_min), ("service_max", &self.service_max)];
        for (key, limit) in limits {
            text +=
                &limit.as_ref().map(|limit| format!("{key} = {}\n", toml_value(limit))).unwrap_or_default();
        }
        text += "\n[want]\n";
        for (id, want) in &self.want {
            text += &format!("{}\n", want.toml_line(id));
        }
        if self.placement.is_some() || !self.guide.is_empty() {
            let tables = Tables { placement: self.placement.as_ref(), guide: &self.guide };
            text += &format!("\n{}", toml::to_string(&tables).expect("plain data with text keys"));
        }
        text
    }
}

impl Want {
    /// The line by which a profile wants this of a knob; several lines for several cases.
    #[must_use]
    pub fn toml_line(&self, id: &KnobId) -> String {
        let value = match self {
            Self::Cases(cases) => {
                let lines: String = cases.iter().map(|case| format!("  {},\n", toml_value(case))).collect();
                format!("[\n{lines}]")
            }
            other => toml_value(other),
        };
        format!("{} = {value}", toml_value(id.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Catalogue;

    fn read(text: &str) -> Profile {
        toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn what_we_ship_is_written_as_it_was_read() {
        let catalogue = Catalogue::embedded().expect("sound");
        let (mut names, mut guides) = (0, 0);
        for profile in catalogue.profile_names().map(|name| catalogue.profile(name).expect("sound")) {
            assert_eq!(read(&profile.to_toml()), profile);
            (names, guides) = (names + 1, guides + profile.guide.len());
        }
        assert!(names > 3 && guides > 3, "{names} profiles, {guides} lines of guides");
    }

    #[test]
    fn parents_and_a_placement_are_kept() {
        let text = "name = \"a\"\nsummary = \"s\"\ninherits = [\"b\", \"c\"]\n[want]\n\"vm.swappiness\" = 5\n\
                    [placement]\nhousekeeping = \"0,4\"\ninterrupts = \"service\"\nleave = [\"ahci*\"]\n\
                    [[placement.service]]\nunit = \"x.service\"\nnode = 1\nmemory = \"preferred\"\n\
                    isolate = true\ndevices = [\"eno1\"]\npools = { \"hugepages.2m\" = 1073741824 }\n\
                    [[placement.service]]\nunit = \"y.service\"\ncpus = \"2-3\"\n";
        let profile = read(text);
        assert_eq!(read(&profile.to_toml()), profile);
    }

    #[test]
    fn wanted_values_are_lines_that_people_write_themselves() {
        let text = "name = \"a\"\nsummary = \"s\"\n[want]\n\
                    \"block.scheduler\" = [{ value = \"none\", only = \"nvme*\" }, { value = \"bfq\" }]\n\
                    \"hugepages.1g\" = { total_bytes = [5, 6], nodes = [0, 1] }\n\
                    \"hugepages.2m\" = { need_bytes = 5, nodes = [0, 1] }\n\
                    \"hugepages.32m\" = { total_bytes = 7 }\n\
                    \"vm.min_free_kbytes\" = { from = \"min_free_half_percent\" }\n";
        let written = "name    = \"a\"\nsummary = \"s\"\n\n[want]\n\
                       \"block.scheduler\" = [\n  { value = \"none\", only = \"nvme*\" },\n  { value = \"bfq\" },\n]\n\
                       \"hugepages.1g\" = { total_bytes = [5, 6], nodes = [0, 1] }\n\
                       \"hugepages.2m\" = { need_bytes = 5, nodes = [0, 1] }\n\
                       \"hugepages.32m\" = { total_bytes = 7 }\n\
                       \"vm.min_free_kbytes\" = { from = \"min_free_half_percent\" }\n";
        assert_eq!(read(text).to_toml(), written);
    }

    proptest! {
        #[test]
        fn every_text_of_a_user_reads_back_the_same(
            text in any::<String>(), odd in "[\"'\\\\\\x00-\\x20\\x7f-\\x{9f}]{0,12}",
        ) {
            for text in [text, odd] {
                let want = Want::Text(text.clone());
                let profile = Profile {
                    name: text.clone(),
                    summary: text.clone(),
                    inherits: vec![text],
                    want: [(KnobId::new("vm.x"), want)].into(),
                    placement: None,
                    ..Profile::default()
                };
                prop_assert_eq!(read(&profile.to_toml()), profile);
            }
        }
    }
}
