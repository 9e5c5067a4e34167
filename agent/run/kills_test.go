package run_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
)

var (
	killRounds = flag.Int("kills.rounds", 12, "random rounds of kills")
	killSeed   = flag.Uint64("kills.seed", 0, "seed of the rounds; 0 draws one")
)

// orders are all orders of the kills of shim (s), command (c) and runner (r), and of some
// of them.
var orders = []string{"src", "scr", "rsc", "rcs", "csr", "crs", "s", "c", "r", "sr", "rs", "cr", "rc"}

// TestKillsInEveryOrder kills shim, command and runner in turn, in every order and at
// once after each other. Whatever the order: one start at most, one end, no process.
func TestKillsInEveryOrder(t *testing.T) {
	for _, order := range orders {
		t.Run(order, func(t *testing.T) {
			h := newHost(t)
			h.start()
			b, wait := h.barrier()
			h.runner.Attach("a", []run.Member{h.shell(0, "echo start; "+seen+"sleep 3600 & setsid sleep 3600 & : > "+b+"; sleep 3600")})
			wait()
			h.until(grant.WorkRunning)
			shimProcess, err1 := h.folder(0).Begun()
			command, err2 := h.folder(0).Started()
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			for _, who := range order {
				switch who {
				case 's':
					_ = syscall.Kill(shimProcess.PID, syscall.SIGKILL)
				case 'c':
					_ = syscall.Kill(command.PID, syscall.SIGKILL)
				case 'r':
					h.leave()
				}
			}
			h.afterKills(order, 1, true)
		})
	}
}

// TestRandomKills kills three members, their shims and the runner at drawn moments from
// the start on, so a kill may come before a shim has begun, between the fork and its
// record, and while the shim writes the end.
func TestRandomKills(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	draw := rand.New(rand.NewPCG(seed, 0))
	for round := range *killRounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Logf("again with -kills.seed=%d -kills.rounds=%d", seed, round+1)
			h := newHost(t)
			h.start()
			const members = 3
			var list []run.Member
			for i := range members {
				script := "echo start; sleep 3600 & setsid sleep 3600 & sleep 3600"
				if draw.IntN(3) == 0 {
					script = "echo start; setsid sleep 3600 & exit 3" // it ends by itself meanwhile
				}
				list = append(list, h.shell(i, script))
			}
			h.runner.Attach("a", list)
			order := ""
			for range 1 + draw.IntN(6) {
				for range draw.IntN(200) {
					_, _ = os.ReadDir(h.root) // a drawn time without a clock
				}
				who := "scr"[draw.IntN(3)]
				victim := draw.IntN(members)
				order += fmt.Sprintf("%c%d ", who, victim)
				switch who {
				case 's':
					if p, err := h.folder(victim).Begun(); err == nil && p.IsAlive(h.boot) {
						_ = syscall.Kill(p.PID, syscall.SIGKILL)
					}
				case 'c':
					if p, err := h.folder(victim).Started(); err == nil && p.IsAlive(h.boot) {
						_ = syscall.Kill(p.PID, syscall.SIGKILL)
					}
				case 'r':
					h.leave()
					h.start()
					h.runner.Attach("a", list) // the leader repeats what the new agent has not reported
				}
			}
			h.afterKills(order, members, false)
		})
	}
}

// afterKills checks what has to be true after kills: each member has one end, which is no
// success and is the same at the next runner, at most one start, and no process. Where
// all members had begun, each has a start.
func (h *host) afterKills(order string, members int, begun bool) {
	t := h.t
	t.Helper()
	if h.runner == nil {
		h.start()
	}
	var again []run.Member
	for i := range members {
		again = append(again, h.shell(i, "echo another start"))
	}
	if begun {
		h.runner.Attach("a", again)
	}
	if !strings.ContainsAny(order, "sc") || !begun {
		h.runner.Stop("a", time.Now())
	}
	got := slices.Clone(h.until(grant.WorkEnded))
	if len(got) != members {
		t.Fatalf("after %s: states %+v, want %d ends", order, got, members)
	}
	for i, s := range got {
		if s.IsSuccess() {
			t.Errorf("after %s: member %d has succeeded: %+v", order, i, s)
		}
		out := h.output(i)
		if starts := strings.Count(out, "start\n"); starts > 1 || begun && starts == 0 || strings.Contains(out, "another") {
			t.Errorf("after %s: output of member %d is %q, want one start", order, i, out)
		}
		if _, err := h.folder(i).Begun(); err == nil {
			if left, err := h.folder(i).KillRemains(h.boot, 0); len(left) > 0 || err != nil {
				t.Errorf("after %s: processes %v of member %d are left: %v", order, left, i, err)
			}
		}
		if marked := processesOf(t, h.folder(i)); len(marked) > 0 {
			t.Errorf("after %s: processes %v of member %d run without a record", order, marked, i)
		}
	}
	if h.runner.Runs("a") {
		t.Errorf("after %s: ended work counts as running", order)
	}
	h.leave()
	h.start()
	h.runner.Attach("a", again)
	for i, s := range h.until(grant.WorkEnded) {
		s.Use, got[i].Use = nil, nil
		if s != got[i] {
			t.Errorf("after %s: the next runner reports the end %+v of member %d, the one before %+v", order, s, i, got[i])
		}
	}
}

// processesOf are the processes that name a folder in their environment.
func processesOf(t testing.TB, f shim.Folder) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err == nil && slices.Contains(strings.Split(string(data), "\x00"), shim.Marker+"="+string(f)) {
			list = append(list, path)
		}
	}
	return list
}
