package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
)

// spent is the processor time of a process, with that of its children that have ended, as the
// kernel has it, in steps of 10 ms.
func spent(t *testing.T, pid int) time.Duration {
	t.Helper()
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	sum := 0
	for _, field := range strings.Fields(rest)[11:15] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return time.Duration(sum) * 10 * time.Millisecond
}

// use waits for a use of member 0 that a condition holds of.
func (h *host) use(what string, holds func(u *grant.WorkUse) bool) *grant.WorkUse {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if states := h.runner.States("a"); len(states) == 1 && states[0].Use != nil && holds(states[0].Use) {
			return states[0].Use
		}
		if time.Now().After(end) {
			h.t.Fatalf("%s: states %+v", what, h.runner.States("a"))
		}
	}
}

// count is a script that takes processor time in a child that ends.
const count = `sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; `

// TestTheUseOfAttachedProcesses: the time from the attachment on counts, that of children too
// that have ended, and a restart of the runner loses nothing.
func TestTheUseOfAttachedProcesses(t *testing.T) {
	h := newHost(t)
	h.start()
	l := h.launch("exec 3<&0; " + count + "echo up; read line <&3; " + count + "echo down; read line <&3")
	l.says()
	pid := l.cmd.Process.Pid
	before := spent(t, pid)
	h.attach(pid)
	h.until(grant.WorkRunning)
	if use := h.use("the first look", func(*grant.WorkUse) bool { return true }); before < 20*time.Millisecond || use.CPU > 10*time.Millisecond || use.Memory < 1<<18 || use.PeakMemory < use.Memory || use.OOMKills != grant.UnknownKills {
		t.Errorf("use %+v after the attachment, want the memory alone, and nothing of %s", use, before)
	}
	l.hears()
	l.says()
	want := spent(t, pid) - before
	h.attach(pid) // a look comes with each change
	first := h.use("the time of the second child", func(u *grant.WorkUse) bool { return u.CPU >= want })
	if first.CPU > want+20*time.Millisecond {
		t.Errorf("use %+v, want a time of %s", first, want)
	}
	h.leave()
	h.start()
	h.until(grant.WorkRunning)
	if use := h.use("the use on record", func(*grant.WorkUse) bool { return true }); use.CPU < first.CPU || use.CPU > first.CPU+20*time.Millisecond {
		t.Errorf("use %+v after a restart, want that of before, %+v", use, first)
	}
	if err := h.done(0); err != nil {
		t.Fatal(err)
	}
	l.hears()
	if last := h.until(grant.WorkEnded)[0].Use; last == nil || last.CPU < first.CPU || last.CPU > first.CPU+time.Second || last.PeakMemory < first.PeakMemory || last.Memory != 0 {
		t.Errorf("use %+v at the end, want no less than %+v, and no memory", last, first)
	}
}

// TestTheUseOfAnAttachedCgroup: it is what the kernel has counted since the attachment.
func TestTheUseOfAnAttachedCgroup(t *testing.T) {
	h := newHost(t)
	h.measureEvery = 5 * time.Millisecond
	h.start()
	dir := t.TempDir() // it has the files of a cgroup
	counts := func(cpu time.Duration, memory, peak, kills, populated int) {
		t.Helper()
		for name, text := range map[string]string{
			"cpu.stat": fmt.Sprintf("usage_usec %d\n", cpu.Microseconds()), "memory.current": fmt.Sprintln(memory), "memory.peak": fmt.Sprintln(peak),
			"memory.events": fmt.Sprintf("oom_kill %d\n", kills), "cgroup.events": fmt.Sprintf("populated %d\n", populated), "cgroup.procs": "",
		} {
			if err := os.WriteFile(filepath.Join(dir, name+".new"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name)); err != nil { // never half written
				t.Fatal(err)
			}
		}
	}
	counts(time.Hour, 5, 100, 3, 1)
	g, _, err := shim.JudgeGroup(dir, h.boot)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.change(run.Attachment{Cgroup: &g}); err != nil {
		t.Fatal(err)
	}
	if use := h.use("the first look", func(*grant.WorkUse) bool { return true }); use.CPU != 0 || use.OOMKills != 0 || use.Memory != 5 || use.PeakMemory != 5 {
		t.Errorf("use %+v, want nothing of the time before", use)
	}
	counts(time.Hour+time.Second, 7, 100, 4, 1)
	use := h.use("a second", func(u *grant.WorkUse) bool { return u.CPU == time.Second && u.OOMKills == 1 && u.Memory == 7 })
	if use.PeakMemory != 7 {
		t.Errorf("peak %d, want 7: that of 100 was before", use.PeakMemory)
	}
	h.leave()
	counts(time.Hour+2*time.Second, 7, 200, 4, 1)
	h.start()
	h.use("a second under the next runner", func(u *grant.WorkUse) bool {
		return u.CPU == 2*time.Second && u.OOMKills == 1 && u.PeakMemory == 200
	})
	counts(time.Hour+2*time.Second, 0, 200, 4, 0)
	if err := h.done(0); err != nil {
		t.Fatal(err)
	}
	if last := h.until(grant.WorkEnded)[0].Use; last == nil || last.CPU != 2*time.Second || last.OOMKills != 1 || last.PeakMemory != 200 || last.Memory != 0 {
		t.Errorf("use %+v at the end", last)
	}
}
