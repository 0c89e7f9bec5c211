//! A first trial file for the user's own workload.

use planish_model::{Catalogue, nearest};

use crate::error::TrialError;

/// What a first trial file is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTrial {
    /// Name of the trial.
    pub name: String,
    /// The command to be measured, as one line of a shell.
    pub command: String,
    /// The profile whose worth is asked for.
    pub profile: Option<String>,
}

/// The text of a first trial file: it runs as it is, and its comments say what to change.
///
/// # Errors
/// The profile does not exist; the nearest one is named.
pub fn new(wanted: &NewTrial, catalogue: &Catalogue) -> Result<String, TrialError> {
    if let Some(profile) = &wanted.profile
        && !catalogue.profile_names().any(|name| name == profile)
    {
        return Err(TrialError::UnknownProfile {
            name: profile.clone(),
            nearest: nearest(profile, catalogue.profile_names()).map(str::to_owned),
            known: catalogue.profile_names().map(str::to_owned).collect(),
        });
    }
    let quote = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let rung = match &wanted.profile {
        Some(profile) => format!("name = {0}\nprofile = {0}", quote(profile)),
        None => "name = \"no-thp\"\nwant = { \"thp.enabled\" = \"never\" }".to_owned(),
    };
    let (file, name) = (&wanted.name, quote(&wanted.name));
    let command = quote(&wanted.command);
    Ok(format!(
        "# A trial: planish trial run ./{file}.toml
# Each unit is one fresh start of the command. Orders are random, noise is measured first, and what is
# kept is run again. Schema: docs/schema/trial-file.json
name = {name}
summary = \"Does it pay on this machine, for this workload?\"
primary = \"cpu_s\"          # or wall_s, or a number out of your program's output: see [[workload.metric]]
# min_gain = 0.01          # what is worth keeping, as a fraction; without it by what a rung is: 0.005 to 0.02
# mode = \"step\"            # each rung over what was kept before it, instead of all against the baseline
budget_seconds = 3600      # planish trial selfcheck says what this budget can see

[workload]
adapter = \"command\"        # or number, pgbench, http, slices
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::TrialFile;

    fn wanted(profile: Option<&str>) -> NewTrial {
        NewTrial {
            name: "my-app".to_owned(),
            command: "./app --say \"hello\\n\" | tail -1".to_owned(),
            profile: profile.map(str::to_owned),
        }
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
        assert_eq!(trial.workload.command[2], wanted(None).command);
        assert_eq!(trial.rung[0].profile.as_ref().map(|name| name.get_ref().as_str()), Some("postgres"));
    }

    #[test]
    fn a_profile_that_does_not_exist_names_the_nearest() {
        let error = new(&wanted(Some("postgers")), &catalogue()).expect_err("no such profile");
        assert_eq!(error.to_string(), "no profile `postgers`; did you mean `postgres`?");
        assert_eq!(error.exit(), planish_model::Exit::Usage);
        assert!(error.hints()[0].starts_with("the profiles are "), "{:?}", error.hints());
    }
}
