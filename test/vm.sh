#!/bin/sh
# The enforcement suite on a machine of its own: Debian by debootstrap, Debian's cloud
# kernel, systemd, the unified hierarchy, two NUMA nodes, and qemu in software emulation,
# so that neither KVM nor an own kernel is needed. By hand and before a release: make test-vm.
# Needs root, debootstrap, qemu-system-x86_64, mke2fs. The first run fetches some 150 MB.
set -eu
cd "$(dirname "$0")/.."
build=${1:-.build}/vm
run=${RUN:-.}
for program in debootstrap qemu-system-x86_64 mke2fs; do
	command -v $program >/dev/null || { echo "vm: $program is missing: apt-get install --no-install-recommends debootstrap qemu-system-x86 e2fsprogs" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "vm: debootstrap needs root" >&2; exit 2; }
mkdir -p "$build"

# The disk is made once, in memory: dpkg waits for each file otherwise.
if [ ! -e "$build/disk.img" ]; then
	echo "vm: makes the disk (some minutes)"
	root=$(mktemp -d)
	mount -t tmpfs -o size=2G,mode=0755 muster-vm "$root"
	trap 'umount -l "$root"; rmdir "$root"' EXIT
	debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,linux-image-cloud-amd64,initramfs-tools,iproute2,procps,python3-minimal,busybox-static,crun,zstd \
		bookworm "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$build/debootstrap.log"
	umount -l "$root/proc" "$root/sys" 2>/dev/null || true
	rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
	echo vm >"$root/etc/hostname"
	echo '127.0.0.1 localhost vm' >"$root/etc/hosts"
	echo '/dev/vda / ext4 defaults 0 0' >"$root/etc/fstab"
	# The suite is the second disk, an archive.
	cat >"$root/etc/systemd/system/muster-suite.service" <<UNIT
[Unit]
After=multi-user.target
[Service]
Type=oneshot
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
ExecStart=/bin/sh -c "mkdir -p /opt/suite && cd /opt/suite && tar xf /dev/vdb && ./guest.sh; echo vm-exit \$\$?; sync; systemctl --force --force poweroff"
UNIT
	mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
	ln -s ../muster-suite.service "$root/etc/systemd/system/multi-user.target.wants/"
	cp -L "$root/vmlinuz" "$build/vmlinuz"
	cp -L "$root/initrd.img" "$build/initrd.img"
	mke2fs -q -t ext4 -d "$root" "$build/disk.tmp" 2G
	mv "$build/disk.tmp" "$build/disk.img"
fi

echo "vm: builds the suite"
suite=$build/suite
rm -rf "$suite"
mkdir -p "$suite/bin"
cp -r systemd "$suite/"
cp -r examples "$suite/"
CGO_ENABLED=0 ${GO:-go} build -trimpath -ldflags "-s -w" -o "$suite/bin/" ./cmd/muster ./cmd/muster-coordinator ./cmd/muster-launch ./cmd/muster-shim
CGO_ENABLED=1 ${GO:-go} build -trimpath -ldflags "-s -w" -o "$suite/bin/" ./cmd/muster-agent
CGO_ENABLED=0 ${GO:-go} test -trimpath -ldflags "-s -w" -c -tags vm -o "$suite/vm.test" ./test/vm
CGO_ENABLED=0 ${GO:-go} test -trimpath -ldflags "-s -w" -c -o "$suite/cgroup.test" ./agent/cgroup
cat >"$suite/guest.sh" <<'GUEST'
#!/bin/sh
# 16 huge pages of 2 MiB, for the limits of huge pages.
echo 16 >/proc/sys/vm/nr_hugepages
echo "vm: $(uname -r), $(systemctl --version | head -1), $(stat -fc %T /sys/fs/cgroup), up $(cut -d' ' -f1 /proc/uptime) s"
cgroup=0
if [ "$(cat run)" = . ]; then
	./cgroup.test -test.v -test.timeout 10m || cgroup=$?
fi
./vm.test -test.v -test.timeout 30m -test.run "$(cat run)"; vm=$?
test $cgroup = 0 && test $vm = 0
GUEST
chmod +x "$suite/guest.sh"
echo "$run" >"$suite/run"
tar cf "$build/suite.tar" -C "$suite" .

echo "vm: starts the machine"
timeout "${LIMIT:-1500}" qemu-system-x86_64 -machine q35 -accel tcg,thread=multi -cpu max -smp 4,sockets=2,cores=2 -m 3072 \
	-object memory-backend-ram,id=m0,size=1536M -object memory-backend-ram,id=m1,size=1536M \
	-numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,cpus=2-3,memdev=m1 \
	-kernel "$build/vmlinuz" -initrd "$build/initrd.img" -append "root=/dev/vda rw console=ttyS0 quiet panic=-1 systemd.show_status=0 systemd.mask=serial-getty@ttyS0.service" \
	-drive "file=$build/disk.img,if=virtio,format=raw,snapshot=on" -drive "file=$build/suite.tar,if=virtio,format=raw,readonly=on" \
	-display none -serial stdio -monitor none -no-reboot -nic none </dev/null | tee "$build/console.log"
tr -d '\r' <"$build/console.log" | grep -q '^vm-exit 0$' || { echo "vm: the suite has failed" >&2; exit 1; }
