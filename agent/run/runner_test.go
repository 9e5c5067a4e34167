package run_test

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/bounds"
	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/grant"
)

// TestMain makes this test program the shim's program too.
func TestMain(m *testing.M) {
	shim.Become(os.Args)
	os.Exit(m.Run())
}

func TestACommandEndsWithItsCodeAndOutput(t *testing.T) {
	for name, c := range map[string]struct {
		script, output string
		code, signal   int
		reason         shim.Reason
	}{
		"success":                          {script: "echo out; echo err >&2", output: "out\nerr\n", reason: shim.Completed},
		"a code":                           {script: "exit 7", code: 7, reason: shim.Completed},
		"a signal":                         {script: "kill -KILL $$", code: 137, signal: 9, reason: shim.Completed},
		"an environment of its own":        {script: `echo "$HOME|$T|$(pwd)"`, output: "|ROOT|/tmp\n", reason: shim.Completed},
		"no input":                         {script: "read line; echo \"$?\"", output: "1\n", reason: shim.Completed},
		"the lock is not the command's":    {script: "test -e /proc/$$/fd/3; echo $?", output: "1\n", reason: shim.Completed},
		"what it leaves behind is killed":  {script: "sleep 3600 & setsid sleep 3600 & echo done", output: "done\n", reason: shim.Completed},
		"signals are those of the default": {script: "kill -HUP $$; echo here", code: 129, signal: 1, reason: shim.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.start()
			c.output = strings.ReplaceAll(c.output, "ROOT", h.root)
			h.runner.Attach("a", []run.Member{h.shell(0, c.script)})
			got := h.until(grant.WorkEnded)[0]
			want := grant.WorkState{Phase: grant.WorkEnded, Code: c.code, Signal: c.signal, Reason: string(c.reason)}
			if got.Use == nil || got.Use.PeakMemory == 0 || got.Use.OOMKills != grant.UnknownKills {
				t.Errorf("use %+v, want a peak of memory, and no kills without a cgroup", got.Use)
			}
			if got.Use = nil; got != want {
				t.Errorf("state %+v, want %+v", got, want)
			}
			if out := h.output(0); out != c.output {
				t.Errorf("output %q, want %q", out, c.output)
			}
			if left, err := h.folder(0).KillRemains(h.boot, 0); len(left) > 0 || err != nil {
				t.Errorf("processes %v are left: %v", left, err)
			}
		})
	}
}

func TestACommandThatCannotBeStartedSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		spec shim.Spec
		code int
		want string
	}{
		"no such command":        {shim.Spec{Args: []string{"no-such-command"}, Dir: "/"}, 127, `command "no-such-command" is in no folder of PATH`},
		"no such folder":         {shim.Spec{Args: []string{"/bin/true"}, Dir: "/no/such"}, 126, "working directory /no/such"},
		"no such file":           {shim.Spec{Args: []string{"/no/such"}, Dir: "/"}, 127, "start /no/such: no such file or directory"},
		"a folder as a command":  {shim.Spec{Args: []string{"/tmp"}, Dir: "/"}, 126, "start /tmp: permission denied"},
		"CPUs that do not exist": {shim.Spec{Args: []string{"/bin/true"}, Dir: "/", CPUs: []int{1023}}, 126, "affinity to CPUs [1023]"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.start()
			h.runner.Attach("a", []run.Member{{Spec: c.spec}})
			got := h.until(grant.WorkEnded)[0]
			if got.Reason != string(shim.NotStarted) || got.Code != c.code || !strings.Contains(got.Message, c.want) {
				t.Errorf("state %+v, want code %d and %q", got, c.code, c.want)
			}
		})
	}
}

// TestAMemberIsEndedWhileStartsAreSlow: where the users of a host come from a directory that
// does not answer, members that wait for their turn end at once, and have no process.
func TestAMemberIsEndedWhileStartsAreSlow(t *testing.T) {
	h := newHost(t)
	h.start()
	answer, asked := make(chan struct{}), make(chan struct{}, 64)
	var slow []run.Member
	for i := range 2 * run.StartsAtOnce {
		member := h.shell(i, "exit 0")
		member.Prepare = func(*shim.Spec, *bounds.Bounds) error {
			asked <- struct{}{}
			<-answer
			return nil
		}
		slow = append(slow, member)
	}
	h.runner.Attach("slow", slow)
	for range run.StartsAtOnce {
		<-asked
	}
	h.runner.Attach("a", []run.Member{h.shell(0, "exit 0")}) // waits, too
	for _, err := os.Stat(string(h.folder(0))); err != nil; _, err = os.Stat(string(h.folder(0))) {
		runtime.Gosched() // the others have had their folders before
	}
	h.runner.StopAll(time.Now())
	ended := func() (count int) {
		for _, s := range h.runner.States("slow") {
			if s.Phase == grant.WorkEnded {
				count++
				if s.Reason != string(shim.NotStarted) {
					t.Errorf("a member has ended as %+v, want that it was not started", s)
				}
			}
		}
		return count
	}
	for ended() < run.StartsAtOnce || h.runner.Runs("a") {
		<-h.changed
	}
	if len(asked) > 0 {
		t.Errorf("%d members are being started, want at most %d", run.StartsAtOnce+len(asked), run.StartsAtOnce)
	}
	close(answer)
	for h.runner.Runs("slow") {
		<-h.changed
	}
}

// TestAMemberThatCannotBePreparedSaysWhy: its folder has the end, and no process.
func TestAMemberThatCannotBePreparedSaysWhy(t *testing.T) {
	h := newHost(t)
	h.start()
	member := h.shell(0, "exit 0")
	member.Prepare = func(*shim.Spec, *bounds.Bounds) error { return errors.New("no user") }
	h.runner.Attach("a", []run.Member{member})
	if got := h.until(grant.WorkEnded)[0]; got.Reason != string(shim.NotStarted) || got.Code != 126 || got.Message != "no user" {
		t.Errorf("the member has ended as %+v", got)
	}
	if _, err := h.folder(0).Begun(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a supervisor has begun: %v", err)
	}
}

// TestACommandPrefersItsMemoryNodes: where the kernel has such a policy the command has it,
// and else it starts all the same.
func TestACommandPrefersItsMemoryNodes(t *testing.T) {
	h := newHost(t)
	h.start()
	member := h.shell(0, "awk '{print $2; exit}' /proc/self/numa_maps || echo none")
	member.Spec.NUMANodes = []int{0}
	h.runner.Attach("a", []run.Member{member})
	if got := h.until(grant.WorkEnded)[0]; got.Code != 0 {
		t.Fatalf("the command has ended as %+v", got)
	}
	refused := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		var mask unix.CPUSet
		mask.Set(0)
		refused <- unix.SetMemPolicy(unix.MPOL_PREFERRED_MANY, &mask)
	}()
	if err, got := <-refused, h.output(0); err == nil && !strings.HasPrefix(got, "prefer") {
		t.Errorf("the policy of the command's memory is %q, want a preference", got)
	} else if err != nil {
		t.Logf("the kernel has no such policy here (%v); the command's is %q", err, got)
	}
}

func TestAStopGivesGraceAndThenKills(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		grace  time.Duration
		want   grant.WorkState
	}{
		"it ends within its grace":   {`trap 'exit 3' TERM; : > $B; while :; do sleep 0.01; done`, time.Hour, grant.WorkState{Code: 3, Reason: "Stopped"}},
		"it knows no TERM":           {`: > $B; sleep 3600`, time.Hour, grant.WorkState{Code: 143, Signal: 15, Reason: "Stopped"}},
		"it ignores TERM":            {`trap '' TERM; : > $B; while :; do sleep 0.01; done`, 0, grant.WorkState{Code: 137, Signal: 9, Reason: "Killed"}},
		"success comes after a stop": {`trap 'exit 0' TERM; : > $B; while :; do sleep 0.01; done`, time.Hour, grant.WorkState{Reason: "Stopped"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.start()
			b, wait := h.barrier()
			h.runner.Attach("a", []run.Member{h.shell(0, strings.ReplaceAll(c.script, "$B", b))})
			wait()
			h.runner.Stop("a", time.Now().Add(c.grace))
			c.want.Phase = grant.WorkEnded
			got := h.until(grant.WorkEnded)[0]
			if got.Use = nil; got != c.want || got.IsSuccess() {
				t.Errorf("state %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestTheSignalBeforeAnEndComesOnce: with its time, or with an eviction before that; not
// with another stop, and not from the next runner.
func TestTheSignalBeforeAnEndComesOnce(t *testing.T) {
	const loop = `n=0; trap 'n=$((n+1)); echo usr $n' USR1; trap 'echo term; exit 4' TERM; : > $B; while :; do sleep 0.01; done`
	const hour = int64(time.Hour / time.Millisecond)
	soon := &shim.Notice{Signal: 10, BeforeMillis: 1, AfterMillis: 200}
	late := &shim.Notice{Signal: 10, BeforeMillis: 50, AfterMillis: hour}
	for name, c := range map[string]struct {
		notice  *shim.Notice
		after   bool // the end is asked for after the signal
		evicted bool
		want    string
	}{
		"its time comes":                       {soon, true, false, "usr 1\nterm\n"},
		"its time comes, then an eviction":     {soon, true, true, "usr 1\nterm\n"},
		"an eviction before its time":          {late, false, true, "usr 1\nterm\n"},
		"a stop before its time":               {late, false, false, "term\n"},
		"an eviction where it has no signal":   {nil, false, true, "term\n"},
		"an eviction where the signal is TERM": {&shim.Notice{Signal: 15, BeforeMillis: hour}, false, true, "term\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.measureEvery = 20 * time.Millisecond
			h.start()
			b, wait := h.barrier()
			m := h.shell(0, strings.ReplaceAll(loop, "$B", b))
			m.Spec.Notice = c.notice
			h.runner.Attach("a", []run.Member{m})
			wait()
			h.until(grant.WorkRunning)
			if c.after {
				h.signaled()
				h.leave()
				h.start()
				h.until(grant.WorkRunning)
			}
			ask := h.runner.Stop
			if c.evicted {
				ask = h.runner.Evict
			}
			ask("a", time.Now().Add(time.Hour))
			got := h.until(grant.WorkEnded)[0]
			text := strings.NewReplacer("User defined signal 1\n", "", "Terminated\n", "").Replace(h.output(0)) // the shell says how sleep has ended
			if text != c.want || got.Code != 4 || got.Reason != "Stopped" {
				t.Errorf("output %q with %+v, want %q and code 4", text, got, c.want)
			}
			if want := strings.HasPrefix(c.want, "usr"); got.Signaled != want {
				t.Errorf("signaled is %t, want %t", got.Signaled, want)
			}
		})
	}
}

// signaled waits until member 0 has had its signal and its runner has reported that.
func (h *host) signaled() {
	h.t.Helper()
	for {
		if states := h.runner.States("a"); states[0].Signaled {
			return
		}
		select {
		case <-h.changed:
		case <-time.After(time.Minute):
			h.t.Fatalf("the states are %+v, the output is %q", h.runner.States("a"), h.output(0))
		}
	}
}

// TestAMemberOutlivesItsRunner: the next runner finds it running, or ended.
func TestAMemberOutlivesItsRunner(t *testing.T) {
	for name, endsMeanwhile := range map[string]bool{"it still runs": false, "it has ended meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.start()
			reached, wait := h.barrier()
			release, let := h.barrier()
			ended, over := h.barrier()
			h.runner.Attach("a", []run.Member{h.shell(0, ": > "+reached+"; : > "+release+"; trap ': > "+ended+"' EXIT; exit 5")})
			wait()
			h.until(grant.WorkRunning)
			h.leave()
			if endsMeanwhile {
				let()
				over()
			}
			h.start()
			if !h.runner.Has("a") {
				t.Fatal("the next runner does not know the transaction")
			}
			if !endsMeanwhile {
				h.until(grant.WorkRunning)
				let()
				over()
			}
			if got := h.until(grant.WorkEnded)[0]; got.Code != 5 || got.Reason != "Completed" {
				t.Errorf("state %+v, want code 5", got)
			}
		})
	}
}

func TestALostSupervisorIsNoSuccessAndLeavesNoProcess(t *testing.T) {
	h := newHost(t)
	h.start()
	b, wait := h.barrier()
	h.runner.Attach("a", []run.Member{h.shell(0, "sleep 3600 & setsid sleep 3600 & : > "+b+"; sleep 3600")})
	wait()
	h.until(grant.WorkRunning)
	p, err := h.folder(0).Begun()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	got := h.until(grant.WorkEnded)[0]
	if got.Reason != string(shim.SupervisorLost) || got.Code != shim.UnknownCode || got.IsSuccess() {
		t.Errorf("state %+v, want SupervisorLost", got)
	}
	if left, err := h.folder(0).KillRemains(h.boot, 0); len(left) > 0 || err != nil {
		t.Errorf("processes %v are left: %v", left, err)
	}
}

func TestAMemberOfAnEarlierBootIsNodeRestarted(t *testing.T) {
	h := newHost(t)
	h.start()
	b, wait := h.barrier()
	h.runner.Attach("a", []run.Member{h.shell(0, ": > "+b+"; sleep 3600")})
	wait()
	h.until(grant.WorkRunning)
	h.leave()
	p, _ := h.folder(0).Begun()
	_ = syscall.Kill(p.PID, syscall.SIGKILL)
	if _, err := h.folder(0).KillRemains(h.boot, 1000); err != nil {
		t.Fatal(err)
	}
	real := h.boot
	h.boot = "another"
	h.start()
	if got := h.until(grant.WorkEnded)[0]; got.Reason != string(shim.NodeRestarted) || got.IsSuccess() {
		t.Errorf("state %+v, want NodeRestarted", got)
	}
	h.leave()
	h.boot = real
}

// TestAMemberIsStartedOnce: however often that is asked for, and by whom.
func TestAMemberIsStartedOnce(t *testing.T) {
	h := newHost(t)
	h.start()
	m := []run.Member{h.shell(0, "echo once")}
	for range 3 {
		h.runner.Attach("a", m)
	}
	h.until(grant.WorkEnded)
	h.leave()
	h.start()
	h.runner.Attach("a", m)
	h.until(grant.WorkEnded)
	if out := h.output(0); out != "once\n" {
		t.Errorf("output %q, want one start", out)
	}
}

// TestAStartThatWasCutOffWaitsForItsLeader: a folder with a spec, and without a shim,
// is started only when that is asked for again, and never after its end.
func TestAStartThatWasCutOffWaitsForItsLeader(t *testing.T) {
	for name, c := range map[string]struct {
		asked  bool
		reason shim.Reason
	}{"asked for again": {true, shim.Completed}, "ended before": {false, shim.NotStarted}} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			if err := os.MkdirAll(h.root, 0o700); err != nil {
				t.Fatal(err)
			}
			m := h.shell(0, "echo here")
			_, err := h.folder(0).Make()
			if err = errors.Join(err, h.folder(0).WriteSpec(m.Spec)); err != nil {
				t.Fatal(err)
			}
			h.start()
			if !h.runner.Runs("a") {
				t.Error("a start that may come counts as nothing")
			}
			if c.asked {
				h.runner.Attach("a", []run.Member{m})
			} else {
				h.runner.Stop("a", time.Now())
			}
			if got := h.until(grant.WorkEnded)[0]; got.Reason != string(c.reason) {
				t.Errorf("state %+v, want %s", got, c.reason)
			}
		})
	}
}

// TestAnEndBeforeTheStartIsKept: the next runner reports the same end, and starts nothing.
func TestAnEndBeforeTheStartIsKept(t *testing.T) {
	h := newHost(t)
	h.start()
	if _, err := h.folder(0).Make(); err != nil {
		t.Fatal(err)
	}
	held, err := h.folder(0).Lock() // the runner cannot start the member yet
	if err != nil {
		t.Fatal(err)
	}
	m := []run.Member{h.shell(0, "echo start")}
	h.runner.Attach("a", m)
	h.runner.Stop("a", time.Now())
	held.Close()
	before := h.until(grant.WorkEnded)[0]
	if before.Reason != string(shim.NotStarted) {
		t.Fatalf("state %+v, want an end before the start", before)
	}
	h.leave()
	h.start()
	h.runner.Attach("a", m)
	if after := h.until(grant.WorkEnded)[0]; after != before {
		t.Errorf("the next runner reports %+v, the one before %+v", after, before)
	}
}

func TestAFolderWithoutASpecIsNoWork(t *testing.T) {
	h := newHost(t)
	if err := os.MkdirAll(string(h.folder(0)), 0o700); err != nil {
		t.Fatal(err)
	}
	h.start()
	if h.runner.Has("a") {
		t.Error("work without a spec is reported")
	}
	if _, err := os.Stat(string(h.folder(0))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// TestOutputIsRotated keeps the last files, and a reader knows where they begin.
func TestOutputIsRotated(t *testing.T) {
	h := newHost(t)
	h.start()
	m := h.shell(0, "i=0; while [ $i -lt 100 ]; do echo 123456789; i=$((i+1)); done")
	m.Spec.LogBytes, m.Spec.LogFiles = 64, 3
	h.runner.Attach("a", []run.Member{m})
	h.until(grant.WorkEnded)
	p := make([]byte, 2000)
	at, n, err := h.folder(0).ReadLog(0, p)
	if err != nil || at == 0 || n == 0 || at%64 != 0 {
		t.Errorf("the output begins at %d with %d bytes: %v", at, n, err)
	}
	if kept := h.folder(0).LogBytes(); kept > 3*64 || kept < 2*64 {
		t.Errorf("%d bytes are kept, want two to three files of 64", kept)
	}
	if out := h.output(0); !strings.HasSuffix(out, "123456789\n") || int64(len(out)) != 1000-at {
		t.Errorf("%d bytes from %d of 1000: %q", len(out), at, out)
	}
}

// seen has a script wait until its shim has written down its start and its output.
const seen = `while ! test -e "$MUSTER_RUN/started" || ! test -s "$MUSTER_RUN"/log.00000000000000000000; do sleep 0.01; done; `

// TestACommandHasNoDescriptorOfTheAgent: a descriptor of the start of the agent ends at the
// supervisor.
func TestACommandHasNoDescriptorOfTheAgent(t *testing.T) {
	secret, err := os.CreateTemp(t.TempDir(), "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	inherited, _, failed := syscall.Syscall(syscall.SYS_FCNTL, secret.Fd(), syscall.F_DUPFD, 9)
	if failed != 0 {
		t.Fatal(failed)
	}
	defer syscall.Close(int(inherited))
	h := newHost(t)
	h.start()
	h.runner.Attach("a", []run.Member{h.shell(0, "for n in /proc/$$/fd/*; do readlink $n; done; true")})
	h.until(grant.WorkEnded)
	lines := strings.Fields(h.output(0))
	if len(lines) != 3 || lines[0] != os.DevNull || lines[1] != lines[2] || !strings.HasPrefix(lines[1], "pipe:") {
		t.Errorf("the command has the descriptors %q, want standard input, output and error alone", lines)
	}
}
