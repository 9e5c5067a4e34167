package work

import (
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/musterd/muster/api"
)

func TestRunEndsWithTheJob(t *testing.T) {
	w := open(t, 1)
	for name, c := range map[string]struct {
		command        []string
		code           int
		stdout, stderr string
	}{
		"success":                      {[]string{"sh", "-c", "echo out; echo err >&2"}, 0, "out\nerr\n", ""},
		"failure":                      {[]string{"sh", "-c", "echo out; exit 3"}, 3, "out\n", "exited with code 3"},
		"a signal":                     {[]string{"sh", "-c", "kill -9 $$"}, 137, "", "signal 9"},
		"a command that there is not":  {[]string{"no-such-program"}, 127, "", "no-such-program"},
		"output without an end":        {[]string{"printf", "no new line"}, 0, "no new line", ""},
		"output that is no text":       {[]string{"printf", `\377\000\033[1m`}, 0, "\xff\x00\x1b[1m", ""},
		"flags of the command":         {[]string{"echo", "-n", "--nodes"}, 0, "--nodes", ""},
		"more than a pipe, not a line": {[]string{"sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x"}, 0, strings.Repeat("x", 300000), ""},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr := w.muster(append([]string{"run", "--cpu", "100m", "--memory", "1Mi", "--"}, c.command...)...).ends(c.code)
			if stdout != c.stdout || !strings.Contains(stderr, c.stderr) {
				t.Errorf("output %.200q and %q, want %.200q and %q", stdout, stderr, c.stdout, c.stderr)
			}
		})
	}
}

// TestTheUseOfAMemberIsInTheRecord: each member that has ended has its use, which describe
// shows.
func TestTheUseOfAMemberIsInTheRecord(t *testing.T) {
	w := open(t, 2)
	w.muster("run", "--name", "busy", "--nodes", "2", "--cpu", "100m", "--memory", "1Mi", "--", "sh", "-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done").ends(0)
	j := w.phase("busy", api.Succeeded)
	for _, m := range j.Status.Allocations {
		if m.Use == nil || m.Use.CPUMillis < 10 || m.Use.CPUMillis > 60_000 || m.Use.PeakMemoryBytes < 1<<19 || m.Use.OOMKills != nil || len(m.Use.Devices) > 0 {
			t.Errorf("use of %s is %+v", m.Name, m.Use)
		}
	}
	shown, _ := w.muster("describe", "job", "busy").ends(0)
	if !strings.Contains(shown, "PEAK MEMORY") || strings.Count(shown, "Completed") != 2 {
		t.Errorf("describe shows\n%s", shown)
	}
}

func TestAGangRunsEachMemberOnItsNodeAndDevices(t *testing.T) {
	w := open(t, 4)
	stdout, _ := w.muster("run", "-g", "8", "--nodes", "4", "--name", "gang", "-e", "GREETING=hello", "--",
		"sh", "-c", "for g in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do echo $MUSTER_RANK/$MUSTER_WORLD_SIZE $GREETING $g; done").ends(0)
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	slices.Sort(lines)
	devices := map[string]bool{}
	for i, line := range lines {
		rank := string(rune('0' + i/8))
		rest, ok := strings.CutPrefix(line, rank+": "+rank+"/4 hello GPU-")
		if !ok {
			t.Errorf("line %q, want one of member %s", line, rank)
		}
		devices[rest] = true
	}
	if len(lines) != 32 || len(devices) != 32 {
		t.Errorf("%d lines and %d distinct devices, want 32 of each", len(lines), len(devices))
	}
	nodes := map[string]bool{}
	for _, m := range w.phase("gang", api.Succeeded).Status.Allocations {
		nodes[m.Node] = true
	}
	if len(nodes) != 4 {
		t.Errorf("the members were on %d nodes, want 4", len(nodes))
	}
	stdout, _ = w.muster("logs", "gang", "--member", "2").ends(0)
	if strings.Count(stdout, "2/4 hello") != 8 || strings.Contains(stdout, "2: ") {
		t.Errorf("the output of one member is\n%s", stdout)
	}
}

// The owner of a job that failed sees where each member ran, and how it ended.
func TestAnEndedMemberNamesItsNode(t *testing.T) {
	w := open(t, 2)
	// Member 1 fails once member 0 takes signals.
	ready := filepath.Join(t.TempDir(), "ready")
	w.muster("run", "--nodes", "2", "-g", "8", "--name", "uneven", "--", "sh", "-c",
		`if [ $MUSTER_RANK = 1 ]; then until [ -e "$0" ]; do sleep 0.01; done; exit 7; fi; trap 'exit 0' TERM; : > "$0"; sleep 1000 & wait; wait`, ready).ends(7)
	ends := w.phase("uneven", api.Failed).Status.Allocations
	stdout, _ := w.muster("describe", "job", "uneven").ends(0)
	_, table, found := strings.Cut(stdout, "\nExits:\n")
	if !found {
		t.Fatalf("no table of exits in\n%s", stdout)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var rows [][]string
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) == 5 {
			rows = append(rows, fields[:4])
		}
	}
	want := [][]string{{"NAME", "NODE", "EXIT", "REASON"}, {"uneven-0", ends[0].Node, "0", "Stopped"}, {"uneven-1", ends[1].Node, "7", "Completed"}}
	if !slices.EqualFunc(rows, want, slices.Equal) || ends[0].Node == ends[1].Node {
		t.Errorf("the ends are %q, want %q on two nodes", rows, want)
	}
	stdout, _ = w.muster("get", "allocations", "--field-selector", "status.nodeId="+ends[1].Node).ends(0)
	if !strings.Contains(stdout, "uneven-1") || strings.Contains(stdout, "uneven-0") {
		t.Errorf("the allocations of node %s are\n%s", ends[1].Node, stdout)
	}
}

// Ctrl-C asks the command to end, and its last words are shown. The output stays.
func TestCtrlCCancelsTheJob(t *testing.T) {
	w := open(t, 1)
	m := w.muster("run", "--name", "loop", "--", "sh", "-c", `trap 'echo last words; exit 5' TERM; echo up; sleep 1000 & wait; wait`)
	m.shows("up\n")
	m.interrupt()
	stdout, stderr := m.ends(130)
	if !strings.HasPrefix(stdout, "up\n") || !strings.HasSuffix(stdout, "last words\n") || !strings.Contains(stderr, "cancelling job default/loop") {
		t.Errorf("output %q and %q", stdout, stderr)
	}
	j := w.phase("loop", api.Cancelled)
	if got := j.Status.Allocations[0]; got.ExitCode == nil || *got.ExitCode != 5 || got.ExitReason != "Stopped" {
		t.Errorf("the member is %+v, want exit code 5 of a command that was stopped", got)
	}
	if again, _ := w.muster("logs", "loop").ends(0); again != stdout {
		t.Errorf("afterwards the output is %q, want %q", again, stdout)
	}
}

// A second Ctrl-C leaves a job whose command does not end yet. The job ends by itself.
func TestTheSecondCtrlCLeavesTheJob(t *testing.T) {
	w := open(t, 1)
	never := make(chan os.Signal, 1) // the signal is for the program, which is in this process
	signal.Notify(never, os.Interrupt)
	defer signal.Stop(never)
	end, told := filepath.Join(t.TempDir(), "end"), filepath.Join(t.TempDir(), "told")
	if err := syscall.Mkfifo(told, 0o600); err != nil {
		t.Fatal(err)
	}
	m := w.muster("run", "--name", "stubborn", "--", "sh", "-c", `(trap 'echo >`+told+`; exit' TERM; while :; do sleep 1; done) 2>/dev/null & trap '' TERM; echo up; while ! test -e `+end+`; do sleep 0.05; done; echo last words; exit 4`)
	m.shows("up\n")
	m.interrupt()
	m.says("Ctrl-C again leaves it")
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr := m.ends(130); stdout != "up\n" {
		t.Errorf("output %q and %q, want what the command had written", stdout, stderr)
	}
	if j := w.phase("stubborn", api.Cancelling); j.Status.Allocations[0].ExitCode != nil {
		t.Errorf("the member is %+v, want a command that still runs", j.Status.Allocations[0])
	}
	if _, err := os.ReadFile(told); err != nil { // waits until the command has SIGTERM
		t.Fatal(err)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j := w.phase("stubborn", api.Cancelled)
	if got := j.Status.Allocations[0]; got.ExitCode == nil || *got.ExitCode != 4 || got.ExitReason != "Stopped" {
		t.Errorf("the member is %+v, want exit code 4 of a command that was stopped", got)
	}
	if stdout, _ := w.muster("logs", "stubborn").ends(0); stdout != "up\nlast words\n" {
		t.Errorf("afterwards the output is %q", stdout)
	}
}

// Output is followed over the starts of a job: here it is suspended and resumed.
func TestOutputIsFollowedOverStarts(t *testing.T) {
	w := open(t, 1)
	run := w.muster("run", "--name", "twice", "--", "sh", "-c", `echo started; trap 'exit 1' TERM; sleep 1000 & wait; wait`)
	run.shows("started\n")
	logs := w.muster("logs", "-f", "twice")
	logs.shows("started\n")
	w.muster("suspend", "job/twice").ends(0)
	w.phase("twice", api.Queued)
	if before, _ := w.muster("logs", "twice").ends(0); before != "started\n" {
		t.Errorf("while the job waits, its last output is %q", before)
	}
	w.muster("resume", "job/twice").ends(0)
	logs.shows("started\nstarted\n")
	run.shows("started\nstarted\n")
	w.muster("cancel", "job/twice").ends(0)
	_, stderr := logs.ends(0)
	if !strings.Contains(stderr, "member 0 was started anew on node node-0") {
		t.Errorf("standard error %q, want the start anew", stderr)
	}
	run.ends(1)
}

// A job that waits is followed too; each look at output is in the audit.
func TestOutputIsFollowedFromTheQueueOnAndIsInTheAudit(t *testing.T) {
	w := open(t, 1)
	first := w.muster("run", "-g", "8", "--name", "first", "--", "sh", "-c", `echo up; trap 'exit 0' TERM; sleep 1000 & wait; wait`)
	first.shows("up\n")
	second := w.muster("run", "-g", "8", "--name", "second", "--", "echo", "mine")
	w.phase("second", api.Queued)
	logs := w.muster("logs", "--follow", "second")
	first.interrupt()
	first.ends(130)
	for _, m := range []*muster{second, logs} {
		if stdout, _ := m.ends(0); stdout != "mine\n" {
			t.Errorf("output %q", stdout)
		}
	}
	text, _ := w.muster("audit", "-o", "json").ends(0)
	if n := strings.Count(text, `"verb": "logs"`); n != 3 {
		t.Errorf("the audit has %d looks at output, want 3:\n%s", n, text)
	}
}
