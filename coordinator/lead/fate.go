package lead

import (
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
	marked map[*unit]bool
	noted  [2]uint64
	slow   int // verdicts of this round that looked at every node

	judgements uint64 // of units, in the term
}

// fate is the reason why a unit can never run; zero: it can, or that is not known.
type fate struct {
	reason  *resource.Reason // never changed
	message string
}

func (f *fate) code() string {
	if f.reason == nil {
		return ""
	}
	return f.reason.Code
}

// mark takes over a verdict.
func (l *Leader) mark(u *unit, f fate) {
	u.setFate(f)
	if f.message == "" {
		delete(l.fates.marked, u)
		return
	}
	if l.fates.marked == nil {
		l.fates.marked = map[*unit]bool{}
	}
	l.fates.marked[u] = true
}

// addFate adds the verdict on a unit to why it waits, for readers. before is what the
// store has, nil for nothing.
func (l *Leader) addFate(w *record.Waiting, f *fate, before *record.Waiting) {
	if f.message == "" {
		return
	}
	w.Never, w.NeverCode, w.NeverSinceMillis = Clip(f.message), f.code(), l.post.Millis()
	if before != nil && before.NeverCode == w.NeverCode {
		w.NeverSinceMillis = before.NeverSinceMillis
	}
}

// restoreFate takes over the verdict of an earlier leader, which has the same
// code. The first verdict of this leader replaces it.
func (l *Leader) restoreFate(u *unit) {
	w := u.told.waiting
	if w == nil || w.Never == "" {
		return
	}
	l.mark(u, fate{reason: &resource.Reason{Code: w.NeverCode, Detail: w.Never}, message: w.Never})
}
