//! A store: what is put into it is read back, and what is got from it is held to its digest. Only who prunes lists it.

use std::path::Path;
use std::time::Duration;

use planish_sorted::SortSmall as _;

use crate::contract::PATIENCE;
use crate::digest::{Digest, FOLDER};
use crate::error::StoreError;
use crate::folder;
use crate::helper::Helper;
use crate::location::Location;

/// Bytes that a blob has at most: a hundred times the largest call profile that we know.
pub(crate) const BYTES_MAX: u64 = 256 << 20;

/// What came of asking for a name.
pub(crate) enum Got {
    Bytes(Vec<u8>),
    Missing,
    TooLong,
}

/// Something below the folder of blobs, as a folder or a helper tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// Behind that folder.
    pub name: String,
    pub bytes: u64,
    /// Seconds since 1970.
    pub put_at: u64,
}

/// A blob of a store, by what a listing tells of it. Nobody has looked at its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its name.
    pub handle: String,
    /// The digest that its bytes should have.
    pub digest: Digest,
    /// Its length.
    pub bytes: u64,
    /// When it was last put, in seconds since 1970 by the clock of the store.
    pub put_at: u64,
}

/// What a store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The blobs, the newest first.
    pub blobs: Vec<Held>,
    /// How many objects are among them that no store of ours has put there under that name.
    pub foreign: usize,
}

/// Blobs under the hash of their content.
#[derive(Clone, Debug)]
pub struct Store {
    location: Location,
    patience: Duration,
}

/// What was put into a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// Its name there.
    pub handle: String,
    /// Its digest.
    pub digest: Digest,
    /// Whether it was not there before.
    pub is_new: bool,
}

impl Store {
    /// The store at a location. Nothing is asked of it yet.
    #[must_use]
    pub fn at(location: Location) -> Self {
        Self { location, patience: PATIENCE }
    }

    /// The store that a text names; a relative folder lies below `base`.
    ///
    /// # Errors
    /// As [`Location::parse`].
    pub fn open(text: &str, base: &Path) -> Result<Self, StoreError> {
        Location::parse(text, base).map(Self::at)
    }

    /// The same store, whose helper has so long for one blob.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Stores bytes under their digest, and reads them back. What is there already and sound stays, and counts as put
    /// now, so that nobody prunes it before a pin names it; what is there and is something else is replaced, since
    /// nobody can be given it.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`], [`StoreError::Other`] where something else is read back, and what a folder or helper
    /// says.
    pub fn put(&self, bytes: &[u8]) -> Result<Put, StoreError> {
        if !self.location.is_writable() {
            return Err(StoreError::ReadOnly { store: self.location.to_string() });
        }
        let digest = Digest::of(bytes);
        let handle = digest.handle();
        if bytes.len() as u64 > BYTES_MAX {
            return Err(self.too_long(&handle));
        }
        let is_sound = |got: &Got| matches!(got, Got::Bytes(there) if there == bytes);
        let is_new = !is_sound(&self.raw_get(&handle)?);
        match &self.location {
            Location::Folder(folder) if is_new => folder::put(folder, &handle, bytes)?,
            Location::Folder(folder) => folder::freshen(folder, &handle, bytes)?,
            // Object stores have no other way to change the time of an object.
            Location::Beyond { url, .. } => self.helper().put(&format!("{url}/{handle}"), bytes)?,
        }
        self.get(&handle, &digest)?;
        Ok(Put { handle, digest, is_new })
    }

    /// All that the store holds.
    ///
    /// # Errors
    /// [`StoreError::NotListed`] of a web server, [`StoreError::Line`], and what a folder or helper says: a part of a
    /// list is never returned.
    pub fn list(&self) -> Result<Listing, StoreError> {
        let objects = match &self.location {
            Location::Folder(folder) => folder::list(folder)?,
            Location::Beyond { .. } if !self.location.is_writable() => {
                return Err(StoreError::NotListed { store: self.location.to_string() });
            }
            Location::Beyond { url, .. } => self.helper().list(&format!("{url}/{FOLDER}"))?,
        };
        let mut listing = Listing::default();
        for Object { name, bytes, put_at } in objects {
            let handle = format!("{FOLDER}/{name}");
            match Digest::of_handle(&handle) {
                Some(digest) => listing.blobs.push(Held { handle, digest, bytes, put_at }),
                None => listing.foreign += 1,
            }
        }
        listing
            .blobs
            .sort_small_by(|one, other| (other.put_at, &one.handle).cmp(&(one.put_at, &other.handle)));
        Ok(listing)
    }

    /// Takes a blob away that was listed, and says whether it is gone: one that was put anew since stays. A folder is
    /// looked at here, right before; a store beyond this machine by its helper, which is as near to it as can be.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`], and what a folder or helper says.
    pub fn delete(&self, blob: &Held) -> Result<bool, StoreError> {
        match &self.location {
            Location::Folder(folder) => folder::delete(folder, &blob.handle, blob.put_at),
            Location::Beyond { .. } if !self.location.is_writable() => {
                Err(StoreError::ReadOnly { store: self.location.to_string() })
            }
            Location::Beyond { url, .. } => {
                self.helper().delete(&format!("{url}/{}", blob.handle), blob.put_at)
            }
        }
    }

    /// The bytes of a name, which have this digest.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Other`], [`StoreError::Handle`], and what a folder or helper says.
    pub fn get(&self, handle: &str, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        if !is_handle(handle) {
            return Err(StoreError::Handle { handle: handle.to_owned() });
        }
        let (store, handle) = (|| self.location.to_string(), handle.to_owned());
        match self.raw_get(&handle)? {
            Got::Bytes(bytes) if Digest::of(&bytes) == *digest => Ok(bytes),
            Got::Bytes(bytes) => {
                let found = Digest::of(&bytes);
                Err(StoreError::Other { store: store(), handle, wanted: *digest, found })
            }
            Got::Missing => Err(StoreError::Missing { store: store(), handle }),
            Got::TooLong => Err(self.too_long(&handle)),
        }
    }

    fn raw_get(&self, handle: &str) -> Result<Got, StoreError> {
        match &self.location {
            Location::Folder(folder) => folder::get(folder, handle),
            Location::Beyond { url, .. } => self.helper().get(&format!("{url}/{handle}")),
        }
    }

    fn helper(&self) -> Helper {
        let program = self.location.helper().unwrap_or_default();
        Helper { program, store: self.location.to_string(), patience: self.patience, limit: BYTES_MAX }
    }

    fn too_long(&self, handle: &str) -> StoreError {
        let (store, handle) = (self.location.to_string(), handle.to_owned());
        StoreError::TooLong { store, handle, limit: BYTES_MAX }
    }
}

/// Whether a name stays in its store, and means the same in a path and in a URL.
fn is_handle(handle: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+=".contains(c);
    let is_word = |word: &str| !word.is_empty() && !word.starts_with('.') && word.chars().all(is_plain);
    handle.len() <= 1024 && handle.split('/').all(is_word)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::UNIX_EPOCH;

    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(".", folder.path()).unwrap();
        (folder, store)
    }

    #[test]
    fn what_is_put_is_got_and_put_once() {
        let (_folder, store) = store();
        let put = store.put(b"profile").unwrap();
        assert_eq!((put.is_new, &put.handle), (true, &Digest::of(b"profile").handle()));
        assert_eq!(store.get(&put.handle, &put.digest).unwrap(), b"profile");
        assert!(!store.put(b"profile").unwrap().is_new);
        let missing = Digest::of(b"other");
        assert!(matches!(store.get(&missing.handle(), &missing), Err(StoreError::Missing { .. })));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of this test")]
    fn what_was_changed_is_never_handed_out_and_is_replaced_by_a_put() {
        let (folder, store) = store();
        let put = store.put(b"profile").unwrap();
        let file = folder.path().join(&put.handle);
        for changed in [&b"profil"[..], b"profilf", b""] {
            fs::remove_file(&file).unwrap();
            fs::write(&file, changed).unwrap();
            assert!(matches!(store.get(&put.handle, &put.digest), Err(StoreError::Other { .. })));
        }
        assert!(store.put(b"profile").unwrap().is_new);
        assert_eq!(store.get(&put.handle, &put.digest).unwrap(), b"profile");
    }

    /// Root's blob in a store of all, put again by somebody who may not set its time: he pins it a moment later.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of this test")]
    fn what_another_user_has_put_is_young_again_or_the_put_fails() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};

        if !rustix::process::geteuid().is_root() {
            return;
        }
        let somebody = rustix::fs::Uid::from_raw(65534);
        let (folder, store) = store();
        let put = store.put(b"profile").unwrap();
        let file = folder.path().join(&put.handle);
        let set_mode =
            |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        set_mode(folder.path(), 0o755);
        set_mode(file.parent().unwrap().parent().unwrap(), 0o755);
        let old =
            || fs::File::open(&file).unwrap().set_modified(UNIX_EPOCH + Duration::from_secs(9)).unwrap();
        // The kernel knows users of threads.
        let again = || {
            let put = || {
                rustix::thread::set_thread_res_uid(somebody, somebody, somebody).unwrap();
                store.put(b"profile")
            };
            std::thread::scope(|scope| scope.spawn(put).join().unwrap())
        };
        for (mode, is_taken) in [(0o755, false), (0o1777, false), (0o777, true)] {
            set_mode(file.parent().unwrap(), mode);
            old();
            let told = again();
            assert_eq!(told.is_ok(), is_taken, "{mode:o}: {told:?}");
            assert_eq!(fs::metadata(&file).unwrap().mtime() > 9, is_taken, "{mode:o}");
            if let Err(error) = told {
                assert!(matches!(error, StoreError::NotRenewed { .. }) && error.cure().is_some(), "{error}");
            }
            assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "no draft stays");
        }
        assert_eq!(fs::metadata(&file).unwrap().uid(), somebody.as_raw());
        let blob = store.list().unwrap().blobs.remove(0);
        assert!(blob.put_at > 9 && !store.delete(&Held { put_at: 9, ..blob }).unwrap());
    }

    /// Whoever else writes the folder sees the draft before it has its name.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of this test")]
    fn a_name_that_could_be_guessed_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, path) = (folder.path().join("victim"), folder.path().join("p"));
        fs::write(&victim, "precious").unwrap();
        let guessed = folder.path().join(format!(".p.{}.draft", std::process::id()));
        std::os::unix::fs::symlink(&victim, &guessed).unwrap();
        folder::write_whole(&path, b"ours").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&path).unwrap(), "ours");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of this test")]
    fn a_list_tells_blobs_the_newest_first_and_counts_the_rest() {
        let (folder, store) = store();
        assert_eq!(store.list().unwrap(), Listing::default(), "nothing was ever put");
        let puts = [&b"one"[..], b"two", b"three"].map(|bytes| store.put(bytes).unwrap());
        let set = |put: &Put, seconds: u64| {
            let file = fs::File::open(folder.path().join(&put.handle)).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        };
        puts.iter().zip([100, 300, 200]).for_each(|(put, seconds)| set(put, seconds));
        // A draft of a put that was killed, a file of somebody, a link, and a folder.
        let beside = folder.path().join(&puts[0].handle);
        fs::write(beside.with_file_name(".x.1.draft"), "half").unwrap();
        fs::write(folder.path().join("sha256/notes"), "mine").unwrap();
        std::os::unix::fs::symlink("notes", folder.path().join("sha256/link")).unwrap();
        fs::create_dir_all(folder.path().join("sha256/ff/folder")).unwrap();
        fs::write(folder.path().join("elsewhere"), "").unwrap();
        let listing = store.list().unwrap();
        let told: Vec<_> = listing.blobs.iter().map(|blob| (blob.digest, blob.bytes, blob.put_at)).collect();
        assert_eq!(told, [(puts[1].digest, 3, 300), (puts[2].digest, 5, 200), (puts[0].digest, 3, 100)]);
        assert_eq!(listing.foreign, 2);
        // One that was put anew since stays, and one that is gone is gone.
        assert!(!store.put(b"one").unwrap().is_new);
        let [newest, three, one] = &listing.blobs[..] else { panic!("{listing:?}") };
        assert!(!store.delete(one).unwrap() && store.get(&one.handle, &one.digest).is_ok());
        assert!(store.delete(newest).unwrap() && store.delete(newest).unwrap());
        let left = store.list().unwrap();
        assert_eq!(left.blobs.iter().map(|blob| blob.digest).collect::<Vec<_>>(), [one.digest, three.digest]);
    }

    #[test]
    fn a_web_server_is_not_listed_and_a_folder_that_is_not_there_is_no_empty_one() {
        let web = Store::open("https://127.0.0.1:1/p", Path::new("/")).unwrap();
        let error = web.list().unwrap_err();
        assert!(matches!(error, StoreError::NotListed { .. }) && error.cure().is_some(), "{error}");
        let (folder, _) = store();
        let away = Store::open("not/mounted", folder.path()).unwrap();
        assert!(matches!(away.list(), Err(StoreError::NoFolder { .. })));
    }

    #[test]
    fn a_folder_that_is_not_there_is_not_made() {
        let (folder, _) = store();
        let away = Store::open("not/mounted", folder.path()).unwrap();
        let error = away.put(b"x").unwrap_err();
        assert!(matches!(error, StoreError::NoFolder { .. }) && error.cure().is_some(), "{error}");
        assert!(!folder.path().join("not").exists());
    }

    #[test]
    fn a_handle_stays_in_its_store() {
        let (_folder, store) = store();
        let digest = Digest::of(b"");
        for wrong in ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/", ".x", "a b", "a?b", "a%2fb", "a\nb"]
        {
            assert!(matches!(store.get(wrong, &digest), Err(StoreError::Handle { .. })), "{wrong}");
        }
    }

    #[test]
    fn what_is_read_only_or_has_no_helper_says_so() {
        let read_only = Store::open("https://127.0.0.1:1/p", Path::new("/")).unwrap();
        assert!(matches!(read_only.put(b"x"), Err(StoreError::ReadOnly { .. })));
        let none = Store::open("nosuchscheme://x", Path::new("/")).unwrap();
        let error = none.put(b"x").unwrap_err();
        assert!(
            matches!(&error, StoreError::NoHelper { program, .. } if program == "planish-store-nosuchscheme")
        );
        assert!(error.cure().unwrap().contains("install planish-store-nosuchscheme"));
    }
}
