package agent

import (
	"context"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// send hands an item to the owner, waiting while it is busy.
func (o *owner) send(ctx context.Context, it item) error {
	select {
	case <-o.ended:
		return rpc.ErrStopping
	default:
	}
	select {
	case o.inbox <- it:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-o.ended:
		return rpc.ErrStopping
	}
}

// do decides a command and returns its reply once it is on disk.
func (o *owner) do(ctx context.Context, c ledger.Command) (ledger.Reply, error) {
	replies := make(chan ledger.Reply, 1) // the owner never waits for the asker
	if err := o.send(ctx, item{command: c, done: func(r ledger.Reply) { replies <- r }}); err != nil {
		return ledger.Reply{}, err
	}
	select {
	case r := <-replies:
		return r, nil
	case <-ctx.Done():
		return ledger.Reply{}, ctx.Err()
	case <-o.ended:
		return ledger.Reply{}, rpc.ErrStopping
	}
}

// ask runs f on the owner's goroutine and waits for it.
func (o *owner) ask(ctx context.Context, f func(*owner)) error {
	asked := make(chan struct{})
	if err := o.send(ctx, item{query: func(o *owner) { f(o); close(asked) }}); err != nil {
		return err
	}
	select {
	case <-asked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-o.ended:
		return rpc.ErrStopping
	}
}

// rearm sets the timer for the earliest deadline. An overdue task is tried
// again after retryAfter, never at once, for it stays overdue until it is done.
func (o *owner) rearm(group []item) {
	if o.timer == nil {
		return // before run, whose timer fires at once
	}
	ticked := false
	for i := range group {
		if _, ok := group[i].command.(ledger.Tick); ok {
			ticked = true
		}
	}
	if ticked {
		o.retry()
	}
	again := len(o.unresolved)+len(o.deferred) > 0
	if !ticked && !o.changed && !again {
		return
	}
	now := o.agent.deps.Now()
	at, ok := o.ledger.Next()
	retry := now.Add(retryAfter)
	overdue := ok && !at.After(now.Add(time.Millisecond))
	if overdue && (ticked || !o.wakeAt.IsZero()) {
		at = retry
	}
	if again && (!ok || retry.Before(at)) {
		at, ok = retry, true
	}
	if !ok || !o.wakeAt.IsZero() && !at.Before(o.wakeAt) {
		return
	}
	o.wakeAt = at
	o.timer.Reset(at.Sub(now))
}

// retry repeats the tasks that failed before.
func (o *owner) retry() {
	for tx := range o.unresolved {
		o.agent.resolver.want(tx, o.question(tx))
	}
	if len(o.deferred) > 0 {
		o.hurry()
	}
}

// resolve asks for a transaction's record, again and again until it is known.
func (o *owner) resolve(tx resource.TxID) {
	o.unresolved[tx] = true
	if o.agent.resolver != nil {
		o.agent.resolver.want(tx, o.question(tx))
	}
}

// question returns the question about a transaction's record. An undecided one
// may be aborted where its promise is only a promise.
func (o *owner) question(tx resource.TxID) question {
	g, _ := o.ledger.Lookup(tx)
	return question{fence: g.State == grant.Waiting || g.State == grant.Reserved, asked: g.State}
}
