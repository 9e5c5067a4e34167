package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// watched is an agent whose devices' driver is this test.
type watched struct {
	*rig
	known  chan *devices.Inventory // capacity 8: the inventory that each watch began with
	change chan devices.Change
}

func newWatchedRig(t *testing.T) *watched {
	w := &watched{rig: newRig(t), known: make(chan *devices.Inventory, 8), change: make(chan devices.Change)}
	w.tune = func(_ *agent.Config, d *agent.Deps) {
		d.Watch = func(ctx context.Context, known *devices.Inventory, _ []string, emit func(devices.Change)) error {
			w.known <- known
			for {
				select {
				case c := <-w.change:
					emit(c)
				case <-ctx.Done():
					return nil
				}
			}
		}
	}
	return w
}

// tell reports events of one device.
func (w *watched) tell(gpu int, events ...devices.Event) {
	w.t.Helper()
	for i := range events {
		events[i].UUID = w.agent.Host().Inventory().Devices[gpu].UUID
	}
	select {
	case w.change <- devices.Change{Events: events}:
	case <-time.After(patient):
		w.t.Fatal("the agent does not listen to its devices")
	}
}

// settle waits until the agent has taken all that was reported. A report is
// accepted once the agent has received the one before, and has it taken in once
// it receives the next.
func (w *watched) settle() {
	w.t.Helper()
	w.tell(0)
	w.tell(0)
}

// health returns the next news of devices' health, by index.
func (l *leader) health() map[int32]*musterv1.DeviceHealth {
	l.t.Helper()
	m := l.until("health", func(m *musterv1.AgentMessage) bool { return m.GetHealth() != nil })
	byIndex := map[int32]*musterv1.DeviceHealth{}
	for _, d := range m.GetHealth().GetDevices() {
		byIndex[d.GetIndex()] = d
	}
	return byIndex
}

func TestADeadCardTakesNoWorkAndItsSiblingsGoOn(t *testing.T) {
	w := newWatchedRig(t)
	w.start()
	l := w.lead(1)
	held := w.grant(l, "held", 2)
	dead := int(held.GetMembers()[0].GetAssignment().GetGpus()[0].GetIndex())
	w.tell(dead, devices.Event{Kind: devices.EventXID, XID: 79})
	bad := l.health()
	if d := bad[int32(dead)]; len(bad) != 1 || d.GetHealth() != "tainted" || !strings.Contains(d.GetReason(), "XID 79") {
		t.Fatalf("the leader hears %v, want GPU %d tainted by XID 79", bad, dead)
	}
	// The grant that holds the card keeps it, and the other six are still
	// granted.
	mustBe(t, l.reserve("more", 6, time.Minute), musterv1.Reply_RESERVED)
	no := l.reserve("too-much", 1, time.Minute)
	mustBe(t, no, musterv1.Reply_NO)
	l.send(&musterv1.Release{Tx: "held", Epoch: 1})
	mustBe(t, l.outcome("held"), musterv1.Reply_FREED)
	after := l.reserve("after", 2, time.Minute)
	mustBe(t, after, musterv1.Reply_NO)
	if r := after.GetReasons()[0]; r.GetCode() != "Unhealthy" {
		t.Errorf("refused for %v, want Unhealthy", after.GetReasons())
	}
}

func TestHealthAndItsReasonOutliveTheAgent(t *testing.T) {
	w := newWatchedRig(t)
	w.start()
	l := w.lead(1)
	w.tell(3, devices.Event{Kind: devices.EventXID, XID: 79})
	before := l.health()[3]
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	w.start()
	l = w.lead(1)
	l.send(&musterv1.Resync{})
	occupancy := l.until("occupancy", func(m *musterv1.AgentMessage) bool { return m.GetOccupancy() != nil }).GetOccupancy()
	if h := occupancy.GetHealth(); len(h) != 1 || h[0].GetIndex() != 3 || h[0].GetHealth() != "tainted" || h[0].GetReason() != before.GetReason() {
		t.Errorf("after the restart the leader hears %v, before it was %v", h, before)
	}
}

func TestAnApplicationsOwnFaultTaintsNothing(t *testing.T) {
	w := newWatchedRig(t)
	w.start()
	l := w.lead(1)
	w.tell(0, devices.Event{Kind: devices.EventXID, XID: 31}, devices.Event{Kind: devices.EventXID, XID: 43})
	w.tell(1, devices.Event{Kind: devices.EventXID, XID: 79})
	if bad := l.health(); len(bad) != 1 || bad[1] == nil {
		t.Errorf("the leader hears %v, want GPU 1 alone", bad)
	}
}

// TestACardThatAppearsUnderLoad: grants stay on their devices, the leader's
// session ends so that the next begins with the new truth, and the new card
// goes out.
func TestACardThatAppearsUnderLoad(t *testing.T) {
	w := newWatchedRig(t)
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	all := profile.Inventory(node)
	seven := &devices.Inventory{Driver: all.Driver, Devices: all.Devices[:7]}
	for _, row := range all.Links[:7] {
		seven.Links = append(seven.Links, row[:7])
	}
	tune := w.tune
	w.tune = func(c *agent.Config, d *agent.Deps) { tune(c, d); d.Discovered.Inventory = seven }
	w.start()
	if known := <-w.known; len(known.Devices) != 7 {
		t.Fatalf("the watch begins with %d devices, want 7", len(known.Devices))
	}
	l := w.lead(1)
	held := w.grant(l, "held", 7)
	registered := func() (n int) { w.store.set(func(s *store) { n = s.registered }); return n }
	before := registered()
	w.change <- devices.Change{Inventory: all}
	select {
	case <-l.failed:
	case <-time.After(patient):
		t.Fatal("the leader's session goes on with the old host")
	}
	eventually(t, "the node registers with the new host", func() bool { return registered() > before })
	l = w.lead(1)
	if n := len(l.hello.GetHost().GetInventory().GetDevices()); n != 8 {
		t.Fatalf("the new session begins with %d devices, want 8", n)
	}
	again := l.reserve("held", 7, time.Minute)
	mustBe(t, again, musterv1.Reply_HELD)
	if !slices.Equal(uuids(again), uuids(held)) {
		t.Errorf("after the change %v are held, before %v", uuids(again), uuids(held))
	}
	one := l.reserve("new", 1, time.Minute)
	mustBe(t, one, musterv1.Reply_RESERVED)
	if got := uuids(one); len(got) != 1 || got[0] != all.Devices[7].UUID {
		t.Errorf("%v went out, want the new card %s", got, all.Devices[7].UUID)
	}
}
