package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/devices"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// names are the commands of the processes under test.
var names = map[int]string{7: "python", 8: "nvidia-cuda-mps", 9: "Xorg"}

// newOrphanRig watches, and sees running at its start.
func newOrphanRig(t *testing.T, running ...devices.Running) *watched {
	w := newWatchedRig(t)
	tune := w.tune
	w.tune = func(c *agent.Config, d *agent.Deps) {
		tune(c, d)
		c.Orphans = agent.OrphansConfig{Enabled: true, Ignore: agent.DefaultIgnore}
		c.Heartbeat = 20 * time.Millisecond
		d.Discovered.Running = running
		d.ProcessName = func(pid int) string { return names[pid] }
		d.Hurry = make(chan struct{}, 1)
	}
	return w
}

// gpu names a device of the rig.
func (w *watched) gpu(i int) string { return w.agent.Host().Inventory().Devices[i].UUID }

// run reports the processes on one device.
func (w *watched) run(uuid string, pids ...int) {
	w.t.Helper()
	select {
	case w.change <- devices.Change{Running: []devices.Running{{UUID: uuid, PIDs: pids}}}:
	case <-time.After(patient):
		w.t.Fatal("the agent does not listen to its devices")
	}
}

// orphans awaits an occupancy with these orphans.
func (l *leader) orphans(want ...string) {
	l.t.Helper()
	l.until("the orphans "+strings.Join(want, ", "), func(m *musterv1.AgentMessage) bool {
		if m.GetOccupancy() == nil {
			return false
		}
		got := []string{}
		for _, g := range m.GetOccupancy().GetGrants() {
			if g.GetOrigin() == "orphan" && g.GetState() == musterv1.Reply_HELD {
				got = append(got, g.GetMembers()[0].GetAssignment().GetGpus()[0].GetUuid())
			}
		}
		slices.Sort(want)
		return slices.Equal(got, want)
	})
}

func TestADeviceThatIsBusyWithoutAGrantIsNotHandedOut(t *testing.T) {
	w := newOrphanRig(t)
	w.start()
	l := w.lead(1)
	busy := w.gpu(3)
	w.run(busy, 7, 9)
	l.orphans(busy)
	mustBe(t, l.reserve("all", 8, time.Minute), musterv1.Reply_NO)
	mustBe(t, l.reserve("others", 7, time.Minute), musterv1.Reply_RESERVED)
	eventually(t, "the condition in a heartbeat", func() bool {
		for _, c := range (<-w.store.beats).GetConditions() {
			if c.GetType() == "OrphanProcesses" && strings.Contains(c.GetMessage(), busy+": 7 python") && !strings.Contains(c.GetMessage(), "Xorg") {
				return true
			}
		}
		return false
	})
	w.run(busy, 9)
	l.orphans()
	mustBe(t, l.reserve("last", 1, time.Minute), musterv1.Reply_RESERVED)
}

func TestAWipedDiskUnderRunningProcessesHandsNothingOutThatTheyUse(t *testing.T) {
	w := newOrphanRig(t)
	w.start()
	l := w.lead(1)
	held := uuids(w.grant(l, "held", 2))
	busy := ""
	for i := range 8 {
		if !slices.Contains(held, w.gpu(i)) {
			busy = w.gpu(i)
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	w.dir = t.TempDir()
	tune := w.tune
	w.tune = func(c *agent.Config, d *agent.Deps) {
		tune(c, d)
		d.Discovered.Running = []devices.Running{{UUID: held[0], PIDs: []int{7}}, {UUID: busy, PIDs: []int{7}}}
	}
	w.start()
	l = w.lead(1)
	l.send(&musterv1.Resync{})
	l.orphans(busy) // the record explains the other
	mustBe(t, l.reserve("six", 6, time.Minute), musterv1.Reply_NO)
	mustBe(t, l.reserve("five", 5, time.Minute), musterv1.Reply_RESERVED)
}

func TestWhatOutlivesItsGrantKeepsTheDeviceFromTheNext(t *testing.T) {
	w := newOrphanRig(t)
	w.start()
	l := w.lead(1)
	held := uuids(w.grant(l, "held", 8))
	w.run(held[0], 7)
	w.run(held[1], 8) // ignored
	w.settle()
	// The release and the next reservation may be decided in one group.
	l.send(&musterv1.Release{Tx: "held", Epoch: 1})
	mustBe(t, l.reserve("next", 8, time.Minute), musterv1.Reply_NO)
	mustBe(t, l.reserve("smaller", 7, time.Minute), musterv1.Reply_RESERVED)
	w.run(held[0])
	l.orphans()
	mustBe(t, l.reserve("last", 1, time.Minute), musterv1.Reply_RESERVED)
}

func TestAnAgentWithoutOrphansFreesThoseOfBefore(t *testing.T) {
	w := newOrphanRig(t)
	w.start()
	l := w.lead(1)
	w.run(w.gpu(0), 7)
	l.orphans(w.gpu(0))
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	tune := w.tune
	w.tune = func(c *agent.Config, d *agent.Deps) { tune(c, d); c.Orphans = agent.OrphansConfig{} }
	w.start()
	l = w.lead(2)
	mustBe(t, l.reserve("all", 8, time.Minute), musterv1.Reply_RESERVED)
}
