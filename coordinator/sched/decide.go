package sched

import (
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// Decision is the outcome for a unit that is tried. The World is afterwards as the
// decision says: see Decide.
type Decision struct {
	Action Action
	// Plan is where the members go, of Start and Preempt.
	Plan []place.Choice
	// Models are the GPUs of Plan by the names that quotas count them under, of a unit
	// whose request names no model. Its transaction is charged these, too.
	Models resource.Vector
	// Victims are the units that give way, of Preempt: those that quota names
	// first. Claims: quota names some.
	Victims []string
	Claims  bool
	// Evidence is why the unit waits, of Wait.
	Evidence *Evidence
	// Yields is a unit that was about to displace others and has to give that up,
	// because this unit comes first; "" for none.
	Yields string
	// Until is the time from which on quota may decide otherwise though nothing
	// else has happened, zero for never.
	Until time.Time

	standing *Standing // of the unit, where it looks for victims
}

// Decide decides the outcome for a unit now: it is admitted or not; placed, or
// nominated for a place that others have to leave, or it waits. On Start the
// members' assignments are taken from the State and the unit is charged to its
// trees; on Preempt without claims it is charged; else nothing has changed.
func (w *World) Decide(u *Unit) Decision {
	short, until := w.Admit(u)
	d := Decision{Until: until, Evidence: &Evidence{Code: NoPlace, Short: short, Trees: TreesOf(u.Charges)}}
	decided := false
	switch {
	case short == nil:
		decided = w.start(u, &d)
	case short.Victims != nil:
		d.Evidence.Code = Claim
		decided = w.mayClaim(u, &d) && w.claim(u, &d)
	case short.Limits != nil:
		d.Evidence.Code = OverLimit
	default:
		d.Evidence.Code = OverTree
	}
	if decided {
		d.Evidence = nil
	}
	return d
}

// place places a unit that was admitted, or reports that there is no place now.
func (w *World) place(u *Unit, d *Decision) bool {
	demand := u.Demand
	demand.Avoid = u.Avoid
	if s := demand.Subject; s != nil && (s.Relations != nil || w.State.Relates(s.Namespace)) {
		w.occupied()
	}
	mark := w.State.Checkpoint()
	plan, ok := place.Place(w.State, demand)
	if ok {
		d.Evidence.Wide = w.TooWide(plan)
		ok = d.Evidence.Wide == ""
	}
	if !ok {
		w.State.Rollback(mark)
		return false
	}
	w.State.Keep(mark)
	d.Action, d.Plan = Start, plan
	return true
}

// CommitOps is the most operations of a commit beside those for each node.
const CommitOps = 6

// TooWide says why no transaction can commit a plan, "" where one can. A unit may
// have come when there were fewer nodes.
func (w *World) TooWide(plan []place.Choice) string {
	nodes := map[resource.NodeID]bool{}
	for _, m := range plan {
		nodes[m.Node.ID] = true
	}
	ops := len(nodes) + CommitOps
	if ops <= w.MaxOps {
		return ""
	}
	return fmt.Sprintf("it fits on %d nodes, but to commit that takes %d operations, and the store takes %d in one transaction; raise etcd's --max-txn-ops, or submit it with fewer members",
		len(nodes), ops, w.MaxOps)
}
