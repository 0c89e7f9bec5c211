#!/bin/sh
# Makes a disk with a real Debian for `./x vm --disk`. Packages come from wherever this machine's apt gets its own.
#
#     sudo tests/vm/debian.sh KIND IMAGE
#
# | kind | suite | loader | file systems | besides |
# |---|---|---|---|---|
# | menu | that of this machine | GRUB, whose menu update-grub makes | / | tuned, irqbalance, hwloc |
# | newer | the same | the same | / | the same, and Linux 6.12 |
# | entries | stable | under a BIOS GRUB, whose menu reads entries of files; under EFI systemd-boot | /, /boot, /boot/efi | |
#
# GRUB reads entries (`blscfg`) from 2.14 on, which no stable Debian has yet: that one package is of unstable.
#
# Leaves IMAGE, and beside it IMAGE.vmlinuz and IMAGE.initrd for the first boot, which runs `planish-prepare` from
# inside (grub-install, update-grub: both want to see the disk that they are for). No disk of this machine is mounted or
# written: the file system is filled by mke2fs. What is mounted is in a private namespace and vanishes with it.
set -eu

kind=$1 image=$2
case $kind in
    menu | newer | entries) ;;
    *)
        echo "debian.sh: no kind $kind: menu, newer or entries" >&2
        exit 2
        ;;
esac
if [ "$(id -u)" != 0 ]; then
    echo "debian.sh: only root can unpack a Debian: sudo $0 $kind IMAGE" >&2
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
own=$suite
[ "$kind" != entries ] || suite=stable

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
# Of the other suites nothing but their registry: how this machine reaches it stays in force.
sources=
if [ "$kind" = entries ]; then
    signed=/usr/share/keyrings/debian-archive-keyring.gpg
    for from in $(printf '%s\n' "$own" stable unstable | uniq); do
        printf 'deb [signed-by=%s] %s %s main\n' "$signed" "$mirror" "$from"
    done >"$root/run/sources.list"
    # Of the others only what is asked for from there, and what that needs.
    sources="-o Dir::Etc::sourcelist=/run/sources.list -o Dir::Etc::sourceparts=- -o APT::Default-Release=stable"
fi
apt() {
    # shellcheck disable=SC2086
    inside apt-get --quiet -o APT::Sandbox::User=root -o Acquire::https::CAInfo=/run/authority.crt $sources "$@"
}
get() {
    apt --yes --no-install-recommends -o Dpkg::Options::=--force-confold -o Dpkg::Options::=--force-unsafe-io \
        install "$@"
}
apt update
get systemd-sysv udev dbus kmod procps initramfs-tools
if [ "$kind" != entries ]; then
    linux=linux-image-cloud-amd64
    # A suite whose own kernel is older has this one beside it, and one whose own is not has no such name.
    if [ "$kind" = newer ] && inside apt-cache show linux-image-6.12-cloud-amd64 2>/dev/null; then
        linux=linux-image-6.12-cloud-amd64
    fi
    get "$linux" grub-pc
    # It stops planish before a named system call, at which the power is cut.
    get strace
    # Without them the checks about them skip, aloud.
    get irqbalance || say "no irqbalance"
    get tuned || say "no tuned"
    get hwloc-nox || say "no hwloc"
else
    # The kernel of this machine's own suite goes with its emulator: 6.12 dies under that of Debian 12.
    get -t "$own" linux-image-cloud-amd64
    get -t unstable grub-pc
    get systemd-boot-efi dosfstools mtools
fi

size_mib=2560 boot_mib=192 esp_mib=128
[ "$kind" = entries ] || size_mib=2048 boot_mib=0 esp_mib=0

say "settings"
inside apt-get clean
rm -rf "$root/usr/sbin/policy-rc.d" "$root/run/authority.crt" "$root/usr/share/doc" "$root/usr/share/man"
cat >"$root/etc/fstab" <<'FSTAB'
/dev/vda1 / ext4 errors=remount-ro 0 1
/dev/vdb /opt/planish ext4 ro,nofail,x-systemd.device-timeout=900 0 0
FSTAB
[ "$kind" != entries ] || cat >>"$root/etc/fstab" <<'FSTAB'
/dev/vda2 /boot ext4 defaults 0 2
/dev/vda3 /boot/efi vfat umask=0077 0 2
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
# What starts the machine anew waits until the stage has told what it saw.
KillSignal=SIGCONT
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
printf '[Manager]\nDefaultTimeoutStartSec=900s\nDefaultTimeoutStopSec=300s\nDefaultDeviceTimeoutSec=900s\n' \
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
# Process 1 of the first boot, which QEMU starts without a loader: what an installer does last.
cat >"$root/usr/local/sbin/planish-prepare" <<'PREPARE'
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
mount -o remount,rw /
grep -q ' /boot ' /etc/fstab && mount /boot
default=$(cat /etc/planish-guest.default 2>/dev/null)
rm -f /etc/planish-guest.default
grub-install --target=i386-pc /dev/vda && update-grub &&
    { [ -z "$default" ] || grub-editenv /boot/grub/grubenv set saved_entry="$default" \
        kernelopts="root=/dev/vda1 ro console=ttyS0 notsc no_timer_check mitigations=off"; } &&
    said=prepared || said=failed
sync
umount /boot 2>/dev/null
mount -o remount,ro /
echo "PLANISH-PREPARED $said" >/dev/ttyS1
sleep 1
echo o >/proc/sysrq-trigger
sleep 60
PREPARE
chmod 755 "$root/usr/local/sbin/planish-prepare"

if [ "$kind" = entries ]; then
    say "entries"
    release=$(ls "$root/lib/modules") machine=$(cat "$root/etc/machine-id")
    name=$machine-$release
    arguments="root=/dev/vda1 ro console=ttyS0 notsc no_timer_check mitigations=off"
    # As kernel-install writes them: kernel and initrd in a folder of the machine on the partition of the firmware.
    esp=$root/run/esp
    mkdir -p "$esp/EFI/systemd" "$esp/EFI/BOOT" "$esp/loader/entries" "$esp/$machine/$release"
    for to in EFI/systemd/systemd-bootx64.efi EFI/BOOT/BOOTX64.EFI; do
        cp "$root/usr/lib/systemd/boot/efi/systemd-bootx64.efi" "$esp/$to"
    done
    cp "$root/boot/vmlinuz-$release" "$esp/$machine/$release/linux"
    cp "$root/boot/initrd.img-$release" "$esp/$machine/$release/initrd.img"
    printf 'timeout 0\nconsole-mode keep\n' >"$esp/loader/loader.conf"
    entry() {
        printf 'title      %s\nversion    %s\nmachine-id %s\n%soptions    %s\nlinux      %s\ninitrd     %s\n' \
            "$1" "$release" "$machine" "$2" "$3" "$4" "$5"
    }
    at=/$machine/$release
    entry "Debian GNU/Linux" "sort-key   debian
" "$arguments" "$at/linux" "$at/initrd.img" >"$esp/loader/entries/$name.conf"
    entry "Debian GNU/Linux, rescue" "sort-key   zz-rescue
" "$arguments single" "$at/linux" "$at/initrd.img" >"$esp/loader/entries/$machine-0-rescue.conf"
    # As Fedora writes them: of the kernels in /boot, one with the common arguments and one with its own.
    folder=$root/boot/loader/entries
    mkdir -p "$folder" "$root/boot/efi"
    kernel="/vmlinuz-$release" initrd="/initrd.img-$release"
    entry "Debian GNU/Linux" "" '$kernelopts quiet' "$kernel" "$initrd" >"$folder/$name.conf"
    entry "Debian GNU/Linux, by itself" "" "$arguments" "$kernel" "$initrd" >"$folder/$machine-1.0-own.conf"
    entry "Debian GNU/Linux, rescue" "" "$arguments single" "$kernel" "$initrd" >"$folder/$machine-0-rescue.conf"
    # The script that Fedora's GRUB has in this one's place.
    cat >"$root/etc/grub.d/10_linux" <<'SCRIPT'
#!/bin/sh
set -e
. /usr/share/grub/grub-mkconfig_lib
prepare_grub_to_access_device "$(grub-probe --target=device /boot)"
echo blscfg
SCRIPT
    sed -i 's/^GRUB_DEFAULT=.*/GRUB_DEFAULT=saved/' "$root/etc/default/grub"
    mkdir -p "$root/etc/kernel"
    echo "$arguments quiet" >"$root/etc/kernel/cmdline"
    # The first boot makes the environment block, and takes this away.
    echo "$name" >"$root/etc/planish-guest.default"
    truncate -s "$((esp_mib))M" "$root/run/esp.img"
    inside mkfs.vfat -F 32 -n ESP /run/esp.img
    inside mcopy -s -i /run/esp.img /run/esp/EFI /run/esp/loader "/run/esp/$machine" ::
    rm -rf "$esp"
fi

say "image"
cp "$root"/boot/vmlinuz-* "$image.vmlinuz"
cp "$root"/boot/initrd.img-* "$image.initrd"
for at in $mounted; do
    umount "$root$at"
done
rm -f "$image"
truncate -s "${size_mib}M" "$image"
# Fills a partition with what is in a folder: first and number of MiB, label, folder.
fill() {
    mke2fs -q -t ext4 -L "$3" -d "$4" -N 65536 -O '^metadata_csum_seed,^orphan_file' \
        -E "offset=$(($1 << 20)),lazy_itable_init=0,lazy_journal_init=0" "$image" "$(($2 * 1024))k" >&2
}
root_mib=$((size_mib - 1 - boot_mib - esp_mib))
if [ "$kind" != entries ]; then
    echo "start=1MiB, type=83, bootable" | sfdisk --quiet "$image" >&2
else
    boot_at=$((1 + root_mib))
    efi_at=$((boot_at + boot_mib))
    printf 'start=1MiB, size=%dMiB, type=83, bootable\nstart=%dMiB, size=%dMiB, type=83\nstart=%dMiB, type=ef\n' \
        "$root_mib" "$boot_at" "$boot_mib" "$efi_at" | sfdisk --quiet "$image" >&2
    dd if="$root/run/esp.img" of="$image" bs=1M seek="$efi_at" conv=notrunc,sparse status=none
    mv "$root/boot" "$root/run/boot"
    mkdir "$root/boot"
    fill "$boot_at" "$boot_mib" boot "$root/run/boot"
    rm -rf "$root/run/boot" "$root/run/esp.img" "$root/run/sources.list"
fi
fill 1 "$root_mib" planish "$root"
