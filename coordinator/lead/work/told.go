package work

import (
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// Told is the stored reason why a unit waits.
type Told struct {
	Waiting  *record.Waiting   // never changed; nil: the unit was not tried yet
	Revision resource.Revision // of the order key
	At       time.Time         // of this leader's last write
	Writing  bool
}

// Agrees reports whether the code of some evidence equals the stored code.
func (t *Told) Agrees(e *sched.Evidence) bool {
	return e == nil || t.Waiting != nil && t.Waiting.Code == evidenceCode(e)
}

// evidenceCode is the code of evidence.
func evidenceCode(e *sched.Evidence) string {
	if e.Code == sched.OverQueue {
		return shown.QueueFull
	}
	return shown.CodeOf(e.Short != nil)
}
