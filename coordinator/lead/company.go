package lead

import (
	"slices"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// beginTogether starts the transactions of placed units that were admitted, or of units
// whose place others have to leave first.
func (l *Leader) beginTogether(units []*work.Unit, d *sched.GangDecision) {
	c := &work.Company{}
	for i, u := range units {
		charges := u.Charges
		if d.Models != nil {
			charges = sched.WithModels(charges, d.Models[i])
		}
		c.Add(work.NewAttempt(u, charges, l.post.Now()))
	}
	first := c.Attempts[0]
	first.Displace(l.work.UnitsOf(d.Victims), false)
	for _, v := range first.Victims {
		l.occupancy.noteUnit(v.Unit)
	}
	take := func(_ *node, h *reservation) { h.setPlacedTaken() }
	if len(d.Victims) > 0 {
		l.post.Info("preempting", "unit", first.Unit.Path, "members", len(units), "victims", first.VictimPaths(), "claims", false)
		take = func(n *node, h *reservation) { n.takeWaiting(h) }
	}
	for i, a := range c.Attempts {
		l.launch(a, d.Plans[i], take)
	}
	l.noteChargedTogether(c)
}

// commitTogether asks for the commit point of all, once each waits for its own.
func (l *Leader) commitTogether(c *work.Company) {
	if c.Over || c.Writing || !c.Are(txn.Committing) {
		return
	}
	joint, ok := l.jointCommit(c)
	if !ok {
		l.leaveTogether(c, func(a *work.Attempt) { l.step(a, txn.CommitAnswered{Outcome: txn.Conflict}) }) // nothing was sent
		return
	}
	c.SetOver()
	l.post.Submit(joint)
}

// jointCommit is one decision with the commits of all. model: mutants GROUP_CUT, GROUP_BELOW_MINIMUM
func (l *Leader) jointCommit(c *work.Company) (post.Decision, bool) {
	var joint post.Decision
	var done []func(txn.Outcome, resource.Revision, error)
	for _, a := range c.Attempts {
		if !l.mayDisplace(a) {
			return joint, false
		}
		d, err := l.commitOf(a)
		if err != nil {
			l.post.Error("commit_not_made", "tx", a.Machine.ID(), "unit", a.Unit.Path, "error", Clip(err.Error()))
			return joint, false
		}
		for _, compare := range d.Compares {
			if !slices.Contains(joint.Compares, compare) {
				joint.Compares = append(joint.Compares, compare)
			}
		}
		for _, op := range d.Ops { // attempts on one node carry the same keys of former holders
			if !slices.ContainsFunc(joint.Ops, func(o record.Op) bool { return o.Key == op.Key }) {
				joint.Ops = append(joint.Ops, op)
			}
		}
		done = append(done, d.Done)
	}
	joint.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		for _, answered := range done {
			answered(o, rev, err)
		}
	}
	return joint, true
}

// evictTogether asks for the Txn that evicts the victims of all, once each attempt
// holds its place behind them.
func (l *Leader) evictTogether(c *work.Company) {
	if c.Over || c.Writing || !c.Are(txn.Clearing) {
		return
	}
	first := c.Attempts[0]
	d, ok := l.evictionsOf(first)
	if !ok {
		l.leaveTogether(c, func(a *work.Attempt) { l.step(a, txn.EvictionsAnswered{Outcome: txn.Conflict}) }) // nothing was sent
		return
	}
	for _, a := range c.Attempts[1:] {
		for _, compare := range l.comparesOfPlace(a) {
			if !slices.Contains(d.Compares, compare) {
				d.Compares = append(d.Compares, compare)
			}
		}
	}
	answered := d.Done
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		answered(o, rev, err)
		for _, a := range c.Attempts[1:] {
			if o == txn.Landed {
				a.SetNoticed(post.MillisOf(first.Noticed))
			}
			l.step(a, txn.EvictionsAnswered{Outcome: o, Revision: rev})
		}
		c.EndWrite()
		for _, a := range c.Attempts {
			l.endCompany(a)
		}
	}
	c.BeginWrite()
	l.post.Submit(d)
}

// endCompany gives up the others where an attempt comes to nothing before the commit
// of all was sent.
func (l *Leader) endCompany(a *work.Attempt) {
	c := a.Company
	if c == nil || c.Over || c.Writing {
		return
	}
	switch a.Machine.State() {
	case txn.Fencing, txn.Reading, txn.Aborted:
	default:
		return
	}
	l.leaveTogether(c, func(o *work.Attempt) {
		if o.Machine == nil {
			return
		}
		switch o.Machine.State() {
		case txn.Reserving, txn.Displacing:
			l.step(o, txn.BudgetSpent{})
		case txn.Clearing:
			l.step(o, txn.EvictionsAnswered{Outcome: txn.Conflict})
		case txn.Committing:
			l.step(o, txn.CommitAnswered{Outcome: txn.Conflict})
		}
	})
}

// leaveTogether ends the company, and then does something with each attempt.
func (l *Leader) leaveTogether(c *work.Company, with func(*work.Attempt)) {
	c.SetOver()
	for _, a := range c.Attempts {
		with(a)
	}
}
