package access_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/access"
)

// peers are three coordinators of a test: c1 is the one that asks.
type peers struct {
	mu     sync.Mutex
	at     map[string]int64 // the revision that each has followed to
	listed []string         // by the store
	away   map[string]bool  // those that do not answer
	asked  map[string]int
	moved  chan struct{} // closed at the next change of at
}

func newPeers(at int64) *peers {
	return &peers{
		at: map[string]int64{"c1": at, "c2": at, "c3": at}, listed: []string{"c1", "c2", "c3"}, away: map[string]bool{}, asked: map[string]int{}, moved: make(chan struct{}),
	}
}

func (p *peers) Self() api.Coordinator { return api.Coordinator{ID: "c1", REST: "c1"} }

func (p *peers) Candidates() []api.Coordinator {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []api.Coordinator
	for _, id := range p.listed {
		all = append(all, api.Coordinator{ID: id, REST: id})
	}
	return all
}

func (p *peers) reach(ctx context.Context, revision int64) error {
	for {
		p.mu.Lock()
		there, moved := p.at["c1"] >= revision, p.moved
		p.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *peers) ask(_ context.Context, address string) (api.Coordinator, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[address]++
	if p.away[address] {
		return api.Coordinator{}, errors.New("no answer")
	}
	return api.Coordinator{ID: address, Revision: p.at[address]}, nil
}

// after does something to the coordinators later.
func (p *peers) after(d time.Duration, change func()) {
	time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		change()
		close(p.moved)
		p.moved = make(chan struct{})
	})
}

// A change is acknowledged when every live coordinator has applied its revision, or after
// 5 s with the names of the others.
func TestAChangeIsAcknowledgedOnceAllHaveFollowed(t *testing.T) {
	for name, c := range map[string]struct {
		set     func(p *peers)
		took    time.Duration // to within one look
		missing []string
	}{
		"all have followed already":          {func(*peers) {}, 0, nil},
		"this coordinator is behind for 1 s": {func(p *peers) { p.at["c1"] = 6; p.after(time.Second, func() { p.at["c1"] = 7 }) }, time.Second, nil},
		"another one is behind for 2 s":      {func(p *peers) { p.at["c3"] = 6; p.after(2*time.Second, func() { p.at["c3"] = 7 }) }, 2 * time.Second, nil},
		"another one is further":             {func(p *peers) { p.at["c2"] = 100 }, 0, nil},
		"another one never follows":          {func(p *peers) { p.at["c3"] = 6 }, 5 * time.Second, []string{"c3"}},
		"this coordinator never follows":     {func(p *peers) { p.at["c1"] = 6 }, 5 * time.Second, []string{"c1"}},
		"nobody follows":                     {func(p *peers) { p.at = map[string]int64{} }, 5 * time.Second, []string{"c1", "c2", "c3"}},
		"one does not answer":                {func(p *peers) { p.away["c2"] = true }, 5 * time.Second, []string{"c2"}},
		"one does not answer for 1 s":        {func(p *peers) { p.away["c2"] = true; p.after(time.Second, func() { p.away["c2"] = false }) }, time.Second, nil},
		"one dies, and its lease ends in 3 s": {func(p *peers) {
			p.away["c2"] = true
			p.after(3*time.Second, func() { p.listed = []string{"c1", "c3"} })
		}, 3 * time.Second, nil},
		"one that is not listed is not asked": {func(p *peers) { p.listed = []string{"c1", "c2"}; p.at["c3"] = 0 }, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeers(7)
				c.set(p)
				began := time.Now()
				// The client goes away at once: others rely on the wait.
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				missing := access.Peers{Roster: p, Reach: p.reach, Ask: p.ask}.Settled(ctx, 7)
				if took := time.Since(began); took < c.took || took > c.took+50*time.Millisecond || !slices.Equal(missing, c.missing) {
					t.Errorf("acknowledged after %v without %v, want %v without %v", took, missing, c.took, c.missing)
				}
			})
		})
	}
}
