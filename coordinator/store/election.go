package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/level"
	"github.com/musterd/muster/resource"
)

// Leader is a candidate for leadership, as the store sees it: the present
// leader is the one with the smallest epoch.
type Leader struct {
	Address record.LeaderAddress
	Epoch   resource.Epoch
	Key     string
}

// Candidates reads keys below record.LeaderPrefix: the leader, then the others
// in the order in which they will lead.
func Candidates(kvs []record.KV) ([]Leader, error) {
	candidates := make([]Leader, 0, len(kvs))
	for _, kv := range kvs {
		address, err := record.Decode[record.LeaderAddress](kv.Key, kv.Value)
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, Leader{Address: address, Epoch: resource.Epoch(kv.CreateRev), Key: kv.Key})
	}
	slices.SortFunc(candidates, func(a, b Leader) int { return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Key, b.Key)) })
	return candidates, nil
}

// Leadership is one term of office. It ends by Resign or by being lost; either
// closes Done. One goroutine renews it until then.
type Leadership struct {
	// Epoch is the create revision of Key: greater than that of any leader
	// before.
	Epoch resource.Epoch
	Key   string
	// Elected is a revision at which no earlier candidate was left: whatever a
	// leader before wrote was written by then.
	Elected resource.Revision

	candidate *Candidate
	store     Store
	lease     Lease
	stop      context.CancelFunc
	done      chan struct{}

	mu      sync.Mutex
	err     error   // why it ended; set before done closes
	renewed instant // when the last renewal that was answered was sent
}

// Candidate campaigns for one process, one campaign after the other. Each begins
// once the term before has ended.
type Candidate struct {
	store   Store
	prefix  string // of the candidates' keys
	address record.LeaderAddress
	ttl     time.Duration
	known   level.Level // written beside the candidacy for the leader's office

	mu sync.Mutex
	// leases are those of campaigns and terms that may not have been given back.
	leases map[record.LeaseID]bool
}

// NewCandidate returns a candidate that serves at an address. ttl is the time of
// its leases.
func NewCandidate(s Store, address record.LeaderAddress, ttl time.Duration) *Candidate {
	return NewCandidateFor(s, record.LeaderPrefix, address, ttl)
}

// NewCandidateFor is NewCandidate for another office than the leader's: candidates
// below one prefix campaign against each other.
func NewCandidateFor(s Store, prefix string, address record.LeaderAddress, ttl time.Duration) *Candidate {
	return &Candidate{store: s, prefix: prefix, address: address, ttl: ttl, leases: map[record.LeaseID]bool{}}
}

// Knowing returns c, which publishes the newest feature level known to the process beside
// each candidacy for the leader's office. Knowing precedes the first campaign.
func (c *Candidate) Knowing(newest level.Level) *Candidate {
	c.known = newest
	return c
}

// Campaign waits until this candidate leads, or ctx ends. Candidates lead in
// the order in which they came. The lease behind the candidacy is renewed by
// this process alone; the term counts as lost once half of it has passed, by
// this process's monotonic clock, since the last renewal was sent.
//
// What this process could not give back while the store was away is given back
// first: a store that returns prolongs all leases, and everybody would wait for
// keys of terms that have ended.
func (c *Candidate) Campaign(ctx context.Context) (*Leadership, error) {
	s, ttl := c.store, c.ttl
	value, err := record.Encode(c.address)
	if err != nil {
		return nil, err
	}
	var term []record.Op
	if c.prefix == record.LeaderPrefix { // the epoch is the create revision of both keys
		mark, err := record.PutRecord(record.TermKey(rand.Text()), record.Term{ID: c.address.ID})
		if err != nil {
			return nil, err
		}
		term = append(term, mark)
	}
	if err := c.giveBack(ctx); err != nil {
		return nil, fmt.Errorf("campaign for leadership: %w", err)
	}
	granted := instantNow()
	lease, err := s.Grant(ctx, ttl)
	if err != nil {
		return nil, fmt.Errorf("campaign for leadership: grant a lease of %v: %w", ttl, err)
	}
	c.mu.Lock()
	c.leases[lease.ID] = true
	c.mu.Unlock()
	l := &Leadership{candidate: c, store: s, lease: lease, renewed: granted, Key: record.CandidateKey(c.prefix, lease.ID), done: make(chan struct{})}
	if c.known > 0 && c.prefix == record.LeaderPrefix {
		term = append(term, record.PutLeased(record.CandidateLevelKey(lease.ID), record.MustEncode(record.KnownLevel{Level: c.known}), lease.ID))
	}
	result, err := s.Txn(ctx, record.Txn{If: []record.Compare{record.Absent(l.Key)}, Then: append(term, record.PutLeased(l.Key, value, lease.ID))})
	if err == nil && !result.Succeeded {
		err = errors.New("its key exists already")
	}
	if err != nil {
		l.revoke(ctx)
		return nil, fmt.Errorf("campaign for leadership: write %s: %w", l.Key, err)
	}
	l.Epoch = resource.Epoch(result.Revision)
	var keep context.Context
	keep, l.stop = context.WithCancel(context.Background())
	go l.keep(keep)
	if err := l.await(ctx); err != nil {
		l.stop()
		<-l.done
		l.revoke(ctx)
		return nil, fmt.Errorf("campaign for leadership as %s: %w", l.Key, err)
	}
	if c.prefix == record.LeaderPrefix {
		l.forgetTerms(ctx)
	}
	return l, nil
}

// KeptTerms is how many of the newest terms the store keeps.
const KeptTerms = 256

// forgetTerms deletes the keys of the oldest terms. After a failure the next leader
// deletes them.
func (l *Leadership) forgetTerms(ctx context.Context) {
	terms, _, err := l.store.Range(ctx, record.TermsPrefix, RangeOptions{})
	if err != nil || len(terms) <= KeptTerms {
		return
	}
	slices.SortFunc(terms, func(a, b record.KV) int {
		return cmp.Or(cmp.Compare(a.CreateRev, b.CreateRev), cmp.Compare(a.Key, b.Key))
	})
	t := record.Txn{If: []record.Compare{l.Held()}}
	for _, kv := range terms[:min(len(terms)-KeptTerms, l.store.MaxTxnOps()/2)] {
		t.Then = append(t.Then, record.Delete(kv.Key))
	}
	_, _ = l.store.Txn(ctx, t)
}

// Held is the compare that every Txn of this leader carries: it fails from the
// moment on at which another leader can be elected (PROTOCOL.md, I12).
func (l *Leadership) Held() record.Compare {
	return record.CreateRevIs(l.Key, resource.Revision(l.Epoch))
}

// Done closes when the term has ended. Stop acting then.
func (l *Leadership) Done() <-chan struct{} { return l.done }

// Err says why the term ended; nil before it has, or after Resign.
func (l *Leadership) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Holds reports whether the term goes on by this process' clocks, now. A
// process that was stopped for a while finds it false before any timer of its
// own has fired.
func (l *Leadership) Holds() bool {
	select {
	case <-l.done:
		return false
	default:
		return l.left() > 0
	}
}

// left is how much of half the lease is left.
func (l *Leadership) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease.TTL/2 - l.renewed.since()
}

// End ends a term that the caller has found to be lost; why becomes Err.
func (l *Leadership) End(why error) {
	l.lost(why)
	l.stop()
}

// Resign ends the term, so that the next candidate leads at once. Should the
// store be out of reach, the lease ends it.
func (l *Leadership) Resign(ctx context.Context) error {
	l.stop()
	<-l.done
	if err := l.candidate.revoke(ctx, l.lease.ID); err != nil {
		return fmt.Errorf("resign leadership %s: %w", l.Key, err)
	}
	return nil
}

// revoke gives a lease back, and with it the key.
func (c *Candidate) revoke(ctx context.Context, id record.LeaseID) error {
	if err := c.store.Revoke(ctx, id); err != nil && !errors.Is(err, record.ErrLeaseGone) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.leases, id)
	return nil
}

// giveBack revokes what is left of earlier campaigns and terms.
func (c *Candidate) giveBack(ctx context.Context) error {
	c.mu.Lock()
	left := slices.Sorted(maps.Keys(c.leases))
	c.mu.Unlock()
	for _, id := range left {
		if err := c.revoke(ctx, id); err != nil {
			return fmt.Errorf("give back the lease %016x of an earlier term: %w", uint64(id), err)
		}
	}
	return nil
}

// await returns once no candidate that came earlier is left.
func (l *Leadership) await(ctx context.Context) error {
	for {
		candidates, rev, err := l.store.Range(ctx, l.candidate.prefix, RangeOptions{})
		if err != nil {
			return err
		}
		// The nearest one ahead: watching it alone avoids a herd at each change.
		var ahead record.KV
		own := false
		for _, kv := range candidates {
			own = own || kv.Key == l.Key
			if kv.CreateRev < resource.Revision(l.Epoch) && kv.CreateRev > ahead.CreateRev {
				ahead = kv
			}
		}
		if !own {
			return errors.New("its key was deleted while waiting")
		}
		if ahead.Key == "" {
			l.Elected = rev
			return nil
		}
		if err := l.awaitDelete(ctx, ahead.Key, rev+1); err != nil {
			return err
		}
	}
}

func (l *Leadership) awaitDelete(ctx context.Context, key string, from resource.Revision) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := l.store.Watch(ctx, key, WatchOptions{From: from})
	for {
		select {
		case b, open := <-events:
			if !open && ctx.Err() == nil {
				return ErrClosed
			}
			if !open {
				return ctx.Err()
			}
			var compacted *record.CompactedError
			if errors.As(b.Err, &compacted) {
				return nil // the caller reads anew
			}
			if b.Err != nil {
				return b.Err
			}
			if deleted(b, key) {
				return nil
			}
		case <-l.done:
			return l.Err()
		}
	}
}

func deleted(b record.Batch, key string) bool {
	for i := range b.Events {
		if b.Events[i].Type == record.EventDelete && b.Events[i].KV.Key == key {
			return true
		}
	}
	return false
}

// keep renews the lease until ctx ends, half the lease has passed without an
// answer, or the key is gone.
func (l *Leadership) keep(ctx context.Context) {
	defer close(l.done)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	half := l.lease.TTL / 2
	gone := l.store.Watch(ctx, l.Key, WatchOptions{From: resource.Revision(l.Epoch) + 1})
	timer := time.NewTimer(half / 4)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case b, open := <-gone:
			if !open || b.Err != nil {
				gone = nil // the lease alone decides from here on
				continue
			}
			if deleted(b, l.Key) {
				l.lost(fmt.Errorf("leadership %s lost: its key was deleted at revision %d", l.Key, b.Revision))
				return
			}
		case <-timer.C:
			sent := instantNow()
			attempt, release := context.WithTimeout(ctx, l.left())
			err := l.store.KeepAlive(attempt, l.lease.ID)
			release()
			late := l.left() <= 0
			switch {
			case ctx.Err() != nil:
				return
			case errors.Is(err, record.ErrLeaseGone), errors.Is(err, ErrClosed), late:
				l.notRenewed(err)
				return
			case err == nil:
				l.mu.Lock()
				l.renewed = sent
				l.mu.Unlock()
			}
			timer.Reset(min(half/4, max(0, l.left())))
		}
	}
}

// notRenewed ends a term whose time is over, or whose lease is gone. A renewal
// that was answered too late does not bring it back: who asked Holds in between
// was told that it is over.
func (l *Leadership) notRenewed(err error) {
	if err == nil {
		err = errors.New("the answer came too late")
	}
	l.mu.Lock()
	ago := l.renewed.since().Round(time.Millisecond)
	l.mu.Unlock()
	l.lost(fmt.Errorf("leadership %s lost: lease of %v not renewed for %v: %w", l.Key, l.lease.TTL, ago, err))
}

func (l *Leadership) lost(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

// revoke gives the lease back after a failed campaign, even if the campaign's
// ctx has ended; should that fail too, the next campaign does, or the lease ends
// by itself.
func (l *Leadership) revoke(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(l.lease.TTL, revokeWithin))
	defer cancel()
	_ = l.candidate.revoke(ctx, l.lease.ID)
}

// revokeWithin bounds the wait for a store that is probably away.
const revokeWithin = time.Second
