#!/bin/sh
# Runs a command while tuned is at work, for the row `tuned-adm verify` of `./x bench host`:
#
#     sudo benches/beside-tuned.sh ./x bench host
#
# Its profile wants 60 settings of this machine as they are, so that nothing changes, neither when it starts nor when it
# ends. Its files and its bus are in a mount namespace of their own, and both programs end with the command.
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

mkdir -p /run/tuned /run/dbus /etc/tuned /var/log/tuned
for folder in /run/tuned /run/dbus /etc/tuned /var/log/tuned; do
    mount -t tmpfs -o mode=755 planish "$folder"
done
# reapply_sysctl would write what files of sysctl.d say, which need not be what is set now.
printf 'daemon = 1\ndynamic_tuning = 0\nreapply_sysctl = 0\n' >/etc/tuned/tuned-main.conf
mkdir /etc/tuned/as-it-is
{
    printf '[main]\nsummary=As it is\n[sysctl]\n'
    # What is read there is not what a write means, or a write of 0 is refused.
    for file in /proc/sys/vm/* /proc/sys/net/core/* /proc/sys/net/ipv4/tcp_*; do
        case $file in */drop_caches | */compact_memory | */stat_refresh | */*dirty*bytes) continue ;; esac
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
trap 'for own in "$daemon" "$bus"; do kill "$own" 2>/dev/null && wait "$own" 2>/dev/null; done; :' EXIT
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
