package coordinator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// decision is a set of writes that must land together. done is called once,
// from the committer's goroutines, with a definite answer or Unknown.
//
// Invariant: decisions that are under way at one time write disjoint keys.
type decision struct {
	compares []record.Compare
	ops      []record.Op
	// anyEpoch leaves out the compare of the leader's key: only a fence may.
	anyEpoch bool
	done     func(txn.Outcome, resource.Revision, error)
}

// committer sends decisions to the store. Those that wait while a Txn is under
// way share the next one: one round trip and one fsync serve them all
// (PROTOCOL.md section 4). A shared Txn whose compares fail is taken apart and
// sent one by one, so that each gets its own answer.
type committer struct {
	store  store.KVStore
	held   record.Compare // of the leader's key
	maxOps int
	// deposed is told, once or more, that the leader's key is gone.
	deposed func(error)
	// newest is the newest revision at which a decision has landed.
	newest atomic.Int64
	// barrier has every decision from submit until post has run after its done.
	barrier barrier
	post    func(func())

	mu      sync.Mutex
	waiting []decision
	wake    chan struct{} // capacity 1: something waits
	wg      sync.WaitGroup
}

// newCommitter returns a committer for the term whose leader's key held
// compares. post runs a function after those that decisions' done have posted.
func newCommitter(s store.Store, held record.Compare, deposed func(error), post func(func())) *committer {
	return &committer{store: s, held: held, maxOps: s.MaxTxnOps(), deposed: deposed, post: post, wake: make(chan struct{}, 1)}
}

// inFlight is how many Txns are under way at once: while one is being synced,
// the next already travels. More would share less.
const inFlight = 2

// start runs the committer until ctx ends; decisions that wait then are
// answered Unknown. wait returns when it has ended.
func (c *committer) start(ctx context.Context) { c.wg.Go(func() { c.dispatch(ctx) }) }

func (c *committer) dispatch(ctx context.Context) {
	slots := make(chan struct{}, inFlight)
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			c.giveUp(ctx.Err())
			return
		}
		for c.pending() {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				c.giveUp(ctx.Err())
				return
			}
			batch := c.next()
			c.wg.Go(func() {
				c.commit(ctx, batch)
				<-slots
			})
		}
	}
}

func (c *committer) pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) > 0
}

// giveUp answers what waits; it was never sent, but a later term may find out.
func (c *committer) giveUp(err error) {
	c.mu.Lock()
	rest := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	for _, d := range rest {
		d.done(txn.Unknown, 0, err)
	}
}

func (c *committer) wait() { c.wg.Wait() }

// submit queues a decision; it does not block.
func (c *committer) submit(d decision) {
	id, done := c.barrier.begin(), d.done
	d.done = func(o txn.Outcome, rev resource.Revision, err error) {
		if o == txn.Unknown {
			c.barrier.doubted()
		}
		done(o, rev, err)
		c.post(func() { c.barrier.end(id) })
	}
	c.mu.Lock()
	c.waiting = append(c.waiting, d)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// next takes the longest prefix of the waiting decisions that one Txn holds.
func (c *committer) next() []decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	compares, ops := 1, 0
	for i, d := range c.waiting {
		compares += len(d.compares)
		ops += len(d.ops)
		if i > 0 && (max(compares, ops) > c.maxOps || d.anyEpoch || c.waiting[0].anyEpoch) {
			batch := c.waiting[:i:i]
			c.waiting = c.waiting[i:]
			return batch
		}
	}
	batch := c.waiting
	c.waiting = nil
	return batch
}

// commit sends a batch and answers each of its decisions.
func (c *committer) commit(ctx context.Context, batch []decision) {
	result, err := c.store.Txn(ctx, c.build(batch))
	switch {
	case err != nil:
		outcome := txn.Conflict // definite: nothing was and will be written
		if errors.Is(err, record.ErrUnknownOutcome) || ctx.Err() != nil {
			outcome = txn.Unknown
		} else if len(batch) > 1 {
			c.commitEach(ctx, batch)
			return
		}
		answer := func() {
			for _, d := range batch {
				d.done(outcome, 0, err)
			}
		}
		if errors.Is(err, record.ErrNoSpace) {
			// What is done about it is another Txn, which meets the same.
			c.wg.Go(func() { pause(ctx, lastReread); answer() })
			return
		}
		answer()
	case result.Succeeded:
		c.landed(result.Revision)
		for _, d := range batch {
			d.done(txn.Landed, result.Revision, nil)
		}
	case len(batch) > 1:
		c.commitEach(ctx, batch)
	default:
		outcome := txn.Conflict
		err := c.stillHeld(ctx, batch[0])
		if err != nil { // model: mutant DEPOSED_REFUSES
			outcome = txn.Unknown
		}
		batch[0].done(outcome, result.Revision, err)
	}
}

// landed raises newest.
func (c *committer) landed(rev resource.Revision) {
	for {
		before := c.newest.Load()
		if before >= int64(rev) || c.newest.CompareAndSwap(before, int64(rev)) {
			return
		}
	}
}

// stillHeld looks after a compare that failed whether it was the leader's key
// that has changed. If so the term is over: what would be read and tried again
// is the next leader's to decide, and a client that was refused may have asked
// that one already.
func (c *committer) stillHeld(ctx context.Context, d decision) error {
	if d.anyEpoch {
		return nil
	}
	for wait := firstReread; ; wait = min(2*wait, lastReread) {
		kv, _, _, err := c.store.Get(ctx, c.held.Key)
		switch {
		case err == nil && kv.CreateRev == c.held.Rev:
			return nil
		case err == nil:
			c.deposed(errDeposed)
			return errDeposed
		case !pause(ctx, wait):
			return ctx.Err()
		}
	}
}

func (c *committer) commitEach(ctx context.Context, batch []decision) {
	for i := range batch {
		c.commit(ctx, batch[i:i+1])
	}
}

// build joins a batch; equal compares are sent once.
func (c *committer) build(batch []decision) record.Txn {
	var t record.Txn
	if !batch[0].anyEpoch { // model: mutants NO_EPOCH_COMPARE, SWAP_WITHOUT_EPOCH, CREATE_WITHOUT_EPOCH, COLLECT_WITHOUT_EPOCH, LIMIT_WITHOUT_EPOCH
		t.If = append(t.If, c.held)
	}
	if len(batch) == 1 {
		t.If = append(t.If, batch[0].compares...)
		t.Then = batch[0].ops
		return t
	}
	seen := make(map[record.Compare]bool, 2*len(batch))
	for _, d := range batch {
		for _, compare := range d.compares {
			if !seen[compare] {
				seen[compare] = true
				t.If = append(t.If, compare)
			}
		}
		t.Then = append(t.Then, d.ops...)
	}
	return t
}
