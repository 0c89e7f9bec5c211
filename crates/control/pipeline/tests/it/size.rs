//! What a server that does not run says it will need, in pages of its own size.

use std::collections::BTreeMap;
use std::path::Path;

use planish_model::Exit;
use planish_pipeline::{PlanOptions, Service, SizeRequest, Source, doctor, plan, size};

use crate::tree::Tree;

#[expect(clippy::disallowed_methods, reason = "sets up the fixture")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a temporary folder is writable");
}

/// Pages of each size on the two-socket host, by a server that answers with these settings.
fn pages(shared_memory_size_in_huge_pages: &str, huge_page_size: &str) -> Vec<(u64, u64)> {
    let data = tempfile::tempdir().expect("a temporary folder");
    write(&data.path().join("shared_memory_size_in_huge_pages"), shared_memory_size_in_huge_pages);
    write(&data.path().join("huge_page_size"), huge_page_size);
    write(&data.path().join("PG_VERSION"), "15\n");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/server/postgres");
    let request = SizeRequest::Postgres { data: data.path().to_owned(), program: Some(program) };
    let sizing = size(&Tree::copy_of("metal-2s").session(), &request, Some(0)).expect("it answers");
    let mut sums = BTreeMap::new();
    sizing.rows.iter().for_each(|row| *sums.entry(row.page_bytes).or_insert(0) += row.pages);
    sums.into_iter().collect()
}

#[test]
fn a_server_is_sized_in_the_pages_that_it_was_told_to_use() {
    // 4 GB of shared buffers, as PostgreSQL 15 answers.
    assert_eq!(pages("5\n", "1048576\n"), [(2 << 20, 2560), (1 << 30, 5)]);
}

/// As the launcher of PostgreSQL, which maps one segment more than the postmaster.
#[test]
fn one_process_stands_for_a_name_in_doctor_and_in_size() {
    let tree = Tree::copy_of("metal-2s");
    let more = "7ffd00000000-7ffd40000000 rw-s 00000000 00:01 9 /dev/shm/more\nSize: 1048576 kB\nKernelPageSize: 4 kB\n\
                MMUPageSize: 4 kB\nRss: 0 kB\nVmFlags: rd wr sh\n";
    for (pid, resident) in [("2190", "1214663 kB"), ("2290", "1214664 kB")] {
        let of_first = |file: &str| tree.get(&format!("/proc/2201/{file}"));
        let put = |file: &str, text: &str| tree.put(&format!("/proc/{pid}/{file}"), text);
        put("stat", &of_first("stat").replacen("2201", pid, 1));
        put("status", &of_first("status").replace("1214664 kB", resident).replace("2201", pid));
        put("smaps", &(of_first("smaps") + more));
    }
    let (session, service) = (tree.session(), Service::Name("postgres".to_owned()));
    let sized = size(&session, &SizeRequest::Service(service.clone()), None).expect("it is seen");
    let seen =
        doctor(&session, None, Some(&service), &[]).expect("it is seen").service.expect("it was named");
    assert_eq!((seen.pid, seen.processes, sized.subject.as_str()), (2201, 3, "postgres (pid 2201)"));
}

#[test]
fn a_profile_that_is_for_other_programs_than_the_service_says_so() {
    let tree = Tree::copy_of("metal-2s");
    for service in [Service::Name("postgres".to_owned()), Service::Pid(2201)] {
        let unsuited = |profile: &str| {
            let options = PlanOptions { service: Some(service.clone()), ..PlanOptions::default() };
            plan(&tree.session(), &Source::Profile(profile.to_owned()), &options).expect("a plan").unsuited
        };
        let told = "mysql is for mysqld, mariadbd, and this service is postgres: take postgres";
        assert_eq!(unsuited("mysql").as_deref(), Some(told));
        assert_eq!([unsuited("postgres"), unsuited("series")], [None, None]);
    }
}

#[test]
fn a_data_folder_that_is_not_there_is_a_wrong_word_and_no_server_that_is_silent() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("file");
    write(&file, "15\n");
    for data in [folder.path().join("nope"), file.clone(), file.join("under")] {
        let request = SizeRequest::Postgres { data: data.clone(), program: None };
        let error = size(&Tree::copy_of("metal-2s").session(), &request, None).expect_err("nothing is there");
        assert_eq!(
            (error.exit(), error.to_string()),
            (Exit::Usage, format!("{} is no folder", data.display()))
        );
        assert!(!error.hints()[0].contains("--postgres-program"), "{:?}", error.hints());
    }
}

#[test]
fn a_folder_of_no_server_is_a_wrong_word_and_no_server_that_is_silent() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let request = SizeRequest::Postgres { data: folder.path().to_owned(), program: None };
    let asked =
        || size(&Tree::copy_of("metal-2s").session(), &request, None).expect_err("no server is there");
    let error = asked();
    let told = format!("{} is no data folder of PostgreSQL: ", folder.path().display());
    assert!(error.exit() == Exit::Usage && error.to_string().starts_with(&told), "{error}");
    assert!(!error.hints()[0].contains("--postgres-program"), "{:?}", error.hints());
    // The folder of a configuration alone is what Debian has in /etc.
    write(&folder.path().join("postgresql.conf"), "data_directory = '/nope'\n");
    assert!(!asked().to_string().contains("data folder"), "{}", asked());
}

#[test]
fn one_segment_is_shared_out_anew_in_pages_of_another_size() {
    assert_eq!(pages("2107\n", "0\n"), [(2 << 20, 2107), (1 << 30, 5)]);
}
