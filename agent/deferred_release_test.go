package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/devices"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// overtaken is a rig whose grant "v" of all 8 GPUs gets notice for "p", which
// waits for 4 of them; processes run on those that busy chooses. gone awaits
// that v has lost its files.
func overtaken(t *testing.T, busy func(w *watched, preemptor []string) []string) (w *watched, l *leader, uuidsOfP []string) {
	w = newOrphanRig(t)
	w.start()
	l = w.lead(1)
	held := w.grant(l, "v", 8)
	eventually(t, "the file of v", func() bool { return w.hasFile("v") })
	l.send(&musterv1.Reserve{Tx: "p", Unit: "u", Epoch: 1, TtlMillis: 60000, Members: []*musterv1.MemberRequest{want(4)}, After: []string{"v"}})
	waiting := l.reply("p")
	mustBe(t, waiting, musterv1.Reply_WAITING)
	for _, uuid := range busy(w, uuids(waiting)) {
		w.run(uuid, 7)
	}
	w.settle()
	w.store.put("v", musterv1.Record_EVICTING, held.GetMembers())
	l.send(&musterv1.Evict{Tx: "v", Epoch: 1, By: "p"})
	return w, l, uuids(waiting)
}

func (r *rig) hasFile(tx string) bool {
	_, err := os.Stat(filepath.Join(r.dir, "assignments", tx+".json"))
	return err == nil
}

// state asks for all that the agent holds, and returns one grant's state. An
// occupancy that the agent sent by itself before is passed over.
func (l *leader) state(tx string) musterv1.Reply_State {
	l.t.Helper()
	const mark = "mark"
	l.send(&musterv1.Forget{Tx: mark})
	l.reply(mark)
	l.send(&musterv1.Resync{})
	m := l.until("an occupancy", func(m *musterv1.AgentMessage) bool { return m.GetOccupancy() != nil })
	for _, g := range m.GetOccupancy().GetGrants() {
		if g.GetTx() == tx {
			return g.GetState()
		}
	}
	return musterv1.Reply_NONE
}

// becomes awaits a reply with a state.
func (l *leader) becomes(tx string, s musterv1.Reply_State) {
	l.t.Helper()
	l.until(tx+" as "+s.String(), func(m *musterv1.AgentMessage) bool {
		return m.GetReply().GetTx() == tx && m.GetReply().GetState() == s
	})
}

func first(_ *watched, preemptor []string) []string { return preemptor[:1] }

// lingers awaits that v was stopped, and verifies that it has not ended.
func lingers(w *watched, l *leader) {
	w.t.Helper()
	eventually(w.t, "v loses its file", func() bool { return !w.hasFile("v") })
	if v, p := l.state("v"), l.state("p"); v != musterv1.Reply_EVICTING || p != musterv1.Reply_WAITING {
		w.t.Fatalf("something runs on a device of v, and v is %s, p %s; want EVICTING and WAITING", v, p)
	}
}

func TestAPreemptorWaitsUntilNothingRunsOnItsDevices(t *testing.T) {
	w, l, of := overtaken(t, first)
	lingers(w, l)
	w.run(of[0])
	l.becomes("p", musterv1.Reply_RESERVED)
	if v := l.state("v"); v != musterv1.Reply_FREED {
		t.Errorf("v is %s, want FREED", v)
	}
}

func TestOnceNobodyWaitsAVictimEndsAndItsBusyDeviceIsAnOrphan(t *testing.T) {
	w, l, of := overtaken(t, first)
	lingers(w, l)
	l.send(&musterv1.Abort{Tx: "p", Epoch: 1})
	l.becomes("v", musterv1.Reply_FREED)
	l.orphans(of[0])
	mustBe(t, l.reserve("all", 8, time.Minute), musterv1.Reply_NO)
	mustBe(t, l.reserve("others", 7, time.Minute), musterv1.Reply_RESERVED)
}

func TestWhatRunsWhereNobodyWaitsKeepsNoPreemptor(t *testing.T) {
	var stray string
	_, l, _ := overtaken(t, func(w *watched, preemptor []string) []string {
		for i := range 8 {
			if !slices.Contains(preemptor, w.gpu(i)) {
				stray = w.gpu(i)
			}
		}
		return []string{stray}
	})
	l.becomes("p", musterv1.Reply_RESERVED)
	l.send(&musterv1.Resync{})
	l.orphans(stray)
}

func TestAVictimThatIsReleasedLingersToo(t *testing.T) {
	w := newOrphanRig(t)
	w.start()
	l := w.lead(1)
	w.grant(l, "v", 8)
	eventually(t, "the file of v", func() bool { return w.hasFile("v") })
	l.send(&musterv1.Reserve{Tx: "p", Unit: "u", Epoch: 1, TtlMillis: 60000, Members: []*musterv1.MemberRequest{want(8)}, After: []string{"v"}})
	mustBe(t, l.reply("p"), musterv1.Reply_WAITING)
	w.run(w.gpu(3), 7)
	w.settle()
	l.send(&musterv1.Release{Tx: "v", Epoch: 1, GraceMillis: time.Hour.Milliseconds()})
	l.becomes("v", musterv1.Reply_STOPPING)
	eventually(t, "v loses its file", func() bool { return !w.hasFile("v") })
	w.run(w.gpu(3))
	l.becomes("p", musterv1.Reply_RESERVED)
}

func TestAPreemptorsOwnPatienceEndsTheWait(t *testing.T) {
	w := newOrphanRig(t)
	w.start()
	l := w.lead(1)
	w.grant(l, "v", 8)
	l.send(&musterv1.Reserve{Tx: "p", Unit: "u", Epoch: 1, TtlMillis: 500, Members: []*musterv1.MemberRequest{want(8)}, After: []string{"v"}})
	mustBe(t, l.reply("p"), musterv1.Reply_WAITING)
	w.run(w.gpu(0), 7)
	w.settle()
	l.send(&musterv1.Evict{Tx: "v", Epoch: 1, By: "p"})
	l.becomes("v", musterv1.Reply_FREED)
	l.orphans(w.gpu(0))
	if p := l.state("p"); p != musterv1.Reply_NONE {
		t.Errorf("p is %s, want none: its record is ABORTED", p)
	}
}

// TestALingeringVictimOutlivesItsAgent: another process knows that it was
// stopped, gives it no files, and looks before its preemptor gets anything.
func TestALingeringVictimOutlivesItsAgent(t *testing.T) {
	w, l, of := overtaken(t, first)
	lingers(w, l)
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	tune := w.tune
	w.tune = func(c *agent.Config, d *agent.Deps) {
		tune(c, d)
		d.Discovered.Running = []devices.Running{{UUID: of[0], PIDs: []int{7}}}
	}
	w.start()
	if w.hasFile("v") {
		t.Error("a grant that was stopped has its files again")
	}
	l = w.lead(1)
	lingers(w, l)
	w.run(of[0])
	l.becomes("p", musterv1.Reply_RESERVED)
}

func TestALookIsAskedForWhileAVictimLingers(t *testing.T) {
	w := newOrphanRig(t)
	hurry := make(chan struct{}, 1)
	tune := w.tune
	w.tune = func(c *agent.Config, d *agent.Deps) { tune(c, d); d.Hurry = hurry }
	w.start()
	l := w.lead(1)
	w.grant(l, "v", 8)
	l.send(&musterv1.Reserve{Tx: "p", Unit: "u", Epoch: 1, TtlMillis: 60000, Members: []*musterv1.MemberRequest{want(8)}, After: []string{"v"}})
	mustBe(t, l.reply("p"), musterv1.Reply_WAITING)
	w.run(w.gpu(0), 7)
	w.settle()
	l.send(&musterv1.Evict{Tx: "v", Epoch: 1, By: "p"})
	for range 2 {
		select {
		case <-hurry:
		case <-time.After(patient):
			t.Fatal("nobody looks whether it still runs")
		}
	}
}

// TestFilesStayDuringAGrace: the grace is promised to the running processes,
// whose launchers read the files, regardless of the agent's other work
// meanwhile.
func TestFilesStayDuringAGrace(t *testing.T) {
	for name, between := range map[string]func(t *testing.T, r *rig){
		"over a registration": func(t *testing.T, r *rig) {
			registered := func() (n int) { r.store.set(func(s *store) { n = s.registered }); return n }
			for range 2 { // a registration is taken in before the next one begins
				before := registered()
				r.askToRegister()
				eventually(t, "it registers again", func() bool { return registered() > before })
			}
		},
		"over a start": func(t *testing.T, r *rig) {
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			r.start()
			r.lead(2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.tune = func(c *agent.Config, _ *agent.Deps) { c.Heartbeat = 5 * time.Millisecond }
			r.start()
			l := r.lead(1)
			held := r.grant(l, "v", 1)
			r.awaitFiles(".json", "v.json")
			r.store.put("v", musterv1.Record_EVICTING, held.GetMembers())
			l.send(&musterv1.Evict{Tx: "v", Epoch: 1, GraceMillis: time.Hour.Milliseconds(), By: "p"})
			mustBe(t, l.reply("v"), musterv1.Reply_EVICTING)
			between(t, r)
			// A file handed over later shows that the wishes of before are carried out.
			l = r.lead(3)
			r.grant(l, "w", 1)
			r.awaitFiles(".json", "v.json", "w.json")
		})
	}
}
