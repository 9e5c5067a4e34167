#!/bin/sh
# Brings what the tests need beyond Go, gcc, make and git into the given
# folder, without installing a service: Debian's etcd (the contract suite runs
# against an older peer), systemd-analyze (it checks the units), spin (it
# searches the models), PostgreSQL 15 (the history's tables) and redis-server
# (heartbeats); as root, it installs Debian's iproute2 and nftables (clusters in
# namespaces are cut apart with them), and its crun and busybox-static (commands in
# root file systems of their own). A second argument, one of etcd, systemd-analyze,
# spin, postgres, redis, net, container, serf and grpcurl, asks for that alone.
# Stock clients are built from tools/go.mod. Where something cannot be had it is
# named, and the tests that need it skip; with CI=true that is a failure.
set -u
only=${2:-}
mkdir -p "$1/bin"
build=$(cd "$1" && pwd) # programs are fetched in other folders
missing=0

lack() {
	echo "prerequisites: $1" >&2
	missing=1
}

wanted() { [ -z "$only" ] || [ "$only" = "$1" ]; }

# One program of one package that needs nothing beside it.
fetch_program() { # package, path of the program in it
	command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 || return 1
	work=$(mktemp -d) || return 1
	(
		cd "$work" || exit 1
		apt-get download "$1" >/dev/null 2>&1 || {
			[ "$(id -u)" = 0 ] || exit 1
			apt-get update >/dev/null 2>&1
			apt-get download "$1" >/dev/null 2>&1 || exit 1
		}
		dpkg -x "$1"_*.deb out && cp "out/$2" "$build/bin/"
	)
	code=$?
	rm -rf "$work"
	return $code
}

# The programs alone, beside their library, behind a script that finds both.
fetch_systemd_analyze() {
	command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 || return 1
	work=$(mktemp -d) || return 1
	(
		cd "$work" || exit 1
		apt-get download systemd libsystemd-shared >/dev/null 2>&1 || {
			[ "$(id -u)" = 0 ] || exit 1
			apt-get update >/dev/null 2>&1
			apt-get download systemd libsystemd-shared >/dev/null 2>&1 || exit 1
		}
		rm -rf "$build/systemd"
		for package in ./*.deb; do dpkg -x "$package" "$build/systemd" || exit 1; done
	) && cat >"$build/bin/systemd-analyze" <<-'END' && chmod +x "$build/bin/systemd-analyze"
		#!/bin/sh
		dir=$(cd "$(dirname "$0")/../systemd" && pwd) || exit 1
		for lib in "$dir"/usr/lib/*/systemd; do LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; done
		units=$dir/lib/systemd/system
		[ -d "$units" ] || units=$dir/usr/lib/systemd/system
		export LD_LIBRARY_PATH SYSTEMD_UNIT_PATH="$units:"
		exec "$dir/usr/bin/systemd-analyze" "$@"
	END
	code=$?
	rm -rf "$work"
	return $code
}

# A server of several packages: those that Debian would install for it and that the
# host has not yet, unpacked side by side, and scripts in bin that find programs and
# libraries. Nothing is installed and no service is started.
fetch_server() { # folder, package, path of the programs in it, programs
	command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 || return 1
	work=$(mktemp -d) || return 1
	folder=$1 package=$2 programs=$3
	shift 3
	(
		cd "$work" || exit 1
		wanted_packages() { apt-get install --simulate --no-install-recommends "$package" 2>/dev/null | awk '/^Inst/ {print $2}'; }
		packages=$(wanted_packages)
		[ -n "$packages" ] && apt-get download $packages >/dev/null 2>&1 || {
			[ "$(id -u)" = 0 ] || exit 1
			apt-get update >/dev/null 2>&1
			packages=$(wanted_packages)
			[ -n "$packages" ] && apt-get download $packages >/dev/null 2>&1 || exit 1
		}
		rm -rf "${build:?}/$folder"
		for file in ./*.deb; do dpkg -x "$file" "$build/$folder" || exit 1; done
		chmod -R go+rX "$build/$folder" # where the tests run as root, the server runs as another account
	) && for program in "$@"; do
		cat >"$build/bin/$program" <<-END && chmod +x "$build/bin/$program" || return 1
			#!/bin/sh
			dir=\$(cd "\$(dirname "\$0")/../$folder" && pwd) || exit 1
			for lib in "\$dir"/usr/lib/*-linux-gnu*; do LD_LIBRARY_PATH=\$lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}; done
			export LD_LIBRARY_PATH
			exec "\$dir/$programs/$program" "\$@"
		END
	done
	code=$?
	rm -rf "$work"
	return $code
}

command -v gcc >/dev/null 2>&1 || lack "gcc is missing: the fake NVML library and the models cannot be built (apt-get install gcc)"
if wanted spin && ! command -v spin >/dev/null 2>&1; then
	echo "prerequisites: fetching Debian's spin"
	fetch_program spin usr/bin/spin || lack "spin is missing and could not be fetched (apt-get install spin)"
fi
if wanted etcd && ! command -v etcd >/dev/null 2>&1; then
	echo "prerequisites: fetching Debian's etcd-server"
	fetch_program etcd-server usr/bin/etcd || lack "etcd is missing and could not be fetched (apt-get install etcd-server)"
fi
if wanted postgres && ! command -v postgres >/dev/null 2>&1 && ! ls /usr/lib/postgresql/1[5-9]/bin/postgres >/dev/null 2>&1; then
	echo "prerequisites: fetching Debian's postgresql-15"
	fetch_server postgresql postgresql-15 usr/lib/postgresql/15/bin postgres initdb || lack "PostgreSQL is missing and could not be fetched (apt-get install postgresql)"
fi
if wanted redis && ! command -v redis-server >/dev/null 2>&1; then
	echo "prerequisites: fetching Debian's redis-server"
	fetch_server redis redis-server usr/bin redis-server || lack "redis-server is missing and could not be fetched (apt-get install redis-server)"
fi
if wanted systemd-analyze && ! command -v systemd-analyze >/dev/null 2>&1; then
	echo "prerequisites: fetching Debian's systemd-analyze"
	fetch_systemd_analyze || lack "systemd-analyze is missing and could not be fetched (apt-get install systemd)"
fi
if wanted net && { ! command -v ip >/dev/null 2>&1 || ! command -v nft >/dev/null 2>&1; }; then
	echo "prerequisites: installing Debian's iproute2 and nftables"
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		apt-get install -y --no-install-recommends iproute2 nftables >/dev/null 2>&1 || {
			apt-get update >/dev/null 2>&1
			apt-get install -y --no-install-recommends iproute2 nftables >/dev/null 2>&1
		}
	fi
	command -v ip >/dev/null 2>&1 && command -v nft >/dev/null 2>&1 ||
		lack "ip or nft is missing: clusters of real processes cannot be cut apart (apt-get install iproute2 nftables)"
fi
if wanted container && { ! command -v crun >/dev/null 2>&1 || ! command -v busybox >/dev/null 2>&1; }; then
	echo "prerequisites: installing Debian's crun and busybox-static"
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		apt-get install -y --no-install-recommends crun busybox-static >/dev/null 2>&1 || {
			apt-get update >/dev/null 2>&1
			apt-get install -y --no-install-recommends crun busybox-static >/dev/null 2>&1
		}
	fi
	command -v crun >/dev/null 2>&1 && command -v busybox >/dev/null 2>&1 ||
		lack "crun or busybox is missing: no command runs in a root file system of its own (apt-get install crun busybox-static)"
fi
if wanted serf && { [ ! -x "$build/bin/serf" ] || [ tools/go.sum -nt "$build/bin/serf" ]; }; then
	echo "prerequisites: building the stock serf CLI"
	(cd tools && go build -o "$build/bin/serf" github.com/hashicorp/serf/cmd/serf) || lack "the serf CLI could not be built from tools/go.mod"
fi
if wanted grpcurl && { [ ! -x "$build/bin/grpcurl" ] || [ tools/go.sum -nt "$build/bin/grpcurl" ]; }; then
	echo "prerequisites: building the stock grpcurl"
	(cd tools && go build -o "$build/bin/grpcurl" github.com/fullstorydev/grpcurl/cmd/grpcurl) || lack "grpcurl could not be built from tools/go.mod"
fi
if [ "$missing" = 1 ] && [ "${CI:-}" = true ]; then
	exit 1
fi
exit 0
