//! What lines and programs of others give the pools of huge pages in this boot, once somebody has them loaded or starts
//! the program: `sysctl --system`, `systemd-tmpfiles --create`, `tuned-adm profile`. None of them asks how many pages
//! are there for others; whoever takes pages away that we raised must know what they would have there.

use std::cell::OnceCell;

use planish_host::Host;
use planish_model::{Catalogue, Persisted, SeenWriter, page_pool, place};

use super::tmpfiles::Tmpfiles;
use super::{Setting, in_sysfs, sysctl};
use crate::{tables, writers};

/// Lines and programs of one host, read once and where they are asked for.
pub struct GivenPools<'h> {
    host: &'h Host,
    catalogue: &'h Catalogue,
    read: OnceCell<Read>,
}

struct Read {
    default_page: Option<u64>,
    /// Who loads all files of sysctl.d may be systemd or procps, which read them in two orders.
    sysctl: [Vec<Setting>; 2],
    /// Lines of others in tmpfiles.d, those that go with this boot among them.
    tmpfiles: Vec<Setting>,
    programs: Vec<SeenWriter>,
}

impl<'h> GivenPools<'h> {
    /// Of a host, by the rows that a catalogue has of other programs.
    #[must_use]
    pub fn of(host: &'h Host, catalogue: &'h Catalogue) -> Self {
        Self { host, catalogue, read: OnceCell::new() }
    }

    /// Pages that the pools of all nodes together are given, for the file in /sys that sets them, and by what. Of
    /// several the one that gives the most counts: who is to write last, nobody knows.
    #[must_use]
    pub fn to_all_nodes(&self, whole: &str) -> Option<(u64, String)> {
        let read = self.read.get_or_init(|| Read::of(self.host, self.catalogue));
        let names = page_pool::other_names(whole, read.default_page);
        let ways = [
            read.by_sysctl(&names),
            read.by_tmpfiles(whole),
            read.by_tmpfiles_node_by_node(self.host, whole),
            read.by_program(self.catalogue, whole),
        ];
        ways.into_iter().flatten().reduce(|most, other| if other.0 > most.0 { other } else { most })
    }
}

impl Read {
    fn of(host: &Host, catalogue: &Catalogue) -> Self {
        let meminfo = host.read("/proc/meminfo").unwrap_or_default();
        let default_page = tables::meminfo(&meminfo).get("Hugepagesize").copied();
        let Tmpfiles { passed_by, settings, undecided } = Tmpfiles::read(host);
        let mut tmpfiles: Vec<Setting> = passed_by.into_iter().chain(settings).chain(undecided).collect();
        tmpfiles.retain(|line| Persisted::own_file(&line.source).is_none());
        tmpfiles.iter_mut().for_each(|line| in_sysfs(line, default_page));
        let programs = writers::read(host, catalogue, default_page).writers;
        Self { default_page, sysctl: sysctl::loaded_now(host), tmpfiles, programs }
    }

    /// By the last line of either order, for a file in /sys that has these names for `sysctl`. Our own files set pools
    /// by other lines: one of this kind is somebody else's.
    fn by_sysctl(&self, names: &[String]) -> Option<(u64, String)> {
        let is_of = |line: &&Setting| names.iter().any(|name| line.covers(name));
        let last = self.sysctl.iter().filter_map(|lines| lines.iter().rfind(is_of));
        let pages = last.filter_map(|line| Some((sysctl::pages(&line.value)?, line.source.clone())));
        pages.max_by_key(|(pages, _)| *pages)
    }

    fn by_tmpfiles(&self, place: &str) -> Option<(u64, String)> {
        let lines = self.tmpfiles.iter().filter(|line| line.covers(place));
        let pages = lines.filter_map(|line| Some((line.value.trim().parse().ok()?, line.source.clone())));
        pages.max_by_key(|(pages, _)| *pages)
    }

    /// The sum of what single nodes are given.
    fn by_tmpfiles_node_by_node(&self, host: &Host, whole: &str) -> Option<(u64, String)> {
        let (folder, file) = page_pool::on_each_node(whole)?
            .split_once("node*/")
            .map(|(folder, file)| (folder.trim_end_matches('/').to_owned(), file.to_owned()))?;
        let nodes = host.list(&folder).into_iter().filter(|name| name.starts_with("node"));
        let given = nodes.filter_map(|node| self.by_tmpfiles(&format!("{folder}/{node}/{file}")));
        given.reduce(|(all, by), (pages, line)| (all.saturating_add(pages), format!("{by}, {line}")))
    }

    /// What commands of other programs set, as far as their words tell: `vm.nr_hugepages = 200`, `echo 200`.
    fn by_program(&self, catalogue: &Catalogue, whole: &str) -> Option<(u64, String)> {
        let knobs = catalogue.knobs().filter(|knob| place::captures(&knob.path, whole).is_some());
        let said = knobs.flat_map(|knob| self.programs.iter().map(move |seen| (knob, seen)));
        let pages = said.flat_map(|(knob, seen)| {
            let from = catalogue.said(&seen.sources, &knob.id, Some(whole)).next().unwrap_or(&seen.id);
            let texts = catalogue.said(&seen.commands, &knob.id, Some(whole));
            let pages = texts.filter_map(|text| sysctl::pages(text.rsplit(['=', ' ']).next()?));
            pages.map(|pages| (pages, format!("{} ({from})", seen.id))).collect::<Vec<_>>()
        });
        pages.max_by_key(|(pages, _)| *pages)
    }
}
