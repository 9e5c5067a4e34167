package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// group makes a folder with the files of a cgroup.
func group(t *testing.T, dir string) (g Group, write func(cpuMillis, memory, peak, kills int64)) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	g, _, err := JudgeGroup(dir, "boot")
	if err != nil {
		t.Fatal(err)
	}
	return g, func(cpuMillis, memory, peak, kills int64) {
		for name, text := range map[string]string{
			"cpu.stat": fmt.Sprintf("usage_usec %d\nuser_usec 0\n", cpuMillis*1000), "memory.current": fmt.Sprintf("%d\n", memory), "memory.peak": fmt.Sprintf("%d\n", peak),
			"memory.events": fmt.Sprintf("oom 0\noom_kill %d\n", kills), "cgroup.events": "populated 1\n", "cgroup.procs": "17\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestTheUseOfAttachedCgroups(t *testing.T) {
	dir := t.TempDir()
	a, writeA := group(t, dir+"/a")
	b, writeB := group(t, dir+"/a/b") // it counts with a
	c, writeC := group(t, dir+"/c")
	writeA(100, 5, 9, 1)
	writeB(50, 4, 4, 0)
	w := NewWatch("boot")
	// The process in the cgroup counts with it, the other one by itself.
	look := w.Look(Attached{Cgroups: []Group{a, b}, Processes: []Process{{version, 17, 1, "boot"}}}, sampleOf(map[int]stat{17: {state: 'S', start: 1, time: 99}}))
	if look.Spent != (Spent{100, 1, 9}) || look.MemoryBytes != 5 || !look.HasKills || !look.HasPeak {
		t.Errorf("a look at one cgroup: %+v", look)
	}
	writeC(7, 1, 2, 3)
	look = w.Look(Attached{Cgroups: []Group{a, b, c}}, sampleOf(map[int]stat{}))
	if look.Spent.CPUMillis != 107 || look.Spent.OOMKills != 4 || look.MemoryBytes != 6 || look.HasPeak {
		t.Errorf("a look at two cgroups: %+v", look)
	}
	if err := os.RemoveAll(c.Path); err != nil {
		t.Fatal(err)
	}
	writeA(110, 2, 9, 1)
	if look = w.Look(Attached{Cgroups: []Group{a, b, c}}, sampleOf(map[int]stat{})); look.Spent.CPUMillis != 117 || look.Spent.OOMKills != 4 || look.MemoryBytes != 2 {
		t.Errorf("a look without the removed cgroup: %+v", look)
	}
	// A cgroup without the controller of memory counts by its processes.
	if err := os.Remove(a.Path + "/memory.current"); err != nil {
		t.Fatal(err)
	}
	look = NewWatch("boot").Look(Attached{Cgroups: []Group{a}}, sampleOf(map[int]stat{17: {state: 'S', start: 1, time: 30, childTime: 12}}))
	if look.Spent != (Spent{CPUMillis: 420}) || look.HasKills || look.HasPeak {
		t.Errorf("a cgroup that counts no memory: %+v", look)
	}
}

func sampleOf(all map[int]stat) Sample {
	s := Sample{all: all, children: map[int][]int{}}
	for pid, one := range all {
		s.children[one.parent] = append(s.children[one.parent], pid)
	}
	return s
}

// TestTheTimeOfAttachedProcesses: the sum is never more than the processes have spent, and
// just that as long as each that ends is waited for, and leaves none behind.
func TestTheTimeOfAttachedProcesses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const outside = 1
		all := map[int]stat{10: {state: 'S', parent: outside, start: 10}}
		next, spent, lost := 11, uint64(0), false
		w := NewWatch("boot")
		a := Attached{Processes: []Process{{version, 10, 10, "boot"}}}
		pick := func() int {
			var pids []int
			for pid := 10; pid < next; pid++ {
				if _, is := all[pid]; is {
					pids = append(pids, pid)
				}
			}
			return rapid.SampledFrom(pids).Draw(t, "process")
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(all) == 0 {
				break
			}
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				all[next] = stat{state: 'S', parent: pick(), start: uint64(next)}
				next++
			case 1:
				pid := pick()
				s := all[pid]
				s.time++
				all[pid], spent = s, spent+1
			case 2:
				pid := pick()
				s := all[pid]
				delete(all, pid)
				if p, lives := all[s.parent]; lives && rapid.Bool().Draw(t, "waited for") {
					p.childTime += s.time + s.childTime
					all[s.parent] = p
				} else {
					lost = true
				}
				for child, c := range all {
					if c.parent == pid {
						c.parent, lost = outside, true
						all[child] = c
					}
				}
			case 3:
				look := w.Look(a, sampleOf(all))
				a.Processes = look.Roots
				if got, most := look.Spent.CPUMillis, int64(spent)*1000/ticks; got > most || got < most && !lost {
					t.Fatalf("the sum is %d ms of %d, and processes were lost: %t", got, most, lost)
				}
			}
		}
	})
}

func TestAProcessThatEndsCountsOn(t *testing.T) {
	w := NewWatch("boot")
	a := Attached{Processes: []Process{{version, 10, 1, "boot"}}}
	look := func(all map[int]stat) int64 {
		l := w.Look(a, sampleOf(all))
		a.Processes = l.Roots
		return l.Spent.CPUMillis
	}
	for i, c := range []struct {
		all  map[int]stat
		want int64
	}{
		{map[int]stat{10: {state: 'S', parent: 1, start: 1, time: 1}, 11: {state: 'R', parent: 10, start: 2, time: 5}, 12: {state: 'R', parent: 11, start: 3, time: 7}}, 130},
		{map[int]stat{10: {state: 'S', parent: 1, start: 1, time: 1}, 11: {state: 'Z', parent: 10, start: 2, time: 6}, 12: {state: 'R', parent: 1, start: 3, time: 7}}, 140},
		{map[int]stat{10: {state: 'S', parent: 1, start: 1, time: 1, childTime: 6}, 12: {state: 'R', parent: 1, start: 3, time: 9}}, 160},
		{map[int]stat{12: {state: 'R', parent: 1, start: 3, time: 10}}, 170},
		{map[int]stat{12: {state: 'R', parent: 1, start: 4, time: 99}}, 170}, // another process with the number
	} {
		if got := look(c.all); got != c.want {
			t.Errorf("look %d: %d ms, want %d", i, got, c.want)
		}
	}
}
