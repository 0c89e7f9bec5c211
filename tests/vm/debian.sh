#!/bin/sh
# Makes a disk with a real Debian for `./x vm --disk`: partition table, ext4, GRUB, systemd, a cloud kernel, tuned and
# irqbalance. Packages come from wherever this machine's apt gets its own.
#
#     sudo tests/vm/debian.sh IMAGE
#
# Leaves IMAGE, and beside it IMAGE.vmlinuz and IMAGE.initrd for the first boot, which runs `planish-prepare` from
# inside (grub-install, update-grub: both want to see the disk that they are for). No disk of this machine is mounted or
# written: the file system is filled by mke2fs. What is mounted is in a private namespace and vanishes with it.
set -eu

image=$1
if [ "$(id -u)" != 0 ]; then
    echo "debian.sh: only root can unpack a Debian: sudo $0 IMAGE" >&2
    exit 3
fi
if [ -z "${PLANISH_PRIVATE:-}" ]; then
    PLANISH_PRIVATE=1 exec unshare --mount --pid --fork --kill-child "$0" "$@"
fi

# In memory, about 1 GiB of it: gone with the mount, so that nothing is ever removed below files of this machine.
root=$(mktemp -d "${TMPDIR:-/tmp}/planish-debian.XXXXXX")
trap 'umount -R "$root" && rmdir "$root"' EXIT
mount -t tmpfs -o mode=755,size=3g planish "$root"
say() { printf '== %s\n' "$1" >&2; }

# The suite and the mirror that apt has here.
if [ -z "$(find /var/lib/apt/lists -name '*_Packages*' -print -quit)" ]; then
    apt-get --quiet update >&2
fi
found=$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(CODENAME)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' |
    awk -F'|' '$1 == "Debian" && $2 == "Debian" && $3 !~ /-/ && $4 == "main" { print $3, $5; exit }')
[ -n "$found" ] || { echo "debian.sh: apt knows no registry of Debian here" >&2; exit 4; }
suite=${found% *} mirror=${found#* }

say "debootstrap $suite"
debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "$mirror" >&2

say "packages"
mount -t proc proc "$root/proc"
mounted="/proc"
# How this machine reaches its registries holds while packages are installed, and stays out of the image.
for from in /etc/apt /etc/resolv.conf /etc/hosts /usr/share/keyrings; do
    [ -e "$from" ] || continue
    [ -e "$root$from" ] || { [ -d "$from" ] && mkdir -p "$root$from" || : >"$root$from"; }
    mount --bind "$from" "$root$from"
    mount -o remount,bind,ro "$root$from"
    mounted="$mounted $from"
done
authority=/etc/ssl/certs/ca-certificates.crt
[ ! -e "$authority" ] || cp -L "$authority" "$root/run/authority.crt"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
# The smallest first root that finds its disk: emulation unpacks a large one in minutes.
mkdir -p "$root/etc/initramfs-tools/conf.d"
printf 'MODULES=list\nCOMPRESS=gzip\n' >"$root/etc/initramfs-tools/conf.d/planish"
printf 'virtio_pci\nvirtio_blk\next4\ncrc32c_generic\ncrc32c_intel\n' >"$root/etc/initramfs-tools/modules"
inside() {
    env -i HOME=/root TERM=dumb LC_ALL=C DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        $(env | grep -E '^(https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY)=') chroot "$root" "$@" </dev/null >&2
}
apt() {
    inside apt-get --quiet -o APT::Sandbox::User=root -o Acquire::https::CAInfo=/run/authority.crt "$@"
}
get() {
    apt --yes --no-install-recommends -o Dpkg::Options::=--force-confold -o Dpkg::Options::=--force-unsafe-io \
        install "$@"
}
apt update
get systemd-sysv udev dbus kmod procps initramfs-tools linux-image-cloud-amd64 grub-pc
# It stops planish before a named system call, at which the power is cut.
get strace
# Without them the checks about them skip, aloud.
get irqbalance || say "no irqbalance"
get tuned || say "no tuned"

say "settings"
inside apt-get clean
rm -rf "$root/usr/sbin/policy-rc.d" "$root/run/authority.crt" "$root/usr/share/doc" "$root/usr/share/man"
cat >"$root/etc/fstab" <<'FSTAB'
/dev/vda1 / ext4 errors=remount-ro 0 1
/dev/vdb /opt/planish ext4 ro,nofail,x-systemd.device-timeout=900 0 0
FSTAB
mkdir -p "$root/opt/planish" "$root/etc/planish/profiles" "$root/var/lib/planish-guest"
ln -s /opt/planish/planish "$root/usr/bin/planish"
echo planish-guest >"$root/etc/hostname"
# notsc: a busy machine calibrates an emulated time stamp counter wrongly, and the guest's clock runs several times too
# fast, so that limits of time strike where none should.
cat >"$root/etc/default/grub" <<'GRUB'
# What an administrator would have written.
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=`lsb_release -i -s 2> /dev/null || echo Debian`
GRUB_CMDLINE_LINUX_DEFAULT="quiet"   # the end of this line stays
GRUB_CMDLINE_LINUX="console=ttyS0 notsc no_timer_check mitigations=off"
GRUB_TERMINAL=console
GRUB
cat >"$root/etc/systemd/system/planish-guest.service" <<'UNIT'
[Unit]
Description=One stage of the proof that planish runs here
RequiresMountsFor=/opt/planish
After=systemd-sysctl.service systemd-tmpfiles-setup.service dbus.service

[Service]
Type=exec
ExecStart=/opt/planish/init
StandardInput=null
StandardOutput=tty
StandardError=journal+console
TTYPath=/dev/ttyS1

[Install]
WantedBy=multi-user.target
UNIT
mkdir -p "$root/etc/systemd/journald.conf.d" "$root/etc/systemd/system.conf.d"
printf '[Journal]\nStorage=volatile\n' >"$root/etc/systemd/journald.conf.d/planish.conf"
# An emulated machine on a busy one is slow, and that is no failure.
printf '[Manager]\nDefaultTimeoutStartSec=900s\nDefaultTimeoutStopSec=300s\n' \
    >"$root/etc/systemd/system.conf.d/planish.conf"
inside systemd-machine-id-setup
inside systemctl enable planish-guest.service
for unit in tuned.service irqbalance.service grub-common.service e2scrub_reap.service; do
    inside systemctl disable "$unit" || :
done
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
    getty@tty1.service serial-getty@ttyS0.service systemd-timesyncd.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
cat >"$root/usr/local/sbin/planish-prepare" <<'PREPARE'
#!/bin/sh
# Process 1 of the first boot, which QEMU starts without a loader: what an installer does last.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
mount -o remount,rw /
grub-install --target=i386-pc /dev/vda && update-grub && said=prepared || said=failed
sync
mount -o remount,ro /
echo "PLANISH-PREPARED $said" >/dev/ttyS1
sleep 1
echo o >/proc/sysrq-trigger
sleep 60
PREPARE
chmod 755 "$root/usr/local/sbin/planish-prepare"

say "image"
cp "$root"/boot/vmlinuz-* "$image.vmlinuz"
cp "$root"/boot/initrd.img-* "$image.initrd"
for at in $mounted; do
    umount "$root$at"
done
start=2048 size_mib=2048
rm -f "$image"
truncate -s "${size_mib}M" "$image"
echo "start=$start, type=83, bootable" | sfdisk --quiet "$image" >&2
mke2fs -q -t ext4 -L planish -d "$root" -N 65536 \
    -O '^metadata_csum_seed,^orphan_file' -E "offset=$((start * 512)),lazy_itable_init=0,lazy_journal_init=0" \
    "$image" "$(((size_mib - 1) * 1024))k" >&2
