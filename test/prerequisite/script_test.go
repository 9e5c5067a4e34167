package prerequisite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// host is a machine with a PATH of its own: the programs that the script needs,
// and an apt-get, dpkg and go that write down what they are asked for.
type host struct {
	t                 *testing.T
	bin, cache, calls string
}

// fakes answer as the real programs do. LISTS is the version that the lists of
// packages name; BROKEN makes dpkg fail.
var fakes = map[string]string{
	"apt-get": `case "$*" in
*--print-uris*) shift 2; for p; do echo "'http://debian/$p' ${p}_$LISTS.deb 1 SHA256:$LISTS"; done ;;
*--simulate*) echo "Inst libjemalloc2 (1)"; echo "Inst redis-server (1)" ;;
download*) shift; echo "download $*" >>"$CALLS"; for p; do echo "$p $LISTS" >"${p}_$LISTS.deb"; done ;;
esac`,
	"dpkg": `[ -z "${BROKEN:-}" ] || exit 1
name=$(cut -d ' ' -f 1 "$2")
mkdir -p "$3/usr/bin" && cp "$2" "$3/usr/bin/${name%-server}"`,
	"go": `case "$1" in
env) echo "$GORELEASE" ;;
build) echo "build $4" >>"$CALLS"; echo "$GORELEASE" >"$3${4##*/}"; chmod +x "$3${4##*/}" ;;
esac`,
	"ls":  `echo "$LISTS"`, // of the lists
	"gcc": "",
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{t: t, bin: t.TempDir(), cache: t.TempDir(), calls: filepath.Join(t.TempDir(), "calls")}
	for _, name := range strings.Fields("sh mkdir mktemp rm find id awk sha256sum cut cat cp mv chmod touch cmp sort flock dirname") {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("%s is missing: the script cannot run here", name)
		}
		if err := os.Symlink(path, filepath.Join(h.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range fakes {
		if err := os.WriteFile(filepath.Join(h.bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// brings runs the script for one thing in a fresh checkout. It returns the content of
// a file of the checkout, "" where it is absent, and what was asked of apt-get and go.
func (h *host) brings(thing, file string, environment ...string) (content string, calls []string, ok bool) {
	h.t.Helper()
	checkout := h.t.TempDir()
	c := exec.Command("../prerequisites.sh", checkout, thing)
	c.Env = append([]string{"PATH=" + h.bin, "XDG_CACHE_HOME=" + h.cache, "CALLS=" + h.calls, "LISTS=1", "GORELEASE=go1"}, environment...)
	out, err := c.CombinedOutput()
	h.t.Logf("%s: %v\n%s", thing, err, out)
	data, _ := os.ReadFile(filepath.Join(checkout, file))
	called, _ := os.ReadFile(h.calls)
	if err := os.WriteFile(h.calls, nil, 0o600); err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(data)), strings.Split(strings.TrimSpace(string(called)), "\n"), err == nil
}

// spoil changes the files of this name in the cache.
func (h *host) spoil(name string, spoil func(path string) error) {
	h.t.Helper()
	paths, err := filepath.Glob(filepath.Join(h.cache, "muster-test", "*", "usr", "bin", name))
	if err != nil || len(paths) != 1 {
		h.t.Fatalf("%v, %v; want one file %s in the cache", paths, err, name)
	}
	if err := spoil(paths[0]); err != nil {
		h.t.Fatal(err)
	}
}

func TestTheScriptFetchesOncePerUser(t *testing.T) {
	type want struct {
		Content string
		Calls   []string
		OK      bool
	}
	nothing := []string{""}
	for name, c := range map[string]struct {
		thing, file string
		between     func(*host)
		environment []string // of the second run
		first, then want
	}{
		"a second checkout takes the program from the cache": {
			thing: "spin", file: "bin/spin",
			first: want{"spin 1", []string{"download spin"}, true}, then: want{"spin 1", nothing, true},
		},
		"a server comes with its libraries": {
			thing: "redis", file: "redis/usr/bin/libjemalloc2",
			first: want{"libjemalloc2 1", []string{"download libjemalloc2 redis-server"}, true}, then: want{"libjemalloc2 1", nothing, true},
		},
		"another version in the lists is fetched": {
			thing: "etcd", file: "bin/etcd", environment: []string{"LISTS=2"},
			first: want{"etcd-server 1", []string{"download etcd-server"}, true}, then: want{"etcd-server 2", []string{"download etcd-server"}, true},
		},
		"a missing file makes the script fetch again": {
			thing: "spin", file: "bin/spin", between: func(h *host) { h.spoil("spin", os.Remove) },
			first: want{"spin 1", []string{"download spin"}, true}, then: want{"spin 1", []string{"download spin"}, true},
		},
		"a file that was cut short makes the script fetch again": {
			thing: "spin", file: "bin/spin", between: func(h *host) { h.spoil("spin", func(p string) error { return os.Truncate(p, 1) }) },
			first: want{"spin 1", []string{"download spin"}, true}, then: want{"spin 1", []string{"download spin"}, true},
		},
		"a client is built once": {
			thing: "serf", file: "bin/serf",
			first: want{"go1", []string{"build github.com/hashicorp/serf/cmd/serf"}, true}, then: want{"go1", nothing, true},
		},
		"another Go release builds the client again": {
			thing: "serf", file: "bin/serf", environment: []string{"GORELEASE=go2"},
			first: want{"go1", []string{"build github.com/hashicorp/serf/cmd/serf"}, true}, then: want{"go2", []string{"build github.com/hashicorp/serf/cmd/serf"}, true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			var first, then want
			first.Content, first.Calls, first.OK = h.brings(c.thing, c.file)
			if diff := cmp.Diff(c.first, first); diff != "" {
				t.Errorf("with an empty cache (-want +got):\n%s", diff)
			}
			if c.between != nil {
				c.between(h)
			}
			then.Content, then.Calls, then.OK = h.brings(c.thing, c.file, c.environment...)
			if diff := cmp.Diff(c.then, then); diff != "" {
				t.Errorf("in a second checkout (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnInterruptedFetchLeavesNothing also holds that a missing program is a failure
// where CI is true, and elsewhere the tests skip.
func TestAnInterruptedFetchLeavesNothing(t *testing.T) {
	h := newHost(t)
	if _, _, ok := h.brings("spin", "bin/spin", "BROKEN=1"); !ok {
		t.Error("the script fails where dpkg fails; without CI it reports what is missing, and the tests skip")
	}
	if _, _, ok := h.brings("spin", "bin/spin", "BROKEN=1", "CI=true"); ok {
		t.Error("with CI=true the script succeeds without spin")
	}
	if left, err := os.ReadDir(filepath.Join(h.cache, "muster-test")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v; want an empty cache after failures", left, err)
	}
	if content, _, ok := h.brings("spin", "bin/spin"); content != "spin 1" || !ok {
		t.Errorf("after failures the script brings %q, want spin", content)
	}
}
