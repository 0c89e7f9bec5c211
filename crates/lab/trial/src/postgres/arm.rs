//! A server as an arm of a resident ladder.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use planish_model::{KnobId, Nodes, Profile, Want};

use super::Stage;
use super::proof::Proof;
use super::server::{Pages, Server};
use super::work::Clients;
use crate::child::padding;
use crate::collect::Window;
use crate::host::{ARM, HostControl};
use crate::outcome::Achieved;
use crate::resident::ResidentArm;
use crate::sample::{ArmError, Sample};

/// The host as the arms of one run share it: all of them are asked from one thread.
pub(crate) type SharedHost<'h> = Rc<RefCell<&'h mut dyn HostControl>>;

/// One server with its clients.
pub(crate) struct ServerArm<'h> {
    name: String,
    pages: Pages,
    stage: Rc<Stage>,
    host: SharedHost<'h>,
    /// Whether its pool was raised: once for a run, so that a restart finds its pages again. Pages of 1 GB that
    /// were given back between restarts might never come again.
    has_pool: bool,
    /// Seed of the sizes of its environments.
    seed: u64,
    starts: u64,
    running: Option<Running>,
}

struct Running {
    // Before the server: connections are closed first, so that it ends at once.
    clients: Clients,
    _server: Server,
}

impl<'h> ServerArm<'h> {
    /// An arm that is not started yet; no other one may have its seed.
    pub(crate) fn new(name: &str, pages: Pages, seed: u64, stage: Rc<Stage>, host: SharedHost<'h>) -> Self {
        Self { name: name.to_owned(), pages, stage, host, has_pool: false, seed, starts: 0, running: None }
    }

    /// Starts server and clients on whatever the host gives at this moment.
    fn run(&mut self) -> Result<Running, ArmError> {
        let stage = Rc::clone(&self.stage);
        stage.room.copy(&self.name, &stage.until)?;
        let mut server =
            Server::new(stage.install.clone(), &self.name, &stage.room, self.pages, &stage.budget);
        if let Pages::Huge(bytes) = self.pages {
            self.raise_pool(bytes, server.pages_needed(bytes, &stage.budget))?;
        }
        self.starts += 1;
        server.start(padding(self.seed, self.starts), &stage.stop)?;
        let clients = Clients::open(&server, stage.clients, &stage.work, stage.budget, &stage.stop)?;
        Ok(Running { clients, _server: server })
    }

    fn raise_pool(&mut self, page_bytes: u64, pages: u64) -> Result<(), ArmError> {
        if self.has_pool {
            return Ok(());
        }
        let need = Want::Need { need_bytes: pages * page_bytes, nodes: Nodes::Spread };
        let profile = wish(&self.name, pool_knob(page_bytes), need);
        let mut host = self.host.borrow_mut();
        host.can_have(&profile)?;
        let applied = host.apply(&profile)?;
        if let (false, Some(entry)) = (applied.short.is_empty(), applied.entry) {
            // The server would not start on part of its pages: what was granted goes back at once.
            host.undo(entry)?;
            return Err(ArmError::Unavailable {
                reason: applied.short.join("; "),
                cure: "reserve the pages at boot, before memory is fragmented".to_owned(),
            });
        }
        self.has_pool = true;
        Ok(())
    }

    /// Shared memory takes transparent huge pages when it is first touched, which the connections do: the
    /// host's setting is needed just so long, and mappings stay huge afterwards.
    fn run_on_shmem_thp(&mut self) -> Result<Running, ArmError> {
        let profile = wish(&self.name, "thp.shmem_enabled", Want::Text("always".to_owned()));
        let applied = {
            let mut host = self.host.borrow_mut();
            host.can_have(&profile)?;
            host.apply(&profile)?
        };
        let running = self.run();
        if let Some(entry) = applied.entry {
            self.host.borrow_mut().undo(entry)?;
        }
        running
    }
}

impl ResidentArm for ServerArm<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Achieved, ArmError> {
        self.stop();
        let running = if self.pages == Pages::Thp { self.run_on_shmem_thp()? } else { self.run()? };
        let proof = Proof::of(running.clients.backends())?;
        let achieved = proof.achieved(self.pages);
        if achieved.verified != Some(true) {
            return Err(proof.refusal(self.pages));
        }
        self.running = Some(running);
        Ok(achieved)
    }

    fn slice(&mut self, duration: Duration, seed: u64) -> Result<Sample, ArmError> {
        let Some(running) = &mut self.running else {
            return Err(ArmError::crashed(format!("the server `{}` does not run", self.name)));
        };
        let window = Window::open(running.clients.backends().collect());
        let mut sample = running.clients.slice(duration, seed)?;
        window.close(&mut sample);
        Ok(sample)
    }

    fn stop(&mut self) {
        self.running = None;
    }
}

/// The knob of the pools of one page size, by the catalogue's naming.
fn pool_knob(page_bytes: u64) -> &'static str {
    if page_bytes == 1 << 30 { "hugepages.1g" } else { "hugepages.2m" }
}

/// A profile of one wish, for one arm.
fn wish(arm: &str, knob: &str, want: Want) -> Profile {
    Profile {
        name: format!("prove-postgres-{arm}"),
        summary: format!("{ARM}{arm}` of prove postgres: what its server needs"),
        inherits: Vec::new(),
        want: BTreeMap::from([(KnobId::new(knob), want)]),
        placement: None,
        ..Profile::default()
    }
}
