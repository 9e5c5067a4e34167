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
#
# Everything is fetched or built once per user: a folder of
# ${XDG_CACHE_HOME:-~/.cache}/muster-test holds what a list of packages unpacks to,
# or what tools/go.sum and a Go release build, and has a hash of these in its name.
# A folder gets its name when it is complete. What nobody has used for 90 days goes.
set -u
only=${2:-}
mkdir -p "$1/bin" || exit 1
build=$(cd "$1" && pwd) # programs are fetched in other folders
tools=$(cd "$(dirname "$0")/../tools" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}/muster-test
[ "$cache" != /muster-test ] && mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || cache=$build/cache
mkdir -p "$cache" || exit 1
find "$cache" -mindepth 1 -maxdepth 1 -mtime +90 -exec rm -rf {} +

# The parts run side by side, each in a shell of its own: variables are its own, and
# files of $work are everybody's.
say() { echo "prerequisites: $1"; }

lack() {
	echo "prerequisites: $1" >&2
	: >"$work/missing"
}

wanted() { [ -z "$only" ] || [ "$only" = "$1" ]; }

has() { command -v "$1" >/dev/null 2>&1; }

# listing names the files of a folder, with their sizes.
listing() { (cd "$1" && find . -type f ! -name .listing -printf '%p %s\n' | sort); }

# is_kept reports whether a folder of the cache has all of its files, and marks it as
# used.
is_kept() { [ -d "$1" ] && listing "$1" | cmp -s - "$1/.listing" && touch "$1"; }

# kept sets entry to the folder of the cache with a name and a hash. Where the folder
# is absent, or lacks a part of its files, the command makes it: it fills the folder
# $new.
kept() { # what, hash, command with arguments
	what=$1 entry=$cache/$1-$2
	shift 2
	if is_kept "$entry"; then
		say "$what from $entry"
		return 0
	fi
	say "fetching $what"
	new=$(mktemp -d "$cache/new.XXXXXX") && chmod 755 "$new" || return 1
	if "$@" && listing "$new" >"$work/$what" && mv "$work/$what" "$new/.listing"; then
		rm -rf "$entry"
		mv -T "$new" "$entry" 2>/dev/null || [ -d "$entry" ] # another run was faster
	else
		rm -rf "$new"
		return 1
	fi
	rm -rf "$new"
}

hash_of() { sha256sum | cut -c 1-16; }

# One run of apt-get update is enough for all parts.
update_lists() {
	[ "$(id -u)" = 0 ] || return 1
	(
		flock 9
		[ -e "$work/updated" ] || apt-get update >/dev/null 2>&1
		: >"$work/updated"
	) 9>"$work/lock"
}

# unpacked sets entry to a folder with the packages that a command lists, unpacked
# side by side. Nothing is installed and no service is started.
unpacked() { # what, command with arguments
	name=$1
	shift
	has apt-get && has dpkg && has flock || return 1
	known=$(known_for "$name" "$@")
	if [ -s "$known" ] && is_kept "$cache/$(cat "$known")"; then
		entry=$cache/$(cat "$known")
		say "$name from $entry"
		return 0
	fi
	for try in 1 2; do
		[ $try = 1 ] || update_lists || return 1
		packages=$("$@")
		[ -n "$packages" ] || continue
		files=$(apt-get download --print-uris $packages 2>/dev/null | awk '{print $2, $4}') # with version and hash
		if [ -n "$files" ] && kept "$name" "$(echo "$files" | hash_of)" unpack $packages; then
			known=$(known_for "$name" "$@")
			echo "${entry##*/}" >"$known.new" && mv "$known.new" "$known"
			return 0
		fi
	done
	return 1
}

# apt-get takes seconds to answer, so its answer is kept for as long as the lists of
# packages and the host's own packages are the same. The answer is a name of a folder.
known_for() { # what, command with arguments
	state=$({ echo "$@" && ls -l --time-style=+%s /var/lib/apt/lists /var/lib/dpkg/status; } 2>/dev/null | hash_of)
	echo "$cache/$1.$state"
}

unpack() { # packages
	down=$(mktemp -d "$work/down.XXXXXX") || return 1
	(cd "$down" && apt-get download "$@" >/dev/null 2>&1) || return 1
	for file in "$down"/*.deb; do dpkg -x "$file" "$new" || return 1; done
	rm -rf "$down"
	chmod -R go+rX "$new" # where the tests run as root, a server runs as another account
}

# The packages that Debian would install for one, but for those that the host has.
with_others() { apt-get install --simulate --no-install-recommends "$1" 2>/dev/null | awk '/^Inst/ {print $2}'; }

# Programs and folders are copied: a cleaned cache takes nothing away from a checkout.
copy_program() { # path
	[ -f "$1" ] && cp "$1" "$build/bin/.new.${1##*/}" && mv "$build/bin/.new.${1##*/}" "$build/bin/${1##*/}"
}

copy_folder() { # name
	rm -rf "$build/new.$1" && cp -a "$entry" "$build/new.$1" && rm -rf "${build:?}/$1" && mv -T "$build/new.$1" "$build/$1"
}

fetch_program() { # package, path of the program in it
	unpacked "$1" echo "$1" && copy_program "$entry/$2"
}

# The program beside its library, behind a script that finds both.
fetch_systemd_analyze() {
	unpacked systemd echo systemd libsystemd-shared && copy_folder systemd &&
		cat >"$build/bin/systemd-analyze" <<-'END' && chmod +x "$build/bin/systemd-analyze"
			#!/bin/sh
			dir=$(cd "$(dirname "$0")/../systemd" && pwd) || exit 1
			for lib in "$dir"/usr/lib/*/systemd; do LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; done
			units=$dir/lib/systemd/system
			[ -d "$units" ] || units=$dir/usr/lib/systemd/system
			export LD_LIBRARY_PATH SYSTEMD_UNIT_PATH="$units:"
			exec "$dir/usr/bin/systemd-analyze" "$@"
		END
}

# A server of several packages, and scripts in bin that find its programs and
# libraries.
fetch_server() { # folder, package, path of the programs in it, programs
	folder=$1 package=$2 programs=$3
	shift 3
	unpacked "$folder" with_others "$package" && copy_folder "$folder" || return 1
	for program in "$@"; do
		cat >"$build/bin/$program" <<-END && chmod +x "$build/bin/$program" || return 1
			#!/bin/sh
			dir=\$(cd "\$(dirname "\$0")/../$folder" && pwd) || exit 1
			for lib in "\$dir"/usr/lib/*-linux-gnu*; do LD_LIBRARY_PATH=\$lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}; done
			export LD_LIBRARY_PATH
			exec "\$dir/$programs/$program" "\$@"
		END
	done
}

install_packages() {
	[ "$(id -u)" = 0 ] && has apt-get || return 1
	say "installing Debian's $*"
	apt-get install -y --no-install-recommends "$@" >/dev/null 2>&1 || {
		update_lists
		apt-get install -y --no-install-recommends "$@" >/dev/null 2>&1
	}
}

# A client of tools/go.mod. Its folder of the cache, not a date, decides whether the
# program of this checkout is the right one.
build_client() { # program, package
	go=${GO:-go}
	key=$({ cat "$tools/go.mod" "$tools/go.sum" && $go env GOVERSION GOOS GOARCH; } | hash_of)
	[ -x "$build/bin/$1" ] && cmp -s "$cache/$1-$key/$1" "$build/bin/$1" && touch "$cache/$1-$key" && return 0
	kept "$1" "$key" compile "$2" && copy_program "$entry/$1"
}

compile() { (cd "$tools" && $go build -o "$new/" "$1"); } # package

has gcc || lack "gcc is missing: the fake NVML library and the models cannot be built (apt-get install gcc)"
if wanted spin && ! has spin; then
	(fetch_program spin usr/bin/spin || lack "spin is missing and could not be fetched (apt-get install spin)") &
fi
if wanted etcd && ! has etcd; then
	(fetch_program etcd-server usr/bin/etcd || lack "etcd is missing and could not be fetched (apt-get install etcd-server)") &
fi
if wanted postgres && ! has postgres && ! ls /usr/lib/postgresql/1[5-9]/bin/postgres >/dev/null 2>&1; then
	(fetch_server postgresql postgresql-15 usr/lib/postgresql/15/bin postgres initdb ||
		lack "PostgreSQL is missing and could not be fetched (apt-get install postgresql)") &
fi
if wanted redis && ! has redis-server; then
	(fetch_server redis redis-server usr/bin redis-server || lack "redis-server is missing and could not be fetched (apt-get install redis-server)") &
fi
if wanted systemd-analyze && ! has systemd-analyze; then
	(fetch_systemd_analyze || lack "systemd-analyze is missing and could not be fetched (apt-get install systemd)") &
fi
( # one installation at a time
	if wanted net && ! { has ip && has nft; }; then
		install_packages iproute2 nftables
		has ip && has nft ||
			lack "ip or nft is missing: clusters of real processes cannot be cut apart (apt-get install iproute2 nftables)"
	fi
	if wanted container && ! { has crun && has busybox; }; then
		install_packages crun busybox-static
		has crun && has busybox ||
			lack "crun or busybox is missing: no command runs in a root file system of its own (apt-get install crun busybox-static)"
	fi
) &
( # one build at a time: they compile the same packages
	if wanted serf; then
		build_client serf github.com/hashicorp/serf/cmd/serf || lack "the serf CLI could not be built from tools/go.mod"
	fi
	if wanted grpcurl; then
		build_client grpcurl github.com/fullstorydev/grpcurl/cmd/grpcurl || lack "grpcurl could not be built from tools/go.mod"
	fi
) &
wait
if [ -e "$work/missing" ] && [ "${CI:-}" = true ]; then
	exit 1
fi
exit 0
