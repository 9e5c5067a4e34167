package agent_test

import (
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/follow"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// listener is a follower that keeps the states it has seen.
type listener struct {
	disk *syncedFS

	mu      sync.Mutex
	written int64 // to the journal before the latest group with an event
	early   []string
	states  map[resource.TxID][]grant.State
}

func (l *listener) After(g follow.Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, events := l.disk.written.Load(), false
	for _, c := range g.Changes {
		events = events || c.Event != nil
		var tx resource.TxID
		switch e := c.Event.(type) {
		case ledger.Granted:
			tx = e.Grant.Tx
		case ledger.Committed:
			tx = e.Tx
		case ledger.Buried:
			tx = e.Tx
		}
		if held, ok := g.Ledger.Lookup(tx); ok {
			l.states[tx] = append(l.states[tx], held.State)
		}
	}
	if events && now == l.written {
		l.early = append(l.early, "a group with events came before the journal was written")
	}
	l.written = now
}

// last is the state that the follower has seen last, and the number of states.
func (l *listener) last(tx resource.TxID) (grant.State, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.states[tx]); n > 0 {
		return l.states[tx][n-1], n
	}
	return grant.None, 0
}

func TestFollowersGetEachGroupAfterTheJournalAndBeforeTheAnswers(t *testing.T) {
	r, disk := newSyncedRig(t)
	f := &listener{disk: disk, states: map[resource.TxID][]grant.State{}}
	r.tune = func(_ *agent.Config, d *agent.Deps) { d.Followers = []follow.Follower{f} }
	r.start()
	l := r.lead(1)
	seen := func(want grant.State, answer *musterv1.Reply) {
		t.Helper()
		if got, _ := f.last("a"); got != want {
			t.Errorf("the answer %s was here when the follower had seen %s, want %s", answer.GetState(), got, want)
		}
	}
	f.mu.Lock()
	f.written = disk.written.Load()
	f.mu.Unlock()
	seen(grant.Reserved, l.reserve("a", 1, time.Minute))
	l.send(&musterv1.Commit{Tx: "a", Epoch: 1, Revision: 20})
	seen(grant.Held, l.outcome("a"))
	l.send(&musterv1.Release{Tx: "a", Epoch: 1})
	seen(grant.Tombstone, l.outcome("a"))
	if len(f.early) > 0 {
		t.Error(f.early)
	}
	if _, n := f.last("a"); n != 3 {
		t.Errorf("%d changes of the grant, want granted, committed, buried", n)
	}
}
