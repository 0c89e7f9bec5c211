#!/bin/sh
# Runs a command while tuned is at work, for the row `tuned-adm verify` of `./x bench host`:
#
#     sudo benches/beside-tuned.sh ./x bench host
#
# Its profile wants 60 settings of the network as they are. None of them has a twin that a write would change: tuned keeps
# what it finds just before each write, and would put back what its own writes had changed. All of /proc/sys is compared
# with how it was, put back, and told (exit 6). Files and bus of tuned are in a mount namespace of their own, and both
# programs end with the command.
# Needs the packages tuned and dbus.
set -eu

if [ "$(id -u)" != 0 ]; then
    echo "beside-tuned: only root may start tuned: sudo $0 $*" >&2
    exit 3
fi
for program in tuned tuned-adm dbus-daemon; do
    command -v "$program" >/dev/null 2>&1 || {
        echo "beside-tuned: $program is not installed: apt-get install tuned dbus" >&2
        exit 3
    }
done
if [ -e /run/tuned/tuned.pid ]; then
    echo "beside-tuned: tuned runs here already: the row needs no more than $*" >&2
    exit 3
fi
if [ -z "${PLANISH_BESIDE_TUNED:-}" ]; then
    PLANISH_BESIDE_TUNED=1 exec unshare --mount --propagation private "$0" "$@"
fi

# Settings with one number that stay as they are while nobody writes them.
settings() {
    for file in /proc/sys/vm/* /proc/sys/net/core/* /proc/sys/net/ipv4/* /proc/sys/kernel/*; do
        case $file in */ns_last_pid) continue ;; esac
        [ -w "$file" ] && value=$(cat "$file" 2>/dev/null) || continue
        case $value in '' | *[!0-9]*) continue ;; esac
        echo "$file=$value"
    done
}

mkdir -p /run/tuned /run/dbus /etc/tuned /var/log/tuned
for folder in /run/tuned /run/dbus /etc/tuned /var/log/tuned; do
    mount -t tmpfs -o mode=755 planish "$folder"
done
settings >/run/tuned/before
# reapply_sysctl would write what files of sysctl.d say, which need not be what is set now.
printf 'daemon = 1\ndynamic_tuning = 0\nreapply_sysctl = 0\n' >/etc/tuned/tuned-main.conf
mkdir /etc/tuned/as-it-is
{
    printf '[main]\nsummary=As it is\n[sysctl]\n'
    for file in /proc/sys/net/core/* /proc/sys/net/ipv4/tcp_*; do
        [ -w "$file" ] && value=$(cat "$file" 2>/dev/null) || continue
        case $value in '' | *[!0-9]*) continue ;; esac
        echo "$file = $value" | sed 's|^/proc/sys/||; s|/|.|g'
    done | head -n 60
} >/etc/tuned/as-it-is/tuned.conf
echo as-it-is >/etc/tuned/active_profile
echo manual >/etc/tuned/profile_mode

dbus-daemon --system --nofork --nopidfile &
bus=$!
tuned --pid /run/tuned/tuned.pid --log /var/log/tuned/tuned.log &
daemon=$!
# polkitd, which the bus starts, ends with it.
end() {
    code=$?
    for own in "$daemon" "$bus"; do kill "$own" 2>/dev/null && wait "$own" 2>/dev/null; done
    settings | while IFS='=' read -r file value; do
        before=$(grep -F "$file=" /run/tuned/before) || continue
        [ "$before" != "$file=$value" ] || continue
        echo "beside-tuned: $file became $value: put back to ${before#*=}" >&2
        printf '%s' "${before#*=}" >"$file" && : >/run/tuned/changed
    done
    [ ! -e /run/tuned/changed ] || code=6
    exit "$code"
}
trap end EXIT
tries=0
until [ -e /run/tuned/tuned.pid ] && tuned-adm verify >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 60 ]; then
        echo "beside-tuned: tuned did not come to verify its own profile:" >&2
        tail -n 5 /var/log/tuned/tuned.log >&2
        exit 4
    fi
    sleep 1
done
"$@"
