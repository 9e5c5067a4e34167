package lead

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/coordinator/why"
)

// This file judges whether units can ever run on the registered nodes and within the
// quotas, and refuses new work that cannot, where the rules say so. Other such work
// waits: its client gets a warning, and its place in the order says why for readers.

// Policies for work that can never run.
const (
	unsatisfiableWaits    = "wait"
	unsatisfiableRejected = "reject"
)

// mostFates bounds the verdicts that are kept, and slowFates the verdicts of one round
// of writeWaiting that look at every node.
const (
	mostFates = 4096
	slowFates = 20
)

// judgeFate judges anew whether a unit can ever run: in one of its forms, whichever that
// is. Unless a form can run, the verdict stays as it was while the hosts of some nodes are
// unknown, and when too many units are judged at a time.
func (l *Leader) judgeFate(u *work.Unit) {
	if u.Life.Gone() || u.Life.EndAsked() || !u.Waiting() || u.Attempt != nil {
		return
	}
	l.fates.judgements++
	var verdict work.Fate // of the first form that can never run
	judged, can := true, false
	l.eachForm(u, func() bool {
		f, known := l.fateOfForm(u)
		judged = judged && known
		if can = known && f.Message == ""; !can && verdict.Message == "" {
			verdict = f
		}
		return !can
	})
	switch {
	case can:
		l.mark(u, work.Fate{})
	case judged:
		l.mark(u, verdict)
	}
}

// fateOfForm judges the form that a unit has; unknown: the verdict stays as it was.
func (l *Leader) fateOfForm(u *work.Unit) (verdict work.Fate, known bool) {
	f, known := l.fateOnNodes(u)
	if !known {
		return work.Fate{}, false
	}
	of := l.asked(u)
	var never []whatif.Bound
	if f.Bound != nil {
		never = append(never, *f.Bound)
	}
	w := l.whatifWorld()
	never = append(never, w.NeverByLimits(of)...)
	var unused *quota.Manager
	if len(of.Charges) > 1 {
		unused = l.unusedTrees()
		never = append(never, w.NeverByTrees(of, unused)...)
	}
	if len(never) == 0 {
		never = w.NeverByModels(of, unused)
	}
	if len(never) > 0 {
		o := why.OutlookOf(never, false)
		return work.Fate{Reason: o.Reason, Message: o.Message}, true
	}
	return work.Fate{}, !f.Unseen
}

// whatifWorld is the leader's own state, which questions of this file only read.
func (l *Leader) whatifWorld() *whatif.World { return &whatif.World{World: *l.world()} }

// fateOnNodes is the verdict of the nodes, and whether there was time for one.
func (l *Leader) fateOnNodes(u *work.Unit) (f whatif.Fate, known bool) {
	k := &l.fates
	if k.onNodes == nil || k.offered != l.state.Offered() || len(k.onNodes) >= mostFates {
		k.offered, k.onNodes = l.state.Offered(), map[string]whatif.Fate{}
	}
	if f, known = k.onNodes[u.Shape]; known {
		return f, true
	}
	if k.slow >= slowFates {
		return f, false
	}
	f = l.whatifWorld().OnNodes(&whatif.Unit{Unit: *u.Wanted()})
	if f.Bound != nil || f.Unseen {
		k.slow++
	}
	k.onNodes[u.Shape] = f
	return f, true
}

// unusedTrees are the quota trees as they are where nobody is charged.
func (l *Leader) unusedTrees() *quota.Manager {
	k := &l.fates
	if k.unused == nil || k.bound != l.quotas.Generation() {
		var err error
		k.unused, err = l.quotas.Trees().Unused()
		must(err)
		k.bound = l.quotas.Generation()
	}
	return k.unused
}

// noteFates has the units that can never run judged again after a change of the nodes
// or of the quotas, and begins a round of verdicts.
func (l *Leader) noteFates() {
	k := &l.fates
	k.slow = 0
	now := [2]uint64{l.state.Offered(), l.quotas.Generation()}
	if k.noted == now {
		return
	}
	k.noted = now
	for _, u := range slices.SortedFunc(maps.Keys(k.marked), func(a, b *work.Unit) int { return strings.Compare(a.Path, b.Path) }) {
		if u.Life.Gone() || !u.Waiting() {
			delete(k.marked, u)
			continue
		}
		l.noteWaiting(u)
	}
}

// unsatisfiable refuses a new unit that can never run, where the rule for its
// namespace rejects such work: the namespace's own, else its tenant's, else the
// configuration's. Elsewhere the unit waits, and is marked: a node or a quota may
// come.
func (l *Leader) unsatisfiable(u *work.Unit) *api.Status {
	l.fates.slow = 0
	l.judgeFate(u)
	if u.Wait.Fate.Message == "" {
		return nil
	}
	policy, whose := l.unsatisfiableIn(u.Record.Namespace)
	if policy != unsatisfiableRejected {
		return nil
	}
	l.removeConsumer(u)
	delete(l.fates.marked, u)
	status := api.Errorf(422, "%s %s", u.Wait.Fate.Message, whose)
	status.Details = append(status.Details, *u.Wait.Fate.Reason)
	return status
}

// unsatisfiableIn is the policy for work of a namespace that can never run, and a
// sentence that says whose policy that is.
func (l *Leader) unsatisfiableIn(namespace string) (policy, whose string) {
	n := l.namespace(namespace)
	if n.Unsatisfiable != "" {
		return n.Unsatisfiable, "Namespace " + namespace + " rejects work that can never run (spec.unsatisfiable)"
	}
	if t := l.objects.Tenants.Get(string(n.Tenant)); t != nil && t.Object.Spec.Unsatisfiable != "" {
		return t.Object.Spec.Unsatisfiable, "Tenant " + string(n.Tenant) + " rejects work that can never run (spec.unsatisfiable)"
	}
	if l.rules.RejectUnsatisfiable {
		return unsatisfiableRejected, "This cluster rejects work that can never run (unsatisfiable in the coordinators' configuration)"
	}
	return unsatisfiableWaits, ""
}
