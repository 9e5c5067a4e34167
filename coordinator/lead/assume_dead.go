package lead

import (
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// This file is the leader's half of the assume-dead policy (PROTOCOL.md section
// 5): a node that has opted in and is not heard is fenced, and counts as dead
// once its agent must have stopped what it was granted. It writes what an
// operator's fence writes, under the same compares.

// Between two attempts on one node is at least assumeEvery, or optedOutEvery
// where it has not opted in: it may have registered anew, elsewhere.
const (
	assumeEvery   = 5 * time.Second
	optedOutEvery = time.Minute
)

// assumption is what a leader does about a node that is not heard.
type assumption struct {
	asking bool              // an attempt is under way
	next   time.Time         // the earliest next one
	fence  resource.Revision // that the leader counts from
	since  time.Time         // when this leader has first known of it
}

// dead reports whether a fence has stood for so long that its node counts as
// dead. Each leader counts anew, as it knows nothing of the time before. Its
// clock stands still while its host sleeps: it waits the longer.
func (a *assumption) dead(f *fence, now time.Time) bool {
	if f == nil || f.dead || f.assume == 0 {
		a.fence = 0
		return false
	}
	if f.revision != a.fence {
		a.fence, a.since = f.revision, now
	}
	return now.Sub(a.since) >= shown.AssumedDeadAfter(f.assume)
}

// assumeDead goes on with one node that is not heard: its fence first, then its
// death. Both compare the identity that was read and that its lease is absent.
func (l *Leader) assumeDead(n *node) {
	a := &n.assumption
	dead := a.dead(n.fence, l.post.Now())
	if !n.unheard || n.fence != nil && !dead || a.asking || l.post.Now().Before(a.next) {
		return
	}
	a.asking, a.next = true, l.post.Now().Add(assumeEvery)
	counted := a.fence
	l.post.Read(record.NodeIdentityKey(n.view.ID), func(kv record.KV, found bool, _ resource.Revision) {
		a.asking = false
		identity, err := record.Decode[record.NodeIdentity](kv.Key, kv.Value)
		switch {
		case !found || err != nil || identity.AssumeDeadMillis == 0:
			a.next = l.post.Now().Add(optedOutEvery)
		case dead && kv.ModRev != counted: // it has registered since: the count is over
			l.learn(n, kv)
		default:
			o := api.FenceOptions{ConfirmDead: dead, Reason: assumedFor(identity, dead)}
			l.fenceIncarnation(n, kv, record.KV{}, o, 1, func(status *api.Status) {
				if status != nil { // it came back
					l.post.Debug("not_assumed_dead", "node", n.view.ID, "error", status)
				}
			})
		}
	})
}

// assumedFor is the reason that people are told.
func assumedFor(i record.NodeIdentity, dead bool) string {
	limit := time.Duration(i.AssumeDeadMillis) * time.Millisecond
	if dead {
		return fmt.Sprintf("assume-dead policy: fenced at %s and not heard for %s since", i.FencedAt, shown.AssumedDeadAfter(limit))
	}
	return fmt.Sprintf("assume-dead policy: not heard, its lease is over; its agent stops what runs there after %s without contact", limit)
}
