package coordinator

import (
	"context"
	"time"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// firstReread and lastReread bound the wait between reads that fail.
const (
	firstReread = 10 * time.Millisecond
	lastReread  = time.Second
)

// read reads a key until the store answers, and gives the answer to the loop.
// The revision is the store's at the read.
func (l *leader) read(key string, answer func(kv store.KV, found bool, revision resource.Revision)) {
	go func() {
		for wait := firstReread; ; wait = min(2*wait, lastReread) {
			kv, found, revision, err := l.store.Get(l.ctx, key)
			if err == nil {
				l.post(func() { answer(kv, found, revision) })
				return
			}
			if !pause(l.ctx, wait) {
				return
			}
		}
	}()
}

// pause waits; it reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// settle submits a decision that is not a transaction's, and follows it until
// its outcome is known: after an unknown one key is read, and what is there is
// this decision's work if mine says so. If it is not, the decision is sent
// again, which its compares make harmless. d.done runs in the loop, with Landed
// or Conflict, unless the term ends before.
func (l *leader) settle(d decision, key string, mine func(value []byte, found bool) bool) {
	done := d.done
	doubt := false
	d.done = func(o txn.Outcome, rev resource.Revision, err error) {
		l.post(func() {
			if doubt = doubt || o == txn.Unknown; o == txn.Landed || !doubt {
				done(o, rev, err)
				return
			}
			l.log.Warn("outcome_unknown", "key", key, "outcome", o, "error", err)
			l.read(key, func(kv store.KV, found bool, revision resource.Revision) {
				switch {
				case mine(kv.Value, found):
					if found {
						revision = kv.ModRev
					}
					done(txn.Landed, revision, nil)
				case o == txn.Unknown:
					l.commit.submit(d)
				default:
					done(txn.Conflict, revision, err)
				}
			})
		})
	}
	l.commit.submit(d)
}
