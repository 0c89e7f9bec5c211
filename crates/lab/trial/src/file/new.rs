//! A first trial file for the user's own workload.

use planish_model::{Catalogue, CatalogueError, Profile, nearest, quoted, toml_value};

use crate::error::TrialError;

/// What a first trial file is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTrial {
    /// Name of the trial.
    pub name: String,
    /// Its file as it will be typed; without it that of its name in the folder at hand.
    pub file: Option<String>,
    /// The command to be measured, as one line of a shell.
    pub command: String,
    /// What is asked for the worth of.
    pub worth: Option<Worth>,
}

/// What the first rung sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Worth {
    /// A profile of the catalogue, by its name.
    Profile(String),
    /// A profile that the catalogue does not have, as its file says it. The trial file holds what it wants itself: it
    /// is then whole, and so is the proof, whatever becomes of the other file.
    Own(Box<Profile>),
}

/// The text of a first trial file: it runs as it is, and its comments say what to change.
///
/// # Errors
/// The profile does not exist; the nearest one is named. Or it is one in a file that has a placement, which no trial
/// file can hold.
pub fn new(wanted: &NewTrial, catalogue: &Catalogue) -> Result<String, TrialError> {
    let rung = match &wanted.worth {
        Some(Worth::Profile(name)) => of_profile(name, catalogue)?,
        Some(Worth::Own(profile)) => of_own(profile, catalogue)?,
        None => "# Want what this host does not have: where thp.enabled is \"never\" now, this is the baseline again.\n\
                 name = \"no-thp\"\nwant = { \"thp.enabled\" = \"never\" }"
            .to_owned(),
    };
    // As it is typed; a name with a line break would end the comment.
    let file = wanted.file.clone().unwrap_or_else(|| format!("./{}.toml", wanted.name));
    let file = quoted(&file).replace(char::is_control, "?");
    let name = toml_value(&wanted.name);
    let command = toml_value(&wanted.command);
    Ok(format!(
        "# A trial: planish trial run {file}
# Each unit is one fresh start of the command. Orders are random, noise is measured first, and what is
# kept is run again. Schema: docs/schema/trial-file.json
name = {name}
summary = \"Does it pay on this machine, for this workload?\"
primary = \"cpu_s\"          # or wall_s, or a number out of your program's output: see [[workload.metric]]
# min_gain = 0.01          # what is worth keeping, as a fraction; without it by what a rung is: 0.005 to 0.02
# mode = \"step\"            # each rung over what was kept before it, instead of all against the baseline
budget_seconds = 3600      # planish trial selfcheck says what this budget can see
pairs = 32                 # of each rung at most (to 4096): there it ends, however much of the budget is left

[workload]
adapter = \"command\"        # or number, pgbench, jitter, http, slices
command = [\"sh\", \"-c\", {command}]
timeout_seconds = 600
settle_seconds = 0         # rest before each start

# With adapter = \"number\":
# [[workload.metric]]
# name = \"requests_per_s\"
# unit = \"1/s\"
# better = \"higher\"
# regex = \"Requests/sec: +([0-9.]+)\"      # or pointer = \"/requests_per_s\" for JSON

# A server that the workload is put on; rungs then change the server:
# [service]
# command = [\"my-server\", \"--port\", \"8123\"]
# ready_tcp = \"127.0.0.1:8123\"
# warmup_seconds = 5

[baseline]
name = \"as-it-is\"

[[rung]]
{rung}
"
    ))
}

fn of_profile(name: &str, catalogue: &Catalogue) -> Result<String, TrialError> {
    if catalogue.profile_names().any(|known| known == name) {
        return Ok(format!("name = {0}\nprofile = {0}", toml_value(name)));
    }
    if let Err(error @ CatalogueError::LeftOut(_)) = catalogue.profile(name) {
        return Err(TrialError::Profile(error));
    }
    Err(TrialError::UnknownProfile {
        name: name.to_owned(),
        nearest: nearest(name, catalogue.profile_names()).map(str::to_owned),
        known: catalogue.profile_names().map(str::to_owned).collect(),
    })
}

/// A rung that wants what a profile in a file wants. What the file wants itself must be had for the rung to count; a
/// single profile that it inherits stays one, taken as far as this host has it. Of several only the sum is known.
fn of_own(profile: &Profile, catalogue: &Catalogue) -> Result<String, TrialError> {
    let whole = catalogue.resolve(&profile.name, profile).map_err(TrialError::Profile)?;
    if whole.placement.is_some() {
        return Err(TrialError::Placement { name: profile.name.clone() });
    }
    let (parent, want) = match profile.inherits.as_slice() {
        [parent] => (format!("profile = {}\n", toml_value(parent)), &profile.want),
        _ => (String::new(), &whole.want),
    };
    let mut rung = format!("name = {}\n{parent}\n[rung.want]", toml_value(&profile.name));
    for (id, want) in want {
        rung.push_str(&format!("\n{}", want.toml_line(id)));
    }
    Ok(rung)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::TrialFile;

    fn wanted(profile: Option<&str>) -> NewTrial {
        NewTrial {
            name: "my-app".to_owned(),
            file: None,
            command: "./app --say \"hello\\n\" | tail -1".to_owned(),
            worth: profile.map(|name| Worth::Profile(name.to_owned())),
        }
    }

    /// What the trial file of a profile in a file wants: of a parent, and itself.
    fn own(text: &str) -> Result<(Option<String>, Vec<String>), TrialError> {
        let catalogue = Catalogue::embedded().expect("sound");
        let profile = catalogue.read_profile("own.toml", text).expect("sound");
        let text = new(&NewTrial { worth: Some(Worth::Own(Box::new(profile))), ..wanted(None) }, &catalogue)?;
        let trial = TrialFile::parse_with("my-app.toml", &text, &catalogue).expect(&text);
        let rung = &trial.rung[0];
        let want = rung.want.iter().map(|(id, want)| format!("{} {want:?}", id.get_ref())).collect();
        Ok((rung.profile.as_ref().map(|name| name.get_ref().clone()), want))
    }

    #[test]
    fn a_profile_in_a_file_is_wanted_by_the_trial_file_itself() {
        let want =
            "[want]\n\"vm.swappiness\" = 5\n\"block.scheduler\" = { value = \"none\", only = \"nvme*\" }\n";
        let (parent, wanted) = own(&format!("name = \"own\"\nsummary = \"s\"\n{want}")).expect("sound");
        assert_eq!(parent, None);
        assert_eq!(wanted[1], "vm.swappiness Int(5)");
        assert!(
            wanted[0].starts_with("block.scheduler Case(Case { value: \"none\", only: Some(\"nvme*\")"),
            "{wanted:?}"
        );
        let child =
            |parents: &str| format!("name = \"own\"\nsummary = \"s\"\ninherits = [{parents}]\n{want}");
        let (parent, wanted) = own(&child("\"series\"")).expect("sound");
        assert_eq!((parent.as_deref(), wanted.len()), (Some("series"), 2));
        let (parent, wanted) = own(&child("\"series\", \"postgres\"")).expect("sound");
        assert!(parent.is_none() && wanted.len() > 2, "{parent:?} {wanted:?}");
    }

    #[test]
    fn a_placement_does_not_fit_into_a_trial_file() {
        let placed = "[placement]\n[[placement.service]]\nunit = \"a.service\"\nnode = 0\n";
        let text = &format!("name = \"own\"\nsummary = \"s\"\n{placed}");
        let error = own(text).expect_err("no rung has a placement");
        assert!(error.to_string().starts_with("profile `own` has a placement"), "{error}");
        assert_eq!(error.exit(), planish_model::Exit::Usage);
    }

    fn catalogue() -> Catalogue {
        let mut catalogue = Catalogue::default();
        let profile = "name = \"postgres\"\nsummary = \"s\"\n";
        catalogue.add_profile("postgres.toml", profile).expect("well formed");
        catalogue
    }

    #[test]
    fn a_first_file_is_a_good_file_and_keeps_the_command_to_the_letter() {
        let text = new(&wanted(Some("postgres")), &catalogue()).expect("a known profile");
        let trial = TrialFile::parse_with("my-app.toml", &text, &catalogue()).expect("a good file");
        assert!(text.starts_with("# A trial: planish trial run ./my-app.toml\n"), "{text}");
        let elsewhere = NewTrial { file: Some("s/t.toml".to_owned()), ..wanted(None) };
        let text = new(&elsewhere, &catalogue()).expect("no profile");
        assert!(text.starts_with("# A trial: planish trial run s/t.toml\n"), "{text}");
        assert_eq!(trial.workload.command[2], wanted(None).command);
        assert_eq!(trial.rung[0].profile.as_ref().map(|name| name.get_ref().as_str()), Some("postgres"));
    }

    #[test]
    fn odd_names_and_commands_are_kept_to_the_letter_too() {
        let catalogue = Catalogue::embedded().expect("sound");
        for odd in ["two\nlines", "\u{7f}\u{7}", "it's \"both\"", "'''\r\n\"\"\"", "\\", "\u{1f600}\t;id"] {
            let wanted = NewTrial { name: odd.to_owned(), file: None, command: odd.to_owned(), worth: None };
            let text = new(&wanted, &catalogue).expect("no profile");
            let trial =
                TrialFile::parse("my-app.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!((trial.name.get_ref().as_str(), trial.workload.command[2].as_str()), (odd, odd));
        }
    }

    #[test]
    fn a_need_that_no_signed_number_holds_is_written() {
        let need = u64::MAX;
        let want = format!("\"hugepages.2m\" = {{ need_bytes = {need} }}\n");
        let (_, wanted) = own(&format!("name = \"own\"\nsummary = \"s\"\n[want]\n{want}")).expect("sound");
        assert!(wanted[0].contains(&format!("need_bytes: {need}")), "{wanted:?}");
    }

    #[test]
    fn the_first_file_names_every_adapter_and_warns_of_a_rung_that_changes_nothing() {
        let text = new(&wanted(None), &Catalogue::embedded().expect("sound")).expect("no profile");
        let line = text.lines().find(|line| line.starts_with("adapter = ")).expect("it has one");
        for adapter in ["command", "number", "pgbench", "jitter", "http", "slices"] {
            assert!(line.contains(adapter), "{line}");
        }
        assert!(text.contains("where thp.enabled is \"never\" now"), "{text}");
        TrialFile::parse("my-app.toml", &text).expect("a good file");
    }

    #[test]
    fn a_profile_that_does_not_exist_names_the_nearest() {
        let error = new(&wanted(Some("postgers")), &catalogue()).expect_err("no such profile");
        assert_eq!(error.to_string(), "no profile `postgers`; did you mean `postgres`?");
        assert_eq!(error.exit(), planish_model::Exit::Usage);
        assert!(error.hints()[0].starts_with("the profiles are "), "{:?}", error.hints());
    }
}
