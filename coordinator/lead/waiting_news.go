package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/pace"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// waitingNews are units of which something is to be written.
//
// Invariant: noted has the units of newest and no others.
type waitingNews struct {
	bucket pace.Bucket
	newest []*unit // that an event concerned since the last write, the newest last
	noted  map[*unit]bool
	looked int // position in the order at which the next round goes on
}

// told is why a unit waits as the store has it.
type told struct {
	waiting  *record.Waiting   // never changed; nil: the unit was not tried yet
	revision resource.Revision // of the order key
	at       time.Time         // when this leader wrote it last
	writing  bool
}

// agrees reports whether the code of some evidence is the one in the store.
func (t *told) agrees(e *sched.Evidence) bool {
	return e == nil || t.waiting != nil && t.waiting.Code == evidenceCode(e)
}

// evidenceCode is the code of evidence.
func evidenceCode(e *sched.Evidence) string {
	if e.Code == sched.OverQueue {
		return shown.QueueFull
	}
	return shown.CodeOf(e.Short != nil)
}

// noteWaiting notes that something may have changed about why a unit waits.
func (l *Leader) noteWaiting(u *unit) {
	if l.waiting.noted[u] {
		return
	}
	if l.waiting.noted == nil {
		l.waiting.noted = map[*unit]bool{}
	}
	l.waiting.noted[u] = true
	l.waiting.newest = append(l.waiting.newest, u)
}
