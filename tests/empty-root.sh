#!/bin/sh
# Proves the README: in an empty Debian with a Rust toolchain and nothing else, `./x test` and
# `./x prove --quick` set up all they need by themselves and pass.
#
#     sudo tests/empty-root.sh [DIR [TASK...]]
#
# DIR keeps the root for a second look; without it the root is removed. TASK is a command line for the
# checkout inside, in place of the two above.
#
# proc and sys are read-only inside, so nothing of this machine's kernel can be tuned from there.
# How this machine reaches its registries (apt sources, certificates, proxies, cargo) is passed in
# as it is. Everything is mounted in a private namespace and vanishes with it.
set -eu

suite=${SUITE:-bookworm}
checkout=$(cd "$(dirname "$0")/.." && pwd)

if [ "$(id -u)" != 0 ]; then
    echo "empty-root: only root may make a root: sudo $0" >&2
    exit 3
fi
if ! command -v debootstrap >/dev/null 2>&1; then
    apt-get install --yes --no-install-recommends debootstrap >&2
fi
if [ -z "${EMPTY_ROOT_PRIVATE:-}" ]; then
    # Mounts and processes in namespaces of their own: whatever happens, none of them stays.
    EMPTY_ROOT_PRIVATE=1 exec unshare --mount --pid --fork --kill-child "$0" "$@"
fi

if [ $# -gt 0 ]; then
    root=$1
    mkdir -p "$root"
    shift
else
    root=$(mktemp -d "${TMPDIR:-/tmp}/empty-root.XXXXXX")
    # Mounts first, or the removal would reach through them.
    trap 'umount -R "$root/proc" "$root/sys" "$root/dev/pts" "$root/opt/rust" 2>/dev/null
          mountpoint -q "$root/opt/rust" || rm -rf --one-file-system "$root"' EXIT
fi
# A temporary folder is its owner's alone, and the users inside must get through their own `/`.
chmod 755 "$root"

say() { printf '\n== %s\n' "$1" >&2; }

say "debootstrap $suite"
[ -e "$root/etc/debian_version" ] || debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" >&2

say "the same registries as this machine"
rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
cp -a /etc/apt/. "$root/etc/apt/"
for from in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
    [ ! -e "$from" ] || cp -L "$from" "$root$from"
done
for from in /usr/share/keyrings /usr/local/share/ca-certificates; do
    [ ! -d "$from" ] || { mkdir -p "$root$from" && cp -a "$from/." "$root$from/"; }
done

say "a Rust toolchain"
toolchain=$(rustc --print sysroot)
mkdir -p "$root/opt/rust" "$root/root/.cargo"
mount --bind -o ro "$toolchain" "$root/opt/rust"
mount -o remount,bind,ro "$root/opt/rust"
for file in config.toml config; do
    from="${CARGO_HOME:-$HOME/.cargo}/$file"
    [ ! -e "$from" ] || cp "$from" "$root/root/.cargo/"
done

say "the checkout, as committed"
rm -rf "$root/root/planish"
git -C "$checkout" clone --quiet --no-hardlinks "$checkout" "$root/root/planish"

mount -t proc -o ro proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mkdir -p "$root/dev/shm" "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -sf pts/ptmx "$root/dev/ptmx"

# Only what a login would set, and what this machine needs to reach its registries.
inside() {
    env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        $(env | grep -E '^(https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY|CARGO_(HTTP|NET|SOURCE)_[A-Z_]*|SSL_CERT_[A-Z]*)=') \
        chroot "$root" sh -c "cd /root/planish && $1" </dev/null
}

[ $# -gt 0 ] || set -- "./x test" "./x prove --quick"
status=0
for task; do
    say "$task"
    code=0
    inside "$task" || code=$?
    printf '\n== %s left with %s\n' "$task" "$code"
    # 6 is the honest answer of a noisy machine, not a failure of the set-up.
    case "$task:$code" in *:0 | "./x prove"*:6) ;; *) status=1 ;; esac
done

say "a clone stays as it was cloned"
# Apart, so that a git that fails is not taken for one that has nothing to say.
left=$(git -C "$root/root/planish" status --porcelain --ignored) || status=1
if printf '%s\n' "$left" | grep -v -E '^(!! reports/)?$'; then status=1; fi
exit "$status"
