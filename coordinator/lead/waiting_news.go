package lead

import (
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/pace"
)

// waitingNews are units of which something is to be written.
//
// Invariant: noted has the units of newest and no others.
type waitingNews struct {
	bucket pace.Bucket
	newest []*work.Unit // that an event concerned since the last write, the newest last
	noted  map[*work.Unit]bool
	looked int // position in the order at which the next round goes on
}

// noteWaiting notes that something may have changed about why a unit waits.
func (l *Leader) noteWaiting(u *work.Unit) {
	if l.waiting.noted[u] {
		return
	}
	if l.waiting.noted == nil {
		l.waiting.noted = map[*work.Unit]bool{}
	}
	l.waiting.noted[u] = true
	l.waiting.newest = append(l.waiting.newest, u)
}
