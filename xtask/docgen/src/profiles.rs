//! The shipped profiles as a page: what each wants and, where it follows a guide, what became of the guide.

use crate::knobs::{cell, word};
use anyhow::{Context, Result};
use planish_model::{Case, Catalogue, Conditions, Profile, Want, units};
use std::fmt::Write as _;

/// How to have a profile of one's own, around an example that is checked when this page is made.
const OWN: [&str; 2] = [
    "
A profile is named wanted values, and nothing else. Those that planish brings along are below; `planish profiles` lists
them with your own, `planish profiles NAME` tells what one wants and what this host has, `planish knobs` what can be
wanted.

## Profiles of your own

```toml
",
    "```

- **Try it from anywhere.** `plan`, `apply`, `check`, `doctor`, `export` and `trial new --profile` take a file where its
  name has a slash and ends in `.toml`: `planish plan ./mine.toml`.
- **Keep it** in `/etc/planish/profiles/mine.toml`, and it has a name: `planish plan mine`, `profile = \"mine\"` in a
  trial file, `planish install check mine`. An ordinary user may keep theirs in `~/.config/planish/profiles`: root
  does not look there, so that the line to type as root names the file. With
  `--state DIR` they are in `DIR/etc/profiles` and nowhere else; with `--root DIR` alone in
  `DIR/etc/planish/profiles`. A name has letters, digits, dots, dashes and underscores, and neither dot nor dash in
  front.
- One of yours takes the place of ours of the same name. A file that is wrong is told by every command, with line and
  column; it stops those that name its profile, and no other.
- A knob's name stands in quotes, as its dots are part of it: `\"vm.swappiness\" = 1`.
- A profile is found by the `name` in it. Call its file so, too: where `nm2.toml` has `name = \"other\"`, `planish plan
  nm2` finds none and says so. `import -o` names a profile as its file.
- `inherits` takes profiles that have a name, and no file: a parent of your own lies in the folder above, and not beside
  its child.
- What `[want]` and `[placement]` may say: [schema/profile-file.json](schema/profile-file.json),
  [placement.md](placement.md). Rows of your own for settings that planish does not know yet go into a folder `knobs`
  beside `profiles`, written as those of `catalogue/knobs`. A row for a place or an argument of the kernel that a row of
  ours has is refused, since it would have another class and other bounds; so is one that calls an order (`.../remove`,
  `/sys/power/state`) anything but an `action`, which no plan writes.
- Of two parents neither wins: where they want one thing otherwise, the profile says it in its own `[want]`, or is
  refused with all that they do not agree about.
- What would ruin the host, or what it cannot have, is refused with exit 3 by `plan` and `apply`: a row with a *bound*
  in [knobs.md](knobs.md) is held against the memory, the CPUs and the threads of the moment.
  `fs.nr_open` is held against the open files that units, log-ins and the profile give, and `unit.nofile` against it.
- `need_bytes` is what is reserved, in whole pages over the nodes with CPUs; no headroom is added.
  `planish size --bytes 24G -o ./mine.toml` writes a profile that needs 24 GiB and 20 % more, and shows the arithmetic.
- `nodes = [0]` behind it puts the whole need on each node named; a list of both,
  `{ need_bytes = [536870912, 268435456], nodes = [0, 1] }`, puts so much on each.
- `total_bytes` in the place of `need_bytes` is the size of the pool in all, with what others have in it: it is raised
  by what is missing, and lowered for nobody. With `--persist` the next boot has as much, also where a line of others
  that gave part of it is gone by then, and no more where one has yet to be loaded. `import` says so of
  `vm.nr_hugepages` and its like, which set whole pools.
- What lies idle in a pool, free and claimed by nobody, is counted for no `need_bytes` and no service: it may be meant
  for another. `plan` and `doctor` tell how many pages that is. A service that is started on them has them, and they are
  not asked for again; `total_bytes` counts them; `--exclude` leaves the pool as it is.
- An amount that may wait to be written (`vm.dirty_bytes`, `vm.dirty_background_bytes`) is not written where the share
  in force comes to less at this moment, as on a small guest: it is to bound that, and not to raise it. `--allow-knob`
  has it nevertheless. Nor is a share (`vm.dirty_ratio`, `vm.dirty_background_ratio`) where an amount is in force that
  is less: somebody wanted it, and the kernel drops it with the write. `--allow durability` has it nevertheless.
- A case that can never count, since one before it without `needs` takes all its places, is refused, and so is `only`
  for a knob that has one place, and a case whose `needs` no host meets together.
- `only` means the places of a knob whose disk, card or CPU its pattern (`*`, `?`, `[0-3]`) matches. Where this host has
  none of them they are not here, which is no error; a pattern that is near to names that are here (`nmve*`) is
  refused. So is the name of a service that is one letter from one of this host (`redis-sever`), and not what hosts
  call otherwise (`mysqld` and `mysql`, `postgresql-16` and `postgresql-17`).
- A word that no kernel has for a governor, a clock source or a congestion control is refused; one that this kernel was
  built without is not here. Capitals count (`BBR` is no word).
- `programs = [\"mongod\"]` says for which programs it is made (as the kernel names them; of Java `java:` and the main
  class), `service_min = \"8\"` and `service_max = \"7\"` for which versions, and `packages` by which packages of dpkg
  those are known. `doctor --service` takes the one that suits; `plan` and `apply` warn of one that does not. A profile
  that inherits says it anew.
- `planish import FILE -o ./mine.toml` makes one of what tuned, saptune, sysctl.d, a unit or a script sets.
  A setting of tuned for some devices (`devices=nvme*`) becomes `only`; of sections that mean one device the first takes
  it, as for tuned, and a line that a profile could only say of more devices is refused.
",
];

/// The example of [`OWN`].
const EXAMPLE: &str = "\
name     = \"mine\"                       # and of the file: mine.toml
summary  = \"What our order book wants.\"
inherits = [\"series\"]                   # starts from these; its own [want] wins

[want]
\"vm.swappiness\"   = 1
\"thp.enabled\"     = \"madvise\"
\"block.scheduler\" = { value = \"none\", only = \"nvme*\" }
\"hugepages.2m\"    = { need_bytes = 536870912 }
";

/// All profiles by name, with everything that they inherit.
pub fn reference() -> Result<String> {
    let catalogue = Catalogue::embedded().context("load the catalogue")?;
    let mut text = String::from("# Profiles\n\nWritten by `./x docs` from `catalogue/`; do not edit.\n");
    catalogue.parse_profile("the example", EXAMPLE).context("read the example of a profile")?;
    text.push_str(&OWN.join(EXAMPLE));
    for name in catalogue.profile_names() {
        section(&catalogue.profile(name)?, &mut text)?;
    }
    Ok(text)
}

fn section(profile: &Profile, text: &mut String) -> Result<()> {
    let made_for = made_for(profile);
    write!(text, "\n## {}\n\n{}\n\n{made_for}| knob | wanted |\n|---|---|\n", profile.name, profile.summary)?;
    for (id, want) in &profile.want {
        let anchor = crate::knobs::anchor(id.as_str());
        writeln!(text, "| [`{id}`](knobs.md#{anchor}) | {} |", cell(&wanted(want)))?;
    }
    if !profile.guide.is_empty() {
        text.push_str("\n| the guide says | answer | knob | why |\n|---|---|---|---|\n");
    }
    for line in &profile.guide {
        let knob = line.knob.as_ref().map(|id| format!("`{id}`")).unwrap_or_default();
        writeln!(text, "| `{}` | {} | {knob} | {} |", cell(&line.says), word(&line.answer), cell(&line.why))?;
    }
    Ok(())
}

/// The programs and versions that a profile names, as a paragraph of its own; empty for none.
fn made_for(profile: &Profile) -> String {
    if profile.programs.is_empty() {
        return String::new();
    }
    let programs: Vec<String> = profile.programs.iter().map(|program| format!("`{program}`")).collect();
    let versions = match profile.versions() {
        all if all.is_empty() => all,
        some => format!(", version {some}"),
    };
    format!("For {}{versions}.\n\n", programs.join(", "))
}

fn wanted(want: &Want) -> String {
    match want {
        Want::Int(number) => format!("`{number}`"),
        Want::Text(value) => format!("`{value}`"),
        Want::Case(one) => case(one),
        Want::Cases(cases) => cases.iter().map(case).collect::<Vec<_>>().join("; else "),
        Want::Need { need_bytes, .. } => format!("pages for {need_bytes} bytes"),
        Want::Total { total_bytes, .. } => format!("pages for {total_bytes} bytes in all"),
        Want::Needs { need_bytes, nodes } => by_node(need_bytes, nodes, ""),
        Want::Totals { total_bytes, nodes } => by_node(total_bytes, nodes, " in all"),
        Want::From { from } => format!("computed: {}", word(from)),
    }
}

/// A size for each node.
fn by_node(bytes: &[u64], nodes: &[u32], of_whom: &str) -> String {
    let each = nodes.iter().zip(bytes);
    let each = each.map(|(node, bytes)| format!("pages for {bytes} bytes{of_whom} on node {node}"));
    each.collect::<Vec<_>>().join(", ")
}

fn case(case: &Case) -> String {
    let mut text = format!("`{}`", case.value);
    if let Some(only) = &case.only {
        text += &format!(" for `{only}`");
    }
    let conditions = conditions(&case.needs);
    if !conditions.is_empty() {
        text += &format!(" if {}", conditions.join(", "));
    }
    text
}

/// Conditions in words, in the order of their definition.
pub fn conditions(needs: &Conditions) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    words.extend(needs.bare_metal.then(|| "bare metal".to_owned()));
    words.extend(needs.guest.then(|| "guest".to_owned()));
    words.extend((!needs.arch.is_empty()).then(|| needs.arch.join(" or ")));
    let vendors: Vec<String> = needs.vendor.iter().map(word).collect();
    words.extend((!vendors.is_empty()).then(|| format!("CPU of {}", vendors.join(" or "))));
    words.extend((!needs.os.is_empty()).then(|| needs.os.join(" or ")));
    let ranges = [
        (&needs.os_min, "release {} or later"),
        (&needs.os_gone, "before release {}"),
        (&needs.kernel_min, "Linux {} or later"),
        (&needs.kernel_gone, "before Linux {}"),
        (&needs.dead_since, "ignored since Linux {}"),
    ];
    words
        .extend(ranges.into_iter().filter_map(|(version, form)| Some(form.replace("{}", version.as_ref()?))));
    words.extend(needs.base_page_max.map(|bytes| format!("base pages of {} at most", units::bytes(bytes))));
    words.extend(needs.cpus_min.map(|count| format!("{count} CPUs or more")));
    words.extend(needs.nodes_min.map(|count| format!("{count} nodes or more")));
    words
}
