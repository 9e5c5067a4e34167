package lead

import (
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/resource"
)

// fates are the verdicts of the nodes and of the quota trees on what is asked for.
// They are forgotten when a node would offer something else, or a tree changes.
type fates struct {
	offered uint64 // cluster.State.Offered of onNodes
	onNodes map[string]whatif.Fate
	bound   uint64 // quotas.generation of unused
	unused  *quota.Manager
	// marked are the units that can never run; noted is the offer for which they
	// were judged anew.
	marked map[*work.Unit]bool
	noted  [2]uint64
	slow   int // verdicts of this round that looked at every node

	judgements uint64 // of units, in the term
}

// mark takes over a verdict.
func (l *Leader) mark(u *work.Unit, f work.Fate) {
	u.Wait.SetFate(f)
	if f.Message == "" {
		delete(l.fates.marked, u)
		return
	}
	if l.fates.marked == nil {
		l.fates.marked = map[*work.Unit]bool{}
	}
	l.fates.marked[u] = true
}

// addFate adds the verdict on a unit to why it waits, for readers. before is what the
// store has, nil for nothing.
func (l *Leader) addFate(w *record.Waiting, f *work.Fate, before *record.Waiting) {
	if f.Message == "" {
		return
	}
	w.Never, w.NeverCode, w.NeverSinceMillis = Clip(f.Message), f.Code(), l.post.Millis()
	if before != nil && before.NeverCode == w.NeverCode {
		w.NeverSinceMillis = before.NeverSinceMillis
	}
}

// restoreFate takes over the verdict of an earlier leader, which has the same
// code. The first verdict of this leader replaces it.
func (l *Leader) restoreFate(u *work.Unit) {
	w := u.Wait.Told.Waiting
	if w == nil || w.Never == "" {
		return
	}
	l.mark(u, work.Fate{Reason: &resource.Reason{Code: w.NeverCode, Detail: w.Never}, Message: w.Never})
}
