//! Default files of GRUB that are cut off anywhere, held to what a shell says of them.

use std::process::Command;

use planish_boot::{Odd, refuse_unfinished};

/// Whole files, as distributions and administrators write them.
const FILES: [&str; 4] = [
    "# comment `with` an odd ' quote\nGRUB_DEFAULT=0\nGRUB_TIMEOUT=\"5\"\n\
     GRUB_DISTRIBUTOR=`( . /etc/os-release; echo ${NAME:-Debian} ) 2>/dev/null || echo Debian`\n\
     GRUB_CMDLINE_LINUX_DEFAULT=\"quiet `echo \"a b\"` splash\"\nGRUB_CMDLINE_LINUX=''\n",
    "GRUB_DISTRIBUTOR=\"$(sed 's, release .*$,,g' /etc/system-release)\"\n\
     if [ -f /etc/x ]; then\n  GRUB_TIMEOUT=3\nelif true && [ -z \"$A\" ]; then B=1; else\n C=2 # if\nfi\n\
     export D=if\n",
    "for f in a 'b c' \"d\"; do\n  case $f in\n    a|b) X=1 ;;\n    *) X=\"${X:-$(echo 'x)')} y\" ;;\n  esac\n\
     done\nwhile false; do :; done\n{ Y=1; }\nZ=\"a \\\"b\\\" c\"\\\n'd'\ntrue ||\n  false | cat\n",
    "cat > /dev/null <<EOF\nsome `` text\nEOF\nA=1\n",
];

fn is_read_by_a_shell(text: &str) -> bool {
    let checked = Command::new("sh").args(["-n", "-c", text]).output().expect("a shell");
    checked.status.success()
}

/// Wherever such a file is cut: what a shell cannot read to its end is refused.
#[test]
fn a_default_file_that_is_cut_where_no_shell_reads_it_is_refused() {
    let mut refused = 0;
    for file in FILES {
        assert!(is_read_by_a_shell(file), "{file}");
        // What is refused for another reason, as a here-document is, is not cut off.
        assert!(!matches!(refuse_unfinished(file), Err(Odd::CutOff { .. })), "{file}");
        for at in (1..file.len()).filter(|at| file.is_char_boundary(*at)) {
            let cut = &file[..at];
            if !is_read_by_a_shell(cut) {
                assert!(refuse_unfinished(cut).is_err(), "a shell cannot read {cut:?}");
                refused += 1;
            }
        }
    }
    assert!(refused > 200, "{refused}");
}
