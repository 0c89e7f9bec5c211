//! What the shared memory of a server really lies on: read from `/proc`, never from a setting.
//!
//! A setting of `huge_pages = try` and a pool that is one page short look like success everywhere else. The
//! largest shared mapping of each backend is asked for the size of its pages and for how much of it is mapped
//! by huge entries; the size of the page tables tells the same once more.

use planish_host::Host;
use planish_residency::Process;
use serde_json::json;

use super::server::Pages;
use crate::outcome::Achieved;
use crate::sample::ArmError;

/// Share of the mapped bytes that must lie on transparent huge pages for the arm to count: the ends of the
/// segment, and what the server touched before its clients, lie on base pages.
const THP_SHARE_MIN: f64 = 0.90;

/// What one server's backends show.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Proof {
    /// Size of the pages of the shared segment, as the kernel calls it: for a pool the pool's page size.
    page_bytes: u64,
    /// Length of the segment.
    segment_bytes: u64,
    /// Bytes of it that the backend has mapped.
    mapped_bytes: u64,
    /// Bytes of these that lie on transparent huge pages.
    thp_bytes: u64,
    /// Page tables of the backend.
    page_tables_bytes: u64,
}

/// The file of the knob `thp.shmem_enabled`.
const SHMEM_ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

impl Proof {
    /// Reads the backends; of several, the one with the least huge memory speaks for the server.
    pub(crate) fn of(backends: impl Iterator<Item = u32>) -> Result<Self, ArmError> {
        let host = Host::live();
        let proofs = backends.map(|pid| Self::of_backend(&host, pid)).collect::<Result<Vec<_>, _>>()?;
        let weakest = proofs.into_iter().min_by_key(|proof| (proof.page_bytes, proof.thp_bytes));
        weakest.ok_or_else(|| ArmError::crashed("the server has no backend"))
    }

    fn of_backend(host: &Host, pid: u32) -> Result<Self, ArmError> {
        let process = Process::read(host, pid).map_err(|error| ArmError::crashed(error.to_string()))?;
        let shared = process.regions.iter().filter(|region| region.is_shared());
        let segment = shared
            .max_by_key(|region| region.bytes())
            .ok_or_else(|| ArmError::crashed(format!("backend {pid} has no shared memory")))?;
        Ok(Self {
            page_bytes: segment.page_bytes,
            segment_bytes: segment.bytes(),
            mapped_bytes: segment.resident_bytes,
            thp_bytes: segment.thp_bytes(),
            page_tables_bytes: process.status.page_table_bytes,
        })
    }

    /// What was read, and whether it is what the arm stands for.
    pub(crate) fn achieved(&self, wanted: Pages) -> Achieved {
        Achieved { verified: Some(self.is(wanted)), ..self.facts() }
    }

    /// What was read.
    pub(crate) fn facts(&self) -> Achieved {
        let facts = [
            ("segment_bytes", self.segment_bytes),
            ("segment_page_bytes", self.page_bytes),
            ("mapped_bytes", self.mapped_bytes),
            ("thp_bytes", self.thp_bytes),
            ("backend_page_tables_bytes", self.page_tables_bytes),
        ];
        Achieved {
            verified: None,
            in_part: None,
            backing: Some(self.backing()),
            facts: facts.map(|(name, bytes)| (name.to_owned(), json!(bytes))).into_iter().collect(),
        }
    }

    /// Why the arm cannot be had, when the start itself went well.
    pub(crate) fn why_not(&self, wanted: Pages) -> String {
        let wanted = match wanted {
            Pages::Base => "base pages".to_owned(),
            Pages::Thp => "transparent huge pages".to_owned(),
            Pages::Huge(bytes) => format!("pages of {} kB", bytes >> 10),
        };
        format!(
            "the server was started for {wanted}, but of {} kB of shared memory that a backend has mapped, {} kB lie \
             on transparent huge pages and the segment has pages of {} kB",
            self.mapped_bytes >> 10,
            self.thp_bytes >> 10,
            self.page_bytes >> 10
        )
    }

    /// The same as an error. A baseline on huge pages has nothing to be compared with: the host gives them to all
    /// shared memory, so that this ends the trial.
    pub(crate) fn refusal(&self, wanted: Pages) -> ArmError {
        let what = self.why_not(wanted);
        if wanted == Pages::Base && self.is_base() {
            let cure = format!(
                "the host gives huge pages to all shared memory ({SHMEM_ENABLED} is always or force): apply a \
                 profile of your own with \"thp.shmem_enabled\" = \"never\" for the trial, and undo it afterwards"
            );
            return ArmError::Refused { what, cure };
        }
        ArmError::unavailable(what)
    }

    fn is(&self, wanted: Pages) -> bool {
        match wanted {
            Pages::Huge(bytes) => self.page_bytes == bytes,
            Pages::Thp => self.is_base() && self.is_mostly_thp(),
            Pages::Base => self.is_base() && self.thp_bytes == 0,
        }
    }

    fn backing(&self) -> String {
        match self.page_bytes {
            _ if self.is_base() && self.is_mostly_thp() => "thp".to_owned(),
            _ if self.is_base() => "base".to_owned(),
            bytes if bytes >= 1 << 30 => format!("hugetlb-{}g", bytes >> 30),
            bytes => format!("hugetlb-{}m", bytes >> 20),
        }
    }

    fn is_base(&self) -> bool {
        self.page_bytes == planish_sys::pages::base_bytes() as u64
    }

    fn is_mostly_thp(&self) -> bool {
        self.thp_bytes as f64 >= THP_SHARE_MIN * self.mapped_bytes as f64 && self.thp_bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(page_bytes: u64, thp_bytes: u64) -> Proof {
        let mapped_bytes = 100 << 20;
        Proof { page_bytes, segment_bytes: 128 << 20, mapped_bytes, thp_bytes, page_tables_bytes: 300 << 10 }
    }

    #[test]
    fn an_arm_is_what_the_kernel_shows() {
        let base = planish_sys::pages::base_bytes() as u64;
        let backing = |proof: &Proof| proof.facts().backing.expect("always told");
        assert!(proof(base, 0).is(Pages::Base) && backing(&proof(base, 0)) == "base");
        assert!(proof(base, 98 << 20).is(Pages::Thp) && backing(&proof(base, 98 << 20)) == "thp");
        assert!(proof(2 << 20, 0).is(Pages::Huge(2 << 20)) && backing(&proof(2 << 20, 0)) == "hugetlb-2m");
        assert!(proof(1 << 30, 0).is(Pages::Huge(1 << 30)) && backing(&proof(1 << 30, 0)) == "hugetlb-1g");
    }

    #[test]
    fn a_baseline_on_huge_pages_names_the_knob() {
        let base = planish_sys::pages::base_bytes() as u64;
        let ArmError::Refused { what, cure } = proof(base, 98 << 20).refusal(Pages::Base) else {
            panic!("there is nothing to compare with")
        };
        assert!(what.contains("for base pages") && cure.contains("thp.shmem_enabled"), "{what}: {cure}");
        assert!(
            matches!(proof(base, 0).refusal(Pages::Thp), ArmError::Unavailable { .. }),
            "legal for a rung"
        );
    }

    #[test]
    fn half_huge_is_neither() {
        let base = planish_sys::pages::base_bytes() as u64;
        let half = proof(base, 50 << 20);
        assert!(
            !half.is(Pages::Base)
                && !half.is(Pages::Thp)
                && half.achieved(Pages::Thp).verified == Some(false)
        );
        assert!(half.why_not(Pages::Thp).contains("51200 kB lie on transparent huge pages"));
    }
}
