package agent_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/musterd/muster/agent"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
)

// backup is the store at one moment.
type backup struct {
	revision int64
	records  map[string]*musterv1.Record
}

func (s *store) backup() (b backup) {
	s.set(func(s *store) { b = backup{s.revision, maps.Clone(s.records)} })
	return b
}

func (s *store) restore(b backup) {
	s.set(func(s *store) { s.revision, s.records = b.revision, maps.Clone(b.records) })
}

// isolated is an agent in quarantine: "old" is in the store, "lost" and "more"
// are not any more, "promised" was undecided. later moves its clock.
func isolated(t *testing.T) (r *rig, l *leader, later func(time.Duration)) {
	r = newRig(t)
	var ahead atomic.Int64
	began := time.Now()
	r.tune = func(c *agent.Config, d *agent.Deps) {
		c.Heartbeat = 5 * time.Millisecond
		d.Now = func() time.Time { return time.Unix(1000, 0).Add(time.Since(began) + time.Duration(ahead.Load())) }
		c.MetricsListen, d.Metrics = loopback, prometheus.NewRegistry()
	}
	r.start()
	l = r.lead(900)
	r.grant(l, "old", 1)
	taken := r.store.backup()
	r.grant(l, "lost", 2)
	r.grant(l, "more", 1)
	mustBe(t, l.reserve("promised", 1, time.Minute), musterv1.Reply_RESERVED)
	r.store.restore(taken)
	ahead.Add(int64(11 * time.Second)) // it has registered just now
	eventually(t, "a leader of the restored store is let in", func() bool {
		var err error
		l, err = r.try(r.store.hello(800))
		if err != nil && status.Code(err) != codes.FailedPrecondition {
			t.Fatal(err)
		}
		return err == nil
	})
	return r, l, func(d time.Duration) { ahead.Add(int64(d)) }
}

func states(o *musterv1.Occupancy) map[string]string {
	all := map[string]string{}
	for _, g := range o.GetGrants() {
		all[g.GetTx()] = g.GetState().String()
	}
	return all
}

func TestARestoredStorePutsTheAgentIntoQuarantine(t *testing.T) {
	r, l, later := isolated(t)
	held := map[string]string{"old": "HELD", "lost": "HELD", "more": "HELD", "promised": "RESERVED"}
	for range 2 {
		why := l.hello.GetQuarantine()
		if !strings.Contains(why, "revision 1002") || !strings.Contains(why, "revision 1004") {
			t.Fatalf("the leader is told %q", why)
		}
		if diff := cmp.Diff(held, states(l.hello.GetOccupancy())); diff != "" {
			t.Fatal(diff)
		}
		no := l.reserve("x", 1, time.Minute)
		if no.GetState() != musterv1.Reply_NO || no.GetReasons()[0].GetCode() != "Quarantined" {
			t.Errorf("a reservation is answered %v", no)
		}
		l.send(&musterv1.Release{Tx: "old", Epoch: 800})
		mustBe(t, l.reply("old"), musterv1.Reply_NO)
		later(time.Hour) // its patience is over, and it fences nothing
		l.send(&musterv1.Cordon{Cordoned: true})
		l.until("the cordon", func(m *musterv1.AgentMessage) bool {
			return m.GetHealth().GetCordoned() && m.GetHealth().GetQuarantine() == why
		})
		eventually(t, "a heartbeat with the quarantine and all grants", func() bool {
			b := <-r.store.beats
			c := b.GetConditions()
			return len(b.GetPodStatuses()) == 4 && c[0].GetReason() == "Quarantined" && c[2].GetType() == "Quarantined" &&
				c[2].GetStatus() == "True" && c[2].GetMessage() == why
		})
		if text := fetch(t, "http://"+r.agent.MetricsAddress()+"/metrics"); !strings.Contains(text, `muster_agent_quarantined{node="n1"} 1`) {
			t.Error("the metrics do not tell of the quarantine")
		}
		if r.store.record("promised") != musterv1.Record_STATE_UNSPECIFIED {
			t.Error("a promise was fenced")
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		r.start()
		var err error
		if l, err = r.try(r.store.hello(700)); err != nil { // of any epoch
			t.Fatal(err)
		}
	}
}

func TestAnOperatorEndsTheQuarantine(t *testing.T) {
	r, l, _ := isolated(t)
	for _, g := range l.hello.GetOccupancy().GetGrants() {
		if g.GetTx() == "lost" {
			r.store.put("lost", musterv1.Record_COMMITTED, g.GetMembers())
		}
	}
	r.store.set(func(s *store) { s.revision = 1020 }) // the agent registers as soon as it may
	l.send(&musterv1.Reconcile{Epoch: 800, Revision: 1010, Adopted: []string{"lost"}, Released: []string{"more"}})
	l.until("the end", func(m *musterv1.AgentMessage) bool {
		return m.GetHealth() != nil && m.GetHealth().GetQuarantine() == ""
	})
	l.until("the registration", func(m *musterv1.AgentMessage) bool { return m.GetRegistered() != nil })
	o := l.until("everything", func(m *musterv1.AgentMessage) bool { return m.GetOccupancy() != nil }).GetOccupancy()
	if diff := cmp.Diff(map[string]string{"old": "HELD", "lost": "HELD", "more": "FREED", "promised": "RESERVED"}, states(o)); diff != "" {
		t.Error(diff)
	}
	eventually(t, "the promise is resolved", func() bool { return l.state("promised") == musterv1.Reply_NONE })
	if got := r.store.record("promised"); got != musterv1.Record_ABORTED {
		t.Errorf("the promise's record is %s, want ABORTED", got)
	}
	l.send(&musterv1.Reconcile{Epoch: 800, Revision: 1010, Released: []string{"old"}})
	mustBe(t, l.reserve("next", 5, time.Minute), musterv1.Reply_RESERVED)
	mustBe(t, l.reserve("old", 1, time.Minute), musterv1.Reply_HELD)
	_, err := r.try(r.store.hello(799))
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a leader of before is let in: %v", err)
	}
	// By this a leader knows that it must be elected beyond 800.
	want := []any{&musterv1.Reason{Code: resource.ReasonStaleEpoch, Want: 800, Have: 799, Detail: "epoch 799 is over: this agent has seen epoch 800"}}
	if diff := cmp.Diff(want, status.Convert(err).Details(), protocmp.Transform()); diff != "" {
		t.Errorf("details of the refusal (-want +got):\n%s", diff)
	}
}

func TestAssignmentFilesWaitUntilANewIncarnationHasRegistered(t *testing.T) {
	for name, c := range map[string]struct {
		between func(t *testing.T, r *rig)
		before  []string // while no coordinator answers
	}{
		"the same process again": {func(*testing.T, *rig) {}, []string{"a.json", "b.json"}},
		"a damaged journal: what may run keeps its files, nothing new starts": {func(t *testing.T, r *rig) {
			tear(t, filepath.Join(r.dir, "journal", "journal"))
		}, []string{"b.json"}},
		"a start of the machine: nothing runs": {func(_ *testing.T, r *rig) { r.boot = "boot-2" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.start()
			l := r.lead(1)
			r.grant(l, "a", 1)
			r.grant(l, "b", 1)
			mustBe(t, l.reserve("torn", 1, time.Minute), musterv1.Reply_RESERVED)
			r.awaitFiles(".json", "a.json", "b.json")
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(r.dir, "assignments", "a.json")); err != nil {
				t.Fatal(err)
			}
			c.between(t, r)
			r.store.set(func(s *store) { s.away = true })
			r.start()
			eventually(t, "a registration fails", func() (failed bool) {
				r.store.set(func(s *store) { failed = s.refused > 0 })
				return failed
			})
			if diff := cmp.Diff(c.before, r.files(".json")); diff != "" {
				t.Error(diff)
			}
			r.store.set(func(s *store) { s.away = false })
			r.awaitFiles(".json", "a.json", "b.json")
		})
	}
}

// TestWhatMayHaveEndedMeanwhileIsNotStarted: after a confirmed death the store
// lists nothing of a node, and keeps the records until it has registered.
func TestWhatMayHaveEndedMeanwhileIsNotStarted(t *testing.T) {
	for name, c := range map[string]struct {
		was  musterv1.Record_State
		want []string
	}{
		"it has ended":                           {musterv1.Record_RELEASED, []string{"a.json"}},
		"its commit came after the store's list": {musterv1.Record_COMMITTED, []string{"a.json", "b.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.start()
			l := r.lead(1)
			r.grant(l, "a", 1)
			r.grant(l, "b", 1)
			r.awaitFiles(".json", "a.json", "b.json")
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			r.boot = "boot-2"
			unread := make(chan struct{})
			var b *musterv1.Record
			r.store.set(func(s *store) {
				b, s.unread = s.records["b"], unread
				delete(s.records, "b")
			})
			r.start()
			r.awaitFiles(".json", "a.json")
			eventually(t, "its record is asked for", func() (asked bool) {
				r.store.set(func(s *store) { asked = s.resolved > 0 })
				return asked
			})
			if diff := cmp.Diff([]string{"a.json"}, r.files(".json")); diff != "" {
				t.Error("before its record is read:", diff)
			}
			r.store.set(func(s *store) { b.State, s.records["b"] = c.was, b })
			close(unread)
			r.awaitFiles(".json", c.want...)
		})
	}
}

// TestARegistrationWithoutNewsIsNotTold: each is looked at by the whole queue of
// the leader.
func TestARegistrationWithoutNewsIsNotTold(t *testing.T) {
	r := newRig(t)
	r.tune = func(c *agent.Config, _ *agent.Deps) { c.Heartbeat = 5 * time.Millisecond }
	r.start()
	l := r.lead(1)
	r.grant(l, "a", 1)
	registered := func() (n int) { r.store.set(func(s *store) { n = s.registered }); return n }
	for range 2 { // a registration is taken in before the next one begins
		before := registered()
		r.store.directives <- &schedulerv1.HeartbeatResponse{LeaseDurationSeconds: 40, Directives: []*schedulerv1.SchedulingDirective{{Type: "register"}}}
		eventually(t, "it registers again", func() bool { return registered() > before })
	}
	l.send(&musterv1.Resync{})
	l.until("the answer", func(m *musterv1.AgentMessage) bool {
		if m.GetRegistered() != nil {
			t.Errorf("the leader is told of %v", m)
		}
		return m.GetOccupancy() != nil
	})
}
