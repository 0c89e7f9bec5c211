//! `docs/writers.md`: the other programs that planish recognises, from the catalogue.

use std::fmt::Write;

use anyhow::Result;
use planish_model::{Catalogue, Writer, WriterSays, WriterScope};

/// The whole reference.
pub fn reference() -> Result<String> {
    let catalogue = Catalogue::embedded()?;
    let mut text = String::from(HEAD);
    for writer in catalogue.writers() {
        section(&mut text, writer)?;
    }
    Ok(text)
}

const HEAD: &str = "# Second writers

Written by `./x docs` from `catalogue/writers/`; do not edit.

Two programs that set one place undo each other. planish recognises the others by what they leave lying about: it asks
nobody, starts nothing and stops nothing. `planish doctor` tells each as a finding, `planish plan` names the steps that
another one writes too, and `planish check` names it where a value has changed. What to do is yours to choose:

- **hand over**: type what the plan says, and planish alone writes the place; `plan --persist` names only lines that are
  applied behind those that it writes, and of a file below /usr its copy in /etc, which counts instead;
- **exclude**: type what the plan says, and the other program leaves these places alone, where it can;
- **leave it**: `planish plan PROFILE --exclude tuned` leaves what the other one writes to it, and `--exclude KNOB`
  leaves a knob as it is; `planish check PROFILE` and `planish install check PROFILE` take the same `--exclude`.
  `planish export tuned PROFILE` gives tuned the values instead.

A command of a text that writes a setting (`>`, `tee`, `sysctl NAME=VALUE`, `sysctl -p FILE`) sets it, one that only
reads it (`cat`, `grep`, `test`) does not, and what a program that is not known is given *may* be set: that is told, and
makes no exit code 1. What `cpupower` (`frequency-set`, `idle-set`, `set`), `cpufreq-set`, `x86_energy_perf_policy`,
`hugeadm`, `ethtool` (`-A`, `-C`, `-G`, `-K`, `-L`) and `blockdev --setra` set by words of their own counts as writes of
those places, and files that `systemd-sysctl` is given are loaded; what `ip`, `tc`, `chrt`, `hdparm` and `mount` set is
not seen. Of data of cloud-init each line is a command, and a block (`- |`, `- >`) is one script. Conditions are taken
to hold, and variables and loops are followed as far as the text tells. What no shell comes by, as behind an `exit`, is
not told, what a function does that nobody calls may be done, and of several writes of one setting in a text the last
counts. Of a unit its `WorkingDirectory=`, `Environment=` and `StandardOutput=file:` count, too; what another user than
root runs (`User=`, the user of a line of cron, `sudo -u`, `su USER -c`), or a unit that is kept from settings
(`ProtectKernelTunables=`, `ReadOnlyPaths=`), *may* set them at most, and a script of a unit with `RootDirectory=` or
`RootImage=` is another than that of its name here. A script of a shell that a text starts (`FILE`, `sh FILE`) or reads
(`. FILE`) is followed and named with its line, from one to the next and up to 256 KiB each; of one for another
interpreter what its lines name *may* be set. So is what stands behind `flock`, `systemd-run` and their like, and what
`run-parts` runs: files with a name of letters, digits, `_` and `-`, while one of another name *may* be passed over. In
another network (`ip netns exec`) settings of a network are others, and all the rest is the same; below a root of its
own (`chroot`), what a rule of udev starts (`RUN`), and a profile that `tuned-adm profile` makes active, *may* set
something. So does what stands behind an option of such a program that is not known, a script that is given by its path
to a program that is not known (`pkexec /opt/tune.sh`), and what a unit starts that puts something in the place of
settings or programs (`BindPaths=`, `TemporaryFileSystem=`; a folder of data is none, unless the command names it); what
is looked up, tested or listed (`command -v`, `start-stop-daemon --test`, `sudo -l`) is not run. The words of `$(ls -d
PATTERN)` and `$(echo PATTERN)`, behind `grep` or `sort`, too, or given to `xargs -I`, and the default of
`${NAME:-default}` are followed; of a place whose end alone is told (`$(own-list)/queue/scheduler`) each below a folder
that the text names (`/sys/block`) *may* be set. What a loop runs (`for f in FOLDER/*`), what a script is given as `$1`,
and what a script of a profile of tuned starts, is not followed. Nothing is opened that is no file, as a device may
begin to work by it, and nothing is looked at on a file system of the network, on one of a program (`fuse`) or behind an
automount: that may wait. A byte that is no UTF-8 hides nothing. Of scripts of more than 8 MiB in sum, and of more words
than a second is enough for, the rest is not followed, nor is what a text does behind more calls, words or levels than a
script has: `plan` and `check` then name the file at which that ended, and the exit code stays. A recording keeps no
such text, as it may hold secrets. Profiles of tuned are merged as tuned does it, with `drop=`, `replace=1` and
`enabled=false`.

Of units those count that a boot starts: `default.target`, what has a link in a `.wants`, `.requires` or `.upholds`
folder of /etc/systemd/system, and what such a unit, or a drop-in of any, pulls in by `Wants=`, `Requires=`,
`BindsTo=`, `Upholds=`, `OnSuccess=` or `OnFailure=`, starts as a timer, path or socket, or names in a command of
`systemctl start` (`restart`, `enable`), with `%p`, `%i`, `%j`, `%n` and `%N` filled in. Of a unit that another
specifier names, that links below /usr or a generator alone pull in, or that a script starts, nothing is told; one that
is pulled in by a unit that itself is never started is told all the same. A mask in /etc or below /usr takes a unit away
(a link to /dev/null or an empty file), one in /run does not, as it goes with this boot, nor does `systemd.mask=` of the
command line. Drop-ins of its template, of what its name begins with and of its kind (`service.d`) count with those of a
unit. That a drop-in has systemd-sysctl.service or systemd-tmpfiles-setup.service start something else, or never, is not
seen.

Where a text tells which places of a setting it sets (`/sys/block/sda/queue/scheduler`, `ethtool -G eno1`, `devices=sda`
of tuned), it is a writer of those and of no other; a pattern is one of what it fits. Where that cannot be told it
counts for all places: what a program that is not known is given, a card that is not here by that name, a disk by its
numbers (`/sys/dev/block/8:0`), and the frequency of a CPU, which all CPUs of its policy have. A name in `/dev` of no
disk here (`/dev/sdf`, `/dev/disk/by-id/X`), or a pattern of none, *may* be that of any disk, as no link of udev is
followed; one of device-mapper (`/dev/mapper/X`, `/dev/VG/LV`) may be that of a `dm-*` alone, and one of an array
(`/dev/md/X`) that of an `md*`.

Pools of huge pages have a file a node, and others for all nodes together (`vm.nr_hugepages`, `nr_hugepages_mempolicy`,
the one in `/sys/kernel/mm/hugepages`): whoever sets those sets the pool of each node, and a line for them is named
beside each pool that a plan raises, also where `--persist` writes one of ours. Ours has in it what the lines of others
give, and takes nothing from them: each `sysctl --system` makes all pools together what theirs says. Who is known to do
that at a boot, behind tmpfiles.d, is named by `check` as who overwrites the pool: a script or unit with
`sysctl --system`, or tuned with keys of sysctl.

What `{...}` stands for is filled from the unit of the program and from the plan; a line that cannot be filled is not
said.
";

fn section(text: &mut String, writer: &Writer) -> Result<()> {
    writeln!(text, "\n## {}\n\n{}\n\n| | |\n|---|---|", writer.id, writer.why)?;
    let code = |items: &[String]| items.iter().map(|item| format!("`{item}`")).collect::<Vec<_>>().join(", ");
    let unit: Vec<String> = writer.unit.iter().cloned().collect();
    let told_by = match &writer.scope {
        None => String::new(),
        Some(WriterScope::Profile { active, again, .. }) => {
            let again = again.as_ref().map(|again| {
                format!(
                    "; `{}` and `{}` of `{}` are read for the lines that it writes again",
                    again.key, again.except, again.file
                )
            });
            let again = again.unwrap_or_default();
            format!("the profile that `{active}` names, and those that it includes{again}")
        }
        Some(WriterScope::Names { folders, .. }) => format!("the names of the files in {}", code(folders)),
        Some(WriterScope::Mentioned { files, executable }) => {
            let where_run = if *executable { ", where it may be executed" } else { "" };
            format!("what the commands of these write: {}{where_run}", code(files))
        }
    };
    let said = |only: &WriterSays| {
        let option =
            only.option.as_ref().map(|option| format!("; `{option}` of its process goes before them"));
        format!("`{}` stands in one of {}{}", only.says, code(&only.files), option.unwrap_or_default())
    };
    let only_where = writer.only_where.as_ref().map(said).unwrap_or_default();
    for (name, value) in [
        ("process", code(&writer.programs)),
        ("file", code(&writer.files)),
        ("unit", code(&unit)),
        ("lines of", code(&writer.lines_of)),
        ("only where", only_where),
        ("may set", code(&writer.writes)),
        ("which of them", told_by),
        ("hand over", code(&writer.hand_over)),
        ("exclude", code(&writer.exclude)),
        ("source", writer.source.clone()),
    ] {
        if !value.is_empty() {
            writeln!(text, "| {name} | {value} |")?;
        }
    }
    Ok(())
}
