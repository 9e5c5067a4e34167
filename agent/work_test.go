package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/agent/users"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// TestMain makes this test program the program of the supervisors too.
func TestMain(m *testing.M) {
	shim.Become(os.Args)
	os.Exit(m.Run())
}

// newWorkRig is a rig whose agent starts processes.
func newWorkRig(t *testing.T) *rig {
	r := newRig(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if r.boot, err = shim.BootID(); err != nil {
		t.Skip("not permitted here: ", err)
	}
	r.tune = func(c *agent.Config, _ *agent.Deps) {
		c.Run = &agent.RunConfig{Program: self, Env: []string{"PATH=/usr/bin:/bin", "HOME=/h"}}
	}
	t.Cleanup(func() { killAll(t, r.dir) })
	return r
}

// folders are the folders of all starts.
func folders(dir string) []shim.Folder {
	var list []shim.Folder
	entries, _ := os.ReadDir(filepath.Join(dir, "run"))
	for _, e := range entries {
		list = append(list, shim.Folder(filepath.Join(dir, "run", e.Name())))
	}
	return list
}

func killAll(t testing.TB, dir string) {
	boot, err := shim.BootID()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders(dir) {
		if p, err := f.Begun(); err == nil && p.IsAlive(boot) {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		_, _ = f.KillRemains(boot, 100)
	}
}

func startOf(tx, script string) *musterv1.Start {
	return &musterv1.Start{
		Tx: tx, Epoch: 1, Args: []string{"/bin/sh", "-c", script}, Env: []string{"HOME=/mine", "CUDA_VISIBLE_DEVICES=all"}, Dir: "/tmp", Hosts: []string{"10.0.0.1"}, Port: 20001,
		Members: []*musterv1.StartMember{{Member: 0}},
	}
}

// work waits until the leader hears that the member of a transaction is in a phase.
func (l *leader) work(tx string, phase musterv1.WorkState_Phase) *musterv1.WorkState {
	l.t.Helper()
	var state *musterv1.WorkState
	l.until("work of "+tx+" "+phase.String(), func(m *musterv1.AgentMessage) bool {
		if w := m.GetWork(); w.GetTx() == tx && len(w.GetStates()) == 1 && w.GetStates()[0].GetPhase() == phase {
			state = w.GetStates()[0]
		}
		return state != nil
	})
	return state
}

// output is the output of the only start.
func (r *rig) output() string {
	r.t.Helper()
	list := folders(r.dir)
	if len(list) != 1 {
		r.t.Fatalf("%d starts, want 1", len(list))
	}
	p := make([]byte, 1<<16)
	_, n, err := list[0].ReadLog(0, p)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(p[:n])
}

func TestAHeldGrantRunsItsCommandWithItsDevices(t *testing.T) {
	r := newWorkRig(t)
	r.start()
	l := r.lead(1)
	devices := uuids(r.grant(l, "a", 2))
	l.send(startOf("a", `echo "$CUDA_VISIBLE_DEVICES $HOME $MUSTER_RANK $MUSTER_WORLD_SIZE $MUSTER_INDEX $MUSTER_HOSTS $MASTER_ADDR:$MASTER_PORT $(pwd)"; exit 3`))
	state := l.work("a", musterv1.WorkState_ENDED)
	if state.GetCode() != 3 || state.GetReason() != "Completed" {
		t.Errorf("the work has ended as %v, want code 3", state)
	}
	slices.Sort(devices)
	want := strings.Join(devices, ",") + " /mine 0 1 0 10.0.0.1 10.0.0.1:20001 /tmp\n"
	if got := r.output(); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	// Nothing ends by itself: the leader asks for it, and the grant goes at once.
	l.send(&musterv1.Release{Tx: "a", Epoch: 1, GraceMillis: time.Hour.Milliseconds()})
	mustBe(t, l.outcome("a"), musterv1.Reply_FREED)
}

func TestNothingIsStartedInWhatIsNotHeld(t *testing.T) {
	r := newWorkRig(t)
	r.start()
	l := r.lead(1)
	mustBe(t, l.reserve("a", 1, time.Minute), musterv1.Reply_RESERVED)
	l.send(startOf("a", "echo too early"))
	l.send(startOf("b", "echo of nobody"))
	mustBe(t, l.reserve("a", 1, time.Minute), musterv1.Reply_RESERVED) // the answers keep their order
	if list := folders(r.dir); len(list) > 0 {
		t.Errorf("%v were made", list)
	}
}

func TestAnAgentWithoutARunnerSaysSo(t *testing.T) {
	r := newRig(t)
	r.start()
	l := r.lead(1)
	r.grant(l, "a", 1)
	l.send(startOf("a", "true"))
	if state := l.work("a", musterv1.WorkState_ENDED); state.GetReason() != "NotStarted" || state.GetCode() == 0 {
		t.Errorf("the work has ended as %v, want NotStarted", state)
	}
}

// TestAReleaseKeepsItsGraceAndItsDevices: the grant is STOPPING, and its devices are
// nobody else's, until nothing of it runs.
func TestAReleaseKeepsItsGraceAndItsDevices(t *testing.T) {
	r := newWorkRig(t)
	gate := filepath.Join(r.dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	r.start()
	l := r.lead(1)
	r.grant(l, "a", 8)
	// The command ends only when somebody opens the gate, however often it is asked.
	l.send(startOf("a", "trap ': > "+gate+"; exit 9' TERM; echo ready; while :; do sleep 0.01; done"))
	l.work("a", musterv1.WorkState_RUNNING)
	eventually(t, "the command is ready", func() bool { return r.output() == "ready\n" })
	l.send(&musterv1.Release{Tx: "a", Epoch: 1, GraceMillis: time.Hour.Milliseconds()})
	mustBe(t, l.reply("a"), musterv1.Reply_STOPPING)
	mustBe(t, l.reserve("b", 1, time.Minute), musterv1.Reply_NO)
	open, err := os.Open(gate)
	if err != nil {
		t.Fatal(err)
	}
	open.Close()
	state := l.work("a", musterv1.WorkState_ENDED)
	if state.GetCode() != 9 || state.GetReason() != "Stopped" {
		t.Errorf("the work has ended as %v, want code 9 after a stop", state)
	}
	mustBe(t, l.outcome("a"), musterv1.Reply_FREED)
	mustBe(t, l.reserve("b", 1, time.Minute), musterv1.Reply_RESERVED)
}

// TestWorkOutlivesItsAgent: the next process of the agent finds the work running, or
// ended, and reports it in its first message; a stop that was begun goes on.
func TestWorkOutlivesItsAgent(t *testing.T) {
	for name, stopped := range map[string]bool{"while it runs": false, "while it is stopped": true} {
		t.Run(name, func(t *testing.T) {
			r := newWorkRig(t)
			r.start()
			l := r.lead(1)
			r.grant(l, "a", 1)
			l.send(startOf("a", "echo start; trap 'exit 4' TERM; while :; do sleep 0.01; done"))
			l.work("a", musterv1.WorkState_RUNNING)
			eventually(t, "the command runs", func() bool { return r.output() == "start\n" })
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			r.start()
			next := r.lead(1)
			next.send(startOf("a", "echo another start"))
			if got := next.work("a", musterv1.WorkState_RUNNING); got.GetRestart() != 0 {
				t.Errorf("state %v", got)
			}
			if stopped {
				next.send(&musterv1.Release{Tx: "a", Epoch: 1, GraceMillis: time.Hour.Milliseconds()})
				mustBe(t, next.reply("a"), musterv1.Reply_STOPPING)
				if err := r.end(); err != nil {
					t.Fatal(err)
				}
				r.start()
				next = r.lead(1)
				next.send(&musterv1.Release{Tx: "a", Epoch: 1})
				next.until("the end of a", func(m *musterv1.AgentMessage) bool { return m.GetReply().GetState() == musterv1.Reply_FREED })
				if e, err := folders(r.dir)[0].Exit(); err != nil || e.Code != 4 || e.Reason != shim.Stopped {
					t.Errorf("exit %+v, %v, want code 4 after a stop", e, err)
				}
			}
			if got := r.output(); !strings.HasPrefix(got, "start\n") || strings.Contains(got, "another") {
				t.Errorf("output %q, want one start", got)
			}
		})
	}
}

// TestEachMemberHasOneSeries: also one whose command was started again. Two series of one
// name would fail the whole scrape.
func TestEachMemberHasOneSeries(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := newWorkRig(t)
	tune := r.tune
	r.tune = func(c *agent.Config, d *agent.Deps) { tune(c, d); d.Metrics = registry }
	r.start()
	l := r.lead(1)
	r.grant(l, "a", 1)
	l.send(startOf("a", "exit 1"))
	l.work("a", musterv1.WorkState_ENDED)
	again := startOf("a", "exit 2")
	again.Members[0].Restart = 1
	l.send(again)
	l.until("the end of the second start", func(m *musterv1.AgentMessage) bool {
		states := m.GetWork().GetStates()
		return len(states) == 2 && states[1].GetPhase() == musterv1.WorkState_ENDED
	})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "muster_agent_work_cpu_seconds_total" && len(f.GetMetric()) == 1 {
			return
		}
	}
	t.Error("no series shows the member's processor time")
}

// TestATenantWithoutAUserHasNoProcess: the member ends as one that was never started, and
// says so to the people of the tenant.
func TestATenantWithoutAUserHasNoProcess(t *testing.T) {
	r := newWorkRig(t)
	tune := r.tune
	r.tune = func(c *agent.Config, d *agent.Deps) {
		tune(c, d)
		table, err := users.NewTable(map[string]string{"ml": "ada"}, false, func(name string) (users.Account, error) {
			return users.Account{Name: name, ID: shim.User{UID: 1001}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Run.Users = table
	}
	r.start()
	l := r.lead(1)
	r.grant(l, "a", 1)
	l.send(startOf("a", "echo no"))
	state := l.work("a", musterv1.WorkState_ENDED)
	if state.GetCode() != 126 || state.GetReason() != string(shim.NotStarted) || !strings.Contains(state.GetMessage(), "this node has no user for the work of tenant") {
		t.Errorf("the work has ended as %v", state)
	}
	if got := r.output(); got != "" {
		t.Errorf("output %q of a command that was not to start", got)
	}
}
