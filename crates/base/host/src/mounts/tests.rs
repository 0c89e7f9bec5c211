use proptest::prelude::*;

use super::*;

/// A host with a database on a disk of its own, a shared memory, and what containers and sessions add.
const TABLE: &str = "\
22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro
23 22 0:5 / /dev rw,nosuid shared:2 - devtmpfs udev rw,size=8k
24 23 0:24 / /dev/shm rw,nosuid,nodev shared:3 - tmpfs tmpfs rw,huge=within_size
25 22 0:25 / /run rw,nosuid,nodev shared:4 - tmpfs tmpfs rw,size=800k
26 22 8:17 / /data/pg\\040main rw,noatime shared:5 - xfs /dev/sdb1 rw
27 22 8:17 /copy /copy rw - xfs /dev/sdb1 rw
28 22 0:30 / /tmp rw,nosuid,nodev - tmpfs tmpfs rw,size=1024k
29 22 0:30 / /var/tmp rw,nosuid,nodev - tmpfs tmpfs rw,size=1024k
30 22 0:40 / /srv rw,relatime - nfs4 server:/srv rw
31 22 8:33 / /old ro,relatime - ext4 /dev/sdc1 rw
32 22 8:34 / /older rw,relatime - ext4 /dev/sdc2 ro
33 22 0:50 / /var/lib/docker/containers/1/mounts/shm rw - tmpfs shm rw,size=65536k
";

fn table(text: &str) -> Table {
    Table::of(&Mount::all(text))
}

fn names(text: &str) -> Vec<String> {
    table(text).names().map(str::to_owned).collect()
}

#[test]
fn mounts_that_somebody_tunes_are_there_under_the_names_of_their_units() {
    assert_eq!(names(TABLE), ["-", "copy", "data-pg\\x20main", "dev-shm", "old", "tmp", "var-tmp"]);
    let table = table(TABLE);
    let time = |name: &str| table.get(name).expect("it is meant").access_time().word();
    assert_eq!([time("-"), time("data-pg\\x20main"), time("copy")], ["relatime", "noatime", "strictatime"]);
    assert_eq!(table.get("data-pg\\x20main").expect("it is meant").path(), "/data/pg main");
    let huge = |name: &str| table.get(name).expect("it is meant").huge().to_owned();
    assert_eq!([huge("dev-shm"), huge("tmp")], ["within_size", "never"]);
}

#[test]
fn a_file_system_that_is_mounted_twice_has_its_settings_once_and_its_times_twice() {
    let table = table(TABLE);
    let has = |name: &str, setting: Setting| table.has(name, setting);
    if !mount::has_access_times() || !mount::has_reconfigure() {
        return planish_skip::skip("mounts", "this kernel has no calls for options of mounts");
    }
    assert_eq!(["tmp", "var-tmp", "dev-shm"].map(|name| has(name, Setting::Size)), [true, false, true]);
    assert_eq!(["data-pg\\x20main", "copy"].map(|name| has(name, Setting::AccessTime)), [true, true]);
    assert!(!has("dev-shm", Setting::AccessTime), "no disk");
    assert!(!has("-", Setting::Huge) && !has("-", Setting::Size), "no tmpfs");
    let files = table.files("dev-shm");
    assert_eq!(files[..3], ["size", "size_min", "size_max"]);
    assert_eq!(files.get(3).map(String::as_str), Path::new(HUGE_PAGES).exists().then_some("huge"));
    assert_eq!(table.files("-"), ["atime"]);
    assert!(table.files("no-such").is_empty());
}

#[test]
fn what_another_made_for_us_is_read_and_nobodys_to_set() {
    // The unit that compares has all mounts read-only, and a part of /tmp in the place of the whole.
    let apart = "22 1 8:2 / / ro,relatime - ext4 /dev/sda2 rw\n\
                 40 22 0:60 /systemd-private-1/tmp /tmp rw - tmpfs tmpfs rw\n";
    let apart = table(apart);
    if !mount::has_access_times() || !mount::has_reconfigure() {
        return planish_skip::skip("mounts", "this kernel has no calls for options of mounts");
    }
    assert_eq!(apart.mode("-", Setting::AccessTime), Some(0o444));
    assert_eq!(apart.read("-", Setting::AccessTime).expect("told"), "relatime");
    assert_eq!(apart.mode("tmp", Setting::Size), Some(0o444));
    let whole = "41 22 0:60 / /other rw - tmpfs tmpfs rw\n";
    let both = table(&format!("40 22 0:60 /a /tmp rw - tmpfs tmpfs rw\n{whole}"));
    assert!(both.has("other", Setting::Size) && !both.has("tmp", Setting::Size), "the whole counts");
    assert_eq!(both.mode("other", Setting::Huge).unwrap_or(0o644), 0o644);
}

#[test]
fn a_number_that_is_another_mounts_by_now_opens_nothing() {
    let live = Table::live().expect("a table");
    let Some(name) = live.names().find(|name| live.open(name, Setting::AccessTime).is_ok()) else {
        return planish_skip::skip("mounts", "no mount of this machine has access times that can be set");
    };
    // The same number and the same path, of another file system: what a table tells that is a moment old.
    let mut old = live.clone();
    let mount = old.mounts.get_mut(name).expect("it is there");
    mount.device = "9:99".to_owned();
    let error = old.open(name, Setting::AccessTime).expect_err("another mount");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    // Another option is no other mount.
    let mut old = live.clone();
    old.mounts.get_mut(name).expect("it is there").options = "rw".to_owned();
    old.open(name, Setting::AccessTime).expect("the same mount");
}

#[test]
fn a_tmpfs_that_never_goes_to_swap_says_so() {
    let line = "28 22 0:30 / /tmp rw,nosuid - tmpfs tmpfs rw,size=1024k";
    assert!(Mount::all(line)[0].has_swap() && !Mount::all(&format!("{line},noswap"))[0].has_swap());
}

#[test]
fn mounts_are_apart_where_none_of_them_is_process_ones() {
    let host = Mount::all(TABLE);
    // A copy of each with a number of its own, as `unshare --mount` makes them; and a look from below a folder.
    let copies: Vec<Mount> = host.iter().map(|mount| Mount { id: mount.id + 100, ..mount.clone() }).collect();
    assert!(share_none(&copies, &host));
    assert!(!share_none(&host, &host) && !share_none(&host[4..6], &host));
    assert!(!share_none(&[], &host) && !share_none(&host, &[]), "who tells nothing is taken for ours");
}

#[test]
fn what_lies_below_another_mount_is_not_reached() {
    let root = "22 1 8:2 / / rw,relatime - ext4 /dev/sda2 rw\n";
    let on_top = "50 22 8:3 / /data rw - xfs /dev/sdb rw\n51 50 8:4 / /data rw,noatime - xfs /dev/sdc rw\n";
    let both = table(&format!("{root}{on_top}"));
    assert_eq!(both.get("data").map(|mount| mount.id), Some(51), "the topmost counts");
    let hidden = "50 22 8:3 / /data/x rw - xfs /dev/sdb rw\n51 22 8:4 / /data rw - xfs /dev/sdc rw\n";
    assert_eq!(names(&format!("{root}{hidden}")), ["-", "data"]);
    let inside = "50 22 8:4 / /data rw - xfs /dev/sdc rw\n51 50 8:3 / /data/x rw - xfs /dev/sdb rw\n";
    assert_eq!(names(&format!("{root}{inside}")), ["-", "data", "data-x"]);
    // A file of a mount that is itself below another one.
    let deeper = "50 22 8:4 / /a rw - xfs /dev/sdc rw\n51 50 8:3 / /a/x rw - xfs /dev/sdb rw\n\
                  52 50 0:9 / /a rw - nfs server:/ rw\n";
    assert_eq!(names(&format!("{root}{deeper}")), ["-"]);
    let beside = "50 22 8:3 / /data1 rw - xfs /dev/sdb rw\n51 22 8:4 / /data rw - xfs /dev/sdc rw\n";
    assert_eq!(names(&format!("{root}{beside}")), ["-", "data", "data1"]);
    let circle = "50 51 8:3 / /a/b rw - xfs /dev/sdb rw\n51 50 8:4 / /a rw - xfs /dev/sdc rw\n";
    assert_eq!(names(circle), [""; 0], "no kernel says so");
}

#[test]
fn odd_lines_are_passed_over() {
    for odd in [
        "",
        "22 1 8:2 / / rw,relatime",
        "x 1 8:2 / / rw - ext4 a rw",
        "22 1 8:2 / relative rw - ext4 a rw",
        "22 1 8:2 / /a\\04 rw - ext4 a rw",
        "22 1 8:2 / /a\\777 rw - ext4 a rw",
        "22 1 8:2 / /a\u{fffd} rw - ext4 a rw",
        "22 1 8:2 / /a rw - ext4 a",
        "22 1 8:2 / /a\\é rw - ext4 a rw",
    ] {
        assert!(Mount::all(odd).is_empty(), "{odd}");
    }
}

/// Names themselves are held to those of systemd where both ways to make them are seen: in `observe`.
#[test]
fn only_a_setting_of_a_mount_is_one() {
    assert_eq!(setting_at("/planish/mounts/-/atime"), Some(("-", Setting::AccessTime)));
    for none in ["/planish/mounts", "/planish/mounts/-", "/planish/mounts//atime", "/planish/mounts/-/other"]
    {
        assert_eq!(setting_at(none), None, "{none}");
    }
}

#[test]
fn the_mounts_of_this_machine_are_told_as_they_are() {
    // Looked at only: nothing of a mount of this machine is set.
    let table = Table::live().expect("a table");
    for name in table.names() {
        for (setting, _) in Setting::ALL.iter().filter(|(setting, _)| table.has(name, *setting)) {
            match table.read(name, *setting) {
                Ok(text) => assert!(!text.is_empty(), "{name}"),
                Err(error) => assert!(
                    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound),
                    "{name}: {error}"
                ),
            }
        }
    }
}

proptest! {
    #[test]
    fn any_table_is_read(
        text in "([0-9]{1,2} [0-9]{1,2} [0-9]:[0-9] / (/|/[ab]){1,3} (rw|ro) - (xfs|tmpfs) x rw\n){0,12}"
    ) {
        let mounts = Mount::all(&text);
        let table = Table::of(&mounts);
        for name in table.names() {
            let mount = table.get(name).expect("it has that name");
            prop_assert!(mounts.contains(mount) && name_of(mount.path()) == name);
        }
    }

    #[test]
    fn no_two_paths_have_one_name(a in "(/[-a.\\\\ ]{1,3}){1,3}", b in "(/[-a.\\\\ ]{1,3}){1,3}") {
        prop_assert!(a == b || name_of(&a) != name_of(&b));
    }
}
