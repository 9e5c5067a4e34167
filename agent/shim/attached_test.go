package shim

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNotesThatAreNoAttachedWork(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a later version":   {`{"version":2}`, "attached: version 2, this program reads version 1"},
		"a code beyond":     {`{"version":1,"code":256}`, "attached: code 256 is outside 0..255"},
		"the first process": {`{"version":1,"processes":[{"version":1,"pid":1,"start":0,"bootID":"b"}]}`, `attached: pid 1 of boot "b": want a process and a boot id`},
		"a path upwards":    {`{"version":1,"cgroups":[{"path":"/a/../b","id":1,"bootID":"b"}]}`, `attached: cgroup "/a/../b" of boot "b": want an absolute path and a boot id`},
		"a field of others": {`{"version":1,"user":5}`, `attached: json: unknown field "user"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseAttached([]byte(c.text)); err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestTheGreatestNoteIsRead: a note within the bounds is no longer than a file may be.
func TestTheGreatestNoteIsRead(t *testing.T) {
	a := Attached{Version: version, Code: new(int)}
	boot := strings.Repeat("b", 36)
	for i := range maxRoots {
		a.Processes = append(a.Processes, Process{version, 1<<22 - i, 1<<63 - 1, boot})
	}
	for range MaxAttached {
		a.Cgroups = append(a.Cgroups, Group{"/" + strings.Repeat("x", maxPath-1), 1<<63 - 1, boot})
	}
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseAttached(data); err != nil {
		t.Errorf("%d bytes: %v", len(data), err)
	}
}

func TestAProcessIsJudgedByItsDescriptor(t *testing.T) {
	boot, err := BootID()
	if err != nil {
		t.Skip("not permitted here: ", err)
	}
	p, uid, err := Judge(os.Getpid(), boot)
	if err != nil || int(uid) != os.Geteuid() || !p.IsAlive(boot) {
		t.Errorf("this process is %+v of user %d: %v", p, uid, err)
	}
	child := exec.Command("true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Judge(child.Process.Pid, boot); !errors.Is(err, ErrNoProcess) {
		t.Errorf("a process that has ended: %v", err)
	}
	later := Process{version, os.Getpid(), p.Start + 1, boot} // as if the number were used anew
	if err := later.Signal(9); err != nil {
		t.Errorf("a signal to a process that has ended: %v", err)
	}
}

// TestAFolderThatIsMadeAnewIsAnotherGroup: its processes do not count.
func TestAFolderThatIsMadeAnewIsAnotherGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g")
	make := func() {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "cgroup.events"), []byte("populated 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	make()
	g, _, err := JudgeGroup(path, "boot")
	if err != nil {
		t.Fatal(err)
	}
	runs := func() bool { return NewWatch("boot").Look(Attached{Cgroups: []Group{g}}, Sample{}).Runs() }
	if !runs() {
		t.Error("a populated folder has no work")
	}
	if NewWatch("later").Look(Attached{Cgroups: []Group{g}}, Sample{}).Runs() {
		t.Error("the folder of an earlier boot has work")
	}
	if err := os.Rename(path, path+".old"); err != nil { // so that the number is not free
		t.Fatal(err)
	}
	if make(); runs() {
		t.Error("another folder at the path has work")
	}
}

// TestALookFindsWhatDescends: against a history of forks and ends in which the truth is
// known, each process that is seen once stays known until it ends, whatever of its
// ancestors ends before, and no other process counts.
func TestALookFindsWhatDescends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type process struct {
			parent int
			start  uint64
			ours   bool
		}
		table, clock, next := map[int]process{1: {}, 7: {1, 5, false}}, uint64(10), 10
		fork := func(parent int, ours bool) int {
			pid := next
			if next++; next > 20 { // numbers are used again soon
				next = 10
			}
			if _, taken := table[pid]; taken {
				return 0
			}
			clock++
			table[pid] = process{parent, clock, ours || table[parent].ours}
			return pid
		}
		fork(7, true)
		a, w := Attached{Processes: []Process{{version, 10, 11, "boot"}}}, NewWatch("boot")
		var last Sample
		look := func() Look {
			s := Sample{all: map[int]stat{}, children: map[int][]int{}}
			for pid, p := range table {
				s.all[pid] = stat{state: 'S', parent: p.parent, start: p.start}
				s.children[p.parent] = append(s.children[p.parent], pid)
			}
			if last.all != nil && rapid.Bool().Draw(t, "restart") { // the note alone outlives an agent, which looks at once
				w = NewWatch("boot")
				a.Processes = w.Look(a, last).Roots
			}
			l := w.Look(a, s)
			a.Processes, last = l.Roots, s
			return l
		}
		look()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			pids := make([]int, 0, len(table))
			for pid := range 32 {
				if _, ok := table[pid]; ok && pid > 1 {
					pids = append(pids, pid)
				}
			}
			pid := rapid.SampledFrom(pids).Draw(t, "pid")
			if rapid.Bool().Draw(t, "fork") {
				fork(pid, false)
			} else if pid != 7 {
				delete(table, pid)
				for child, p := range table {
					if p.parent == pid {
						p.parent = 1
						table[child] = p
					}
				}
			}
			found := map[int]bool{}
			for _, p := range look().Alive {
				found[p.PID] = true
			}
			for pid, p := range table {
				if p.ours != found[pid] {
					t.Fatalf("process %d, %+v: found is %v", pid, p, found[pid])
				}
			}
		}
	})
}
