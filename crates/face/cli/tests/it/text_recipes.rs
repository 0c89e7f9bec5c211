//! The recipes of docs/text-publish.md for CI, run as they stand: their lines are taken out of the page, and go to a
//! shell in a clone of a repository beside this test, with a store in a folder. What needs a runner of GitHub or
//! GitLab itself (its checkout, its cache, its secrets) is not asked here.

#![expect(clippy::disallowed_methods, reason = "files of these tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use saphyr_parser::{Event, Parser};

use crate::planish::Run;
use crate::text_publish::{home, import, on};

const PAGE: &str = include_str!("../../../../../docs/text-publish.md");

/// A value of YAML.
#[derive(Debug)]
enum Node {
    Text(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

impl Node {
    fn read(text: &str) -> Self {
        let events = Parser::new_from_str(text).map(|event| event.expect("the page has sound YAML").0);
        let is_structure = |event: &Event<'_>| {
            matches!(event, Event::StreamStart | Event::DocumentStart(..) | Event::Nothing)
        };
        let mut events = events.skip_while(is_structure);
        let first = events.next().expect("a value");
        Self::from(first, &mut events)
    }

    fn from<'a>(first: Event<'a>, rest: &mut impl Iterator<Item = Event<'a>>) -> Self {
        match first {
            Event::Scalar(text, ..) => Self::Text(text.into_owned()),
            Event::SequenceStart(..) => {
                let mut list = Vec::new();
                loop {
                    match rest.next().expect("an end") {
                        Event::SequenceEnd => return Self::List(list),
                        event => list.push(Self::from(event, rest)),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut map = Vec::new();
                loop {
                    match rest.next().expect("an end") {
                        Event::MappingEnd => return Self::Map(map),
                        Event::Scalar(key, ..) => {
                            let event = rest.next().expect("a value");
                            map.push((key.into_owned(), Self::from(event, rest)));
                        }
                        other => panic!("{other:?} as a key"),
                    }
                }
            }
            other => panic!("{other:?}"),
        }
    }

    /// The scripts under these keys, in their order: a list is one script.
    fn scripts(&self, key: &str) -> Vec<String> {
        match self {
            Self::Text(_) => Vec::new(),
            Self::List(list) => list.iter().flat_map(|node| node.scripts(key)).collect(),
            Self::Map(map) => map
                .iter()
                .flat_map(|(name, node)| match node {
                    Self::Text(text) if name == key => vec![text.clone()],
                    Self::List(lines) if name == key => vec![lines.iter().map(Self::line).collect()],
                    node => node.scripts(key),
                })
                .collect(),
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Text(text) => format!("{text}\n"),
            other => panic!("{other:?} is no line of a script"),
        }
    }

    fn get(&self, key: &str) -> &Self {
        let Self::Map(map) = self else { panic!("{self:?}") };
        &map.iter().find(|(name, _)| name == key).unwrap_or_else(|| panic!("no {key}")).1
    }
}

/// The blocks of YAML of the page.
fn blocks() -> Vec<Node> {
    let blocks = PAGE.split("```yaml\n").skip(1);
    blocks.map(|block| Node::read(block.split("```").next().expect("an end"))).collect()
}

/// A service in a repository with a remote: its first profile is pinned on `main`.
struct Service {
    home: tempfile::TempDir,
    path: String,
}

impl Service {
    fn new() -> Self {
        let home = home();
        let planish = Path::new(env!("CARGO_BIN_EXE_planish"));
        let bin = home.path().join("bin");
        fs::create_dir(&bin).expect("room for a folder");
        std::os::unix::fs::symlink(planish, bin.join("planish")).expect("room for a link");
        let path = format!("{}:/usr/bin:/bin", bin.display());
        // A runner knows nobody: git guesses no name from the machine's.
        let config = "[user]\nuseConfigOnly = true\n[init]\ndefaultBranch = main\n";
        fs::write(home.path().join(".gitconfig"), config).expect("room for a file");
        let service = Self { home, path };
        service.shell(
            "git init --quiet --bare origin.git && git clone --quiet origin.git work && cd work &&
             printf 'int main(void) { return 0; }\\n' >server.c &&
             printf 'server: server.c\\n\\t$(CC) -O1 -o server server.c\\n' >Makefile &&
             planish text publish ../hot.planish --store ../store && git add . &&
             git -c user.name=me -c user.email=me@localhost commit --quiet -m begin && git push --quiet origin main",
        );
        service.week("warm");
        service
    }

    fn work(&self) -> PathBuf {
        self.home.path().join("work")
    }

    /// The hosts have written profiles of this workload.
    fn week(&self, name: &str) {
        let folder = self.work().join("profiles");
        fs::create_dir_all(&folder).expect("room for a folder");
        for host in ["one", "two"] {
            let from = self.home.path().join(format!("{name}.planish"));
            fs::copy(from, folder.join(format!("{host}.planish"))).expect("room for a file");
        }
    }

    fn shell(&self, script: &str) -> String {
        self.run(self.home.path(), script)
    }

    /// A step of a job: the shell of a runner ends with the first line that fails.
    fn step(&self, script: &str) -> String {
        self.run(&self.work(), script)
    }

    fn run(&self, folder: &Path, script: &str) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", script]).current_dir(folder).env_clear().stdin(Stdio::null());
        shell.env("HOME", self.home.path()).env("PATH", &self.path).env("GIT_CONFIG_NOSYSTEM", "1");
        shell.env("PUSH_URL", self.home.path().join("origin.git"));
        let run: Run = shell.output().expect("a shell").into();
        assert_eq!(run.exit, 0, "{script}\n{}{}", run.stdout, run.stderr);
        run.stdout
    }

    /// What the branch for the review has: so many commits of a pin beyond `main`, and one that a build can follow.
    fn assert_branch(&self, commits: usize) {
        let subjects = self.shell("git -C origin.git log --format=%s main..bot/text-profile");
        assert_eq!(subjects.lines().count(), commits, "{subjects}");
        assert!(subjects.lines().all(|line| line.starts_with("Pin ")), "{subjects}");
        self.shell("git -C origin.git show bot/text-profile:planish.text.toml >review.toml");
        let fetched = on(self.home.path(), "text fetch --pin review.toml --order review.txt --strict");
        assert_eq!(fetched.exit, 0, "{}", fetched.stderr);
        assert_eq!(
            self.step("git status --porcelain --untracked-files=no"),
            "",
            "the work tree is as it was"
        );
    }
}

/// Whether this machine has what the recipes start, said aloud where it has not.
fn has_tools(test: &str) -> bool {
    for tool in ["git", "make", "gcc"] {
        if !Path::new("/usr/bin").join(tool).is_file() {
            planish_skip::skip(test, format!("no {tool}"));
            return false;
        }
    }
    true
}

/// The steps of a build: what it links follows the pin of the repository.
fn assert_builds(service: &Service, script: &str) {
    service.step(script);
    let order = fs::read_to_string(service.work().join("order.txt")).expect("an order");
    assert_eq!(order.lines().count(), 4, "that of the pin on main: {order}");
    service.step("./server");
}

#[test]
fn the_recipe_for_github_publishes_week_after_week_and_builds() {
    if !has_tools("the_recipe_for_github_publishes_week_after_week_and_builds") {
        return;
    }
    let [workflow, build, _] = &blocks()[..] else { panic!("three blocks") };
    let publish = workflow.get("jobs").get("publish").get("steps").scripts("run");
    assert_eq!(publish.len(), 3, "{publish:?}");
    let service = Service::new();
    publish.iter().for_each(|step| drop(service.step(step)));
    service.assert_branch(1);
    // A week later, in a clone that has never seen the branch.
    service.shell("rm -rf work && git clone --quiet origin.git work");
    let warmer = "main;parse;scan 7000\nmain;parse 900\nmain;print 900\nmain;log 900\n";
    import(service.home.path(), "warmer", warmer, SystemTime::now());
    service.week("warmer");
    publish.iter().for_each(|step| drop(service.step(step)));
    service.assert_branch(2);
    assert_builds(&service, &build.scripts("run").join("\n"));
}

#[test]
fn the_recipe_for_gitlab_publishes_and_builds_also_without_the_store() {
    if !has_tools("the_recipe_for_gitlab_publishes_and_builds_also_without_the_store") {
        return;
    }
    let [.., recipe] = &blocks()[..] else { panic!("a block") };
    let script = |job: &str| recipe.get(job).scripts("script").concat();
    let service = Service::new();
    let with_cache = |script: &str| format!("export XDG_CACHE_HOME=\"$PWD/.cache\"\n{script}");
    assert_builds(&service, &with_cache(&script("build")));
    service.step(&script("profile"));
    service.assert_branch(1);
    // The store is out of reach, and the folder is a new one: what the cache keeps is what is pinned.
    service.step("rm order.txt server && mv ../store ../away");
    assert_builds(&service, &with_cache(&script("build")));
}
