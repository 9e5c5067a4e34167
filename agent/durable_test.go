package agent_test

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/journal"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
)

// syncedFS is a journal's folder that knows whether a power cut would lose
// anything.
type syncedFS struct {
	*faults
	written, synced atomic.Int64 // writes so far, and those that the last Sync covered
}

func (f *syncedFS) Open(name string, create bool) (journal.File, error) {
	file, err := f.faults.Open(name, create)
	if err != nil {
		return nil, err
	}
	return &syncedFile{file, f}, nil
}

type syncedFile struct {
	journal.File
	fs *syncedFS
}

func (f *syncedFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(p, at)
	f.fs.written.Add(1)
	return n, err
}

func (f *syncedFile) Sync() error {
	covered := f.fs.written.Load()
	if err := f.File.Sync(); err != nil {
		return err
	}
	f.fs.synced.Store(covered)
	return nil
}

// durable reports whether everything written would outlive a power cut.
func (f *syncedFS) durable() bool { return f.synced.Load() == f.written.Load() }

func newSyncedRig(t *testing.T) (*rig, *syncedFS) {
	r, f := newFaultyRig(t)
	disk := &syncedFS{faults: f}
	r.fs = disk
	return r, disk
}

// TestAnIncarnationIsDurableBeforeAnybodyHearsOfIt: the agent serves nobody
// before New returns.
func TestAnIncarnationIsDurableBeforeAnybodyHearsOfIt(t *testing.T) {
	r, disk := newSyncedRig(t)
	for _, boot := range []string{"boot-1", "boot-2"} {
		r.boot = boot
		before := disk.written.Load()
		a, err := agent.New(r.config())
		if err != nil {
			t.Fatal(err)
		}
		if disk.written.Load() == before {
			t.Errorf("%s: the journal does not tell of the new incarnation", boot)
		}
		if !disk.durable() {
			t.Errorf("%s: a power cut would lose the incarnation", boot)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHeldBecomesDurableByItself: nothing else makes the agent sync here.
func TestHeldBecomesDurableByItself(t *testing.T) {
	r, disk := newSyncedRig(t)
	r.start()
	l := r.lead(1)
	for _, tx := range []string{"a", "b"} {
		promise := l.reserve(tx, 1, time.Minute)
		mustBe(t, promise, musterv1.Reply_RESERVED)
		if disk.durable() {
			t.Fatal("a promise alone is synced: the test would say nothing of HELD")
		}
		r.commit(l, promise)
		mustBe(t, l.outcome(tx), musterv1.Reply_HELD)
		eventually(t, tx+" is synced within Config.HeldSync", disk.durable)
	}
}

// TestAQuarantineIsDurableBeforeItIsTold: an operator who has seen it counts on
// it, so an agent that cannot sync it ends without a message.
func TestAQuarantineIsDurableBeforeItIsTold(t *testing.T) {
	r, l, disk := forgotten(t)
	disk.sync.Store(true)
	r.askToRegister()
	l.endsBeforeItTells(r, "the quarantine", func(m *musterv1.AgentMessage) bool { return m.GetHealth().GetQuarantine() != "" })
}

// TestTheEndOfAQuarantineIsDurableBeforeItIsTold: grants that an operator has
// released would be held again after a power cut.
func TestTheEndOfAQuarantineIsDurableBeforeItIsTold(t *testing.T) {
	r, l, disk := forgotten(t)
	r.askToRegister()
	l.until("the quarantine", func(m *musterv1.AgentMessage) bool { return m.GetHealth().GetQuarantine() != "" })
	disk.sync.Store(true)
	l.send(&musterv1.Reconcile{Epoch: 1, Revision: 2000, Released: []string{"lost"}})
	l.endsBeforeItTells(r, "the end of the quarantine", func(m *musterv1.AgentMessage) bool {
		return m.GetHealth() != nil && m.GetHealth().GetQuarantine() == ""
	})
}

// forgotten is an agent that has registered, and whose grant the store has
// forgotten since: it went back. All that the agent knows is synced.
func forgotten(t *testing.T) (*rig, *leader, *syncedFS) {
	r, disk := newSyncedRig(t)
	r.tune = func(c *agent.Config, _ *agent.Deps) { c.Heartbeat = 5 * time.Millisecond }
	r.start()
	l := r.lead(1)
	taken := r.store.backup()
	r.grant(l, "lost", 2)
	eventually(t, "the grant is synced", disk.durable)
	r.store.restore(taken)
	return r, l, disk
}

// askToRegister has a coordinator ask the agent to register anew.
func (r *rig) askToRegister() {
	r.store.directives <- &schedulerv1.HeartbeatResponse{LeaseDurationSeconds: 40, Directives: []*schedulerv1.SchedulingDirective{{Type: "register"}}}
}

// endsBeforeItTells awaits that the agent ends because it cannot sync, and that
// no earlier message reports a state that could be lost.
func (l *leader) endsBeforeItTells(r *rig, what string, tells func(*musterv1.AgentMessage) bool) {
	l.t.Helper()
	deadline := time.After(patient)
	for {
		select {
		case m := <-l.messages:
			if tells(m) {
				l.t.Fatalf("the leader is told of %s, which a power cut would undo: %v", what, m)
			}
		case err := <-r.ended:
			if !errors.Is(err, journal.ErrPoisoned) || !errors.Is(err, syscall.EIO) {
				l.t.Errorf("the agent ended with %v", err)
			}
			return
		case <-deadline:
			l.t.Fatalf("the agent goes on, and does not tell of %s", what)
		}
	}
}
