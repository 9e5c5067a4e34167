package coordinator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/coordinator/lead/batch"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// pendingWrite is a set of writes that must land together. done is called once,
// from the committer's goroutine, with a definite answer or Unknown.
type pendingWrite struct {
	compares []record.Compare
	ops      []record.Op
	// anyEpoch leaves out the compare of the leader's key: only a fence may.
	anyEpoch bool
	// once is batch.Write's.
	once bool
	done func(txn.Outcome, resource.Revision, error)
	// token is submit's: the decision's number at the barrier, which names it at
	// the batcher.
	token uint64
}

// committer carries out the decisions of a batch.Batcher: it sends decisions to
// the store, reads the leader's key, keeps time, and answers.
type committer struct {
	store  store.KVStore
	held   record.Compare // of the leader's key
	maxOps int
	// deposed is called, once or more, when the leader's key is gone.
	deposed func(error)
	// newest is the newest revision at which a decision has landed.
	newest atomic.Int64
	// barrier has every decision from submit until post has run after its done.
	barrier barrier
	post    func(func())
	// writes takes the operations of each Txn before it is sent; nil = nobody needs
	// them.
	writes func([]record.Op)
	wg     sync.WaitGroup
	wake   chan struct{}   // capacity 1: something was submitted
	inputs chan batchInput // from the goroutines that begin started

	// Of run's goroutine alone.
	batcher *batch.Batcher
	dones   map[uint64]func(txn.Outcome, resource.Revision, error) // by token
	begun   int                                                    // goroutines that have an input to hand in
	effects []batch.Effect                                         // scratch

	mu        sync.Mutex
	submitted []pendingWrite
}

// batchInput hands to the batcher something that happened, and returns its effects.
type batchInput func(out []batch.Effect) []batch.Effect

// newCommitter returns a committer for the term whose leader's key held
// compares. post runs a function after those that decisions' done have posted.
func newCommitter(s store.Store, held record.Compare, deposed func(error), post func(func())) *committer {
	maxOps := s.MaxTxnOps()
	return &committer{
		store: s, held: held, maxOps: maxOps, deposed: deposed, post: post, wake: make(chan struct{}, 1), inputs: make(chan batchInput),
		batcher: batch.New(batch.Config{Held: held, MaxOps: maxOps, FirstReread: firstReread, LastReread: lastReread}),
		dones:   map[uint64]func(txn.Outcome, resource.Revision, error){},
	}
}

// start runs the committer until ctx ends; decisions that wait then are
// answered Unknown. wait returns when it has ended.
func (c *committer) start(ctx context.Context) { c.wg.Go(func() { c.run(ctx) }) }

func (c *committer) wait() { c.wg.Wait() }

// submit queues a decision; it does not block.
func (c *committer) submit(d pendingWrite) {
	d.token = c.barrier.begin()
	c.mu.Lock()
	c.submitted = append(c.submitted, d)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run owns the batcher. It ends after ctx, when all that was begun is over.
func (c *committer) run(ctx context.Context) {
	over := ctx.Done()
	for over != nil || c.begun > 0 {
		var answer batchInput
		select {
		case <-c.wake:
		case answer = <-c.inputs:
		case <-over:
		}
		c.take(ctx)
		if over != nil && ctx.Err() != nil { // before the answer, which may be an error because of it
			over = nil
			c.carry(ctx, func(out []batch.Effect) []batch.Effect { return c.batcher.GiveUp(ctx.Err(), out) })
		}
		if answer != nil {
			c.begun--
			c.carry(ctx, answer)
		}
		c.carry(ctx, c.batcher.Next)
	}
}

// take hands the submitted decisions to the batcher.
func (c *committer) take(ctx context.Context) {
	c.mu.Lock()
	submitted := c.submitted
	c.submitted = nil
	c.mu.Unlock()
	for _, d := range submitted {
		c.dones[d.token] = d.done
		w := batch.Write{Token: d.token, Compares: d.compares, Ops: d.ops, AnyEpoch: d.anyEpoch, Once: d.once}
		c.carry(ctx, func(out []batch.Effect) []batch.Effect { return c.batcher.Submit(w, out) })
	}
}

// carry carries out the batcher's requests after an input.
func (c *committer) carry(ctx context.Context, in batchInput) {
	c.effects = in(c.effects[:0])
	for _, e := range c.effects {
		switch e.Kind {
		case batch.Send:
			c.begin(func() batchInput { return c.send(ctx, e) })
		case batch.ReadKey:
			c.begin(func() batchInput { return c.readKey(ctx, e) })
		case batch.Pause:
			c.begin(func() batchInput {
				pause(ctx, e.After)
				return func(out []batch.Effect) []batch.Effect { return c.batcher.PauseOver(e.ID, out) }
			})
		case batch.Answer:
			c.answer(e)
		case batch.Depose:
			c.deposed(e.Err)
		}
	}
	clear(c.effects)
}

// begin runs f in a goroutine, and hands the result to run.
func (c *committer) begin(f func() batchInput) {
	c.begun++
	c.wg.Go(func() { c.inputs <- f() })
}

// send sends a Txn.
func (c *committer) send(ctx context.Context, e batch.Effect) batchInput {
	if c.writes != nil {
		c.writes(e.Txn.Then)
	}
	result, err := c.store.Txn(ctx, e.Txn)
	a := batch.StoreAnswer{Revision: result.Revision, Err: err}
	switch {
	case errors.Is(err, record.ErrUnknownOutcome):
		a.Result = batch.Lost
	case errors.Is(err, record.ErrNoSpace), errors.Is(err, record.ErrReadOnly):
		a.Result = batch.Full
	case err != nil:
		a.Result = batch.Refused
	case !result.Succeeded:
		a.Result = batch.CompareFailed
	}
	return func(out []batch.Effect) []batch.Effect { return c.batcher.Answered(e.ID, a, out) }
}

// readKey looks whether the leader's key is still held.
func (c *committer) readKey(ctx context.Context, e batch.Effect) batchInput {
	key, why := batch.Unread, error(nil)
	if e.After == 0 || pause(ctx, e.After) {
		kv, _, _, err := c.store.Get(ctx, c.held.Key)
		switch {
		case err == nil && kv.CreateRev == c.held.Rev:
			key = batch.Held
		case err == nil:
			key, why = batch.Changed, post.ErrDeposed
		}
	}
	return func(out []batch.Effect) []batch.Effect { return c.batcher.KeyRead(e.ID, key, why, out) }
}

// answer answers a decision.
func (c *committer) answer(e batch.Effect) {
	done := c.dones[e.Token]
	delete(c.dones, e.Token)
	switch e.Outcome {
	case txn.Landed:
		c.landed(e.Revision)
	case txn.Unknown:
		c.barrier.doubted()
	}
	done(e.Outcome, e.Revision, e.Err)
	c.post(func() { c.barrier.end(e.Token) })
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

// firstReread and lastReread bound the wait between reads that fail.
const (
	firstReread = 10 * time.Millisecond
	lastReread  = time.Second
)

// pause waits; it reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
