package lead

import (
	"slices"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// company is the attempts of units that start together: one Txn commits all of them,
// or none (I17). Each attempt reserves by itself, and waits for the others before each
// Txn of an undecided transaction. Where one comes to nothing, all do.
type company struct {
	// attempts begins with the one that has the victims, if there are any.
	attempts []*attempt
	// writing: a Txn of all is under way. over: each attempt goes on by itself.
	writing, over bool
}

// beginTogether starts the transactions of placed units that were admitted, or of units
// whose place others have to leave first.
func (l *Leader) beginTogether(units []*unit, d *sched.GangDecision) {
	c := &company{}
	for i, u := range units {
		charges := u.charges
		if d.Models != nil {
			charges = sched.WithModels(charges, d.Models[i])
		}
		c.add(newAttempt(u, charges, l.post.Now()))
	}
	first := c.attempts[0]
	first.displace(l.work.unitsOf(d.Victims), false)
	for _, v := range first.victims {
		l.occupancy.noteUnit(v.unit)
	}
	take := func(_ *node, h *reservation) { h.setPlacedTaken() }
	if len(d.Victims) > 0 {
		l.post.Info("preempting", "unit", first.unit.path, "members", len(units), "victims", first.victimPaths(), "claims", false)
		take = func(n *node, h *reservation) { n.takeWaiting(h) }
	}
	for i, a := range c.attempts {
		l.launch(a, d.Plans[i], take)
	}
	l.noteChargedTogether(c)
}

// add has an attempt start together with the others.
func (c *company) add(a *attempt) {
	c.attempts = append(c.attempts, a)
	a.company = c
}

// are reports whether all attempts are in a state.
func (c *company) are(s txn.State) bool {
	return !slices.ContainsFunc(c.attempts, func(a *attempt) bool { return a.machine == nil || a.machine.State() != s })
}

// commitTogether asks for the commit point of all, once each waits for its own.
func (l *Leader) commitTogether(c *company) {
	if c.over || c.writing || !c.are(txn.Committing) {
		return
	}
	joint, ok := l.jointCommit(c)
	if !ok {
		l.leaveTogether(c, func(a *attempt) { l.step(a, txn.CommitAnswered{Outcome: txn.Conflict}) }) // nothing was sent
		return
	}
	c.setOver()
	l.post.Submit(joint)
}

// jointCommit is one decision with the commits of all. model: mutants GROUP_CUT, GROUP_BELOW_MINIMUM
func (l *Leader) jointCommit(c *company) (post.Decision, bool) {
	var joint post.Decision
	var done []func(txn.Outcome, resource.Revision, error)
	for _, a := range c.attempts {
		if !l.mayDisplace(a) {
			return joint, false
		}
		d, err := l.commitOf(a)
		if err != nil {
			l.post.Error("commit_not_made", "tx", a.machine.ID(), "unit", a.unit.path, "error", Clip(err.Error()))
			return joint, false
		}
		for _, compare := range d.Compares {
			if !slices.Contains(joint.Compares, compare) {
				joint.Compares = append(joint.Compares, compare)
			}
		}
		joint.Ops, done = append(joint.Ops, d.Ops...), append(done, d.Done)
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
func (l *Leader) evictTogether(c *company) {
	if c.over || c.writing || !c.are(txn.Clearing) {
		return
	}
	first := c.attempts[0]
	d, ok := l.evictionsOf(first)
	if !ok {
		l.leaveTogether(c, func(a *attempt) { l.step(a, txn.EvictionsAnswered{Outcome: txn.Conflict}) }) // nothing was sent
		return
	}
	for _, a := range c.attempts[1:] {
		for _, compare := range l.comparesOfPlace(a) {
			if !slices.Contains(d.Compares, compare) {
				d.Compares = append(d.Compares, compare)
			}
		}
	}
	answered := d.Done
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		answered(o, rev, err)
		for _, a := range c.attempts[1:] {
			if o == txn.Landed {
				a.setNoticed(post.MillisOf(first.noticed))
			}
			l.step(a, txn.EvictionsAnswered{Outcome: o, Revision: rev})
		}
		c.endWrite()
		for _, a := range c.attempts {
			l.endCompany(a)
		}
	}
	c.beginWrite()
	l.post.Submit(d)
}

// setOver has each attempt go on by itself.
func (c *company) setOver() { c.over = true }

// beginWrite notes that a Txn of all is under way, endWrite that it has its answer.
func (c *company) beginWrite() { c.writing = true }
func (c *company) endWrite()   { c.writing = false }

// endCompany gives up the others where an attempt comes to nothing before the commit
// of all was sent.
func (l *Leader) endCompany(a *attempt) {
	c := a.company
	if c == nil || c.over || c.writing {
		return
	}
	switch a.machine.State() {
	case txn.Fencing, txn.Reading, txn.Aborted:
	default:
		return
	}
	l.leaveTogether(c, func(o *attempt) {
		if o.machine == nil {
			return
		}
		switch o.machine.State() {
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
func (l *Leader) leaveTogether(c *company, with func(*attempt)) {
	c.setOver()
	for _, a := range c.attempts {
		with(a)
	}
}
