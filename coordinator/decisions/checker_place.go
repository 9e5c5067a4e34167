package decisions

import (
	"github.com/musterd/muster/coordinator/queue"
)

// lateBackoff is how long, in milliseconds, after its end a backoff may still
// be told as evidence before it is noted: a leader may have stood still, and
// clocks step, so that it is no proof.
const lateBackoff = 5000

func (c *Checker) place(p *Place) {
	c.report.Placements++
	switch p.Kind {
	case Preemption:
		c.report.Preemptions++
	case Claim:
		c.report.Claims++
	}
	if f, found := c.decided[p.Tx]; found {
		c.twice(f, p.Unit, "%s is placed, and is %s already: attempts are never used again", p.Tx, f.what)
	}
	if _, found := c.inFlight[p.Tx]; found {
		c.violate(RuleTwice, p.Unit, "%s is placed, and is in flight already", p.Tx)
	}
	if !c.known {
		c.inFlight[p.Tx] = InFlight{Tx: p.Tx, Unit: p.Unit, Kind: p.Kind}
		return
	}
	u := c.unit(p.Unit)
	if u == nil {
		c.violate(RuleOrder, p.Unit, "it is placed, and is not in the order")
		c.inFlight[p.Tx] = InFlight{Tx: p.Tx, Unit: p.Unit, Kind: p.Kind}
		return
	}
	key := c.keys[p.Unit]
	if c.version == 1 {
		c.takeGeneration(p.Generation, p.Unit)
	}
	if !p.Adopted {
		c.passedOver(p, u)
	}
	c.alone(p)
	c.victims(p, key)
	c.nominated(p, key)
	c.room.drop(u)
	c.order.remove(u)
	delete(c.keys, p.Unit)
	c.inFlight[p.Tx] = InFlight{p.Tx, p.Unit, orderOf(key), p.Kind, p.Devices}
}

// passedOver checks that each unit ahead had a reason that still holds.
func (c *Checker) passedOver(p *Place, u *unit) {
	c.report.Verified++
	i, counts := u.Position(), c.order.counts(u)
	c.report.LongestRow = max(c.report.LongestRow, i)
	sum := c.report.PassedOver.numbers()
	for at, n := range counts.numbers() {
		sum[at] += n
	}
	c.report.PassedOver = countsOf(sum)

	if counts.Untried > 0 {
		c.violate(RuleUntried, p.Unit, "placed at position %d; %d ahead were not tried: %s", i+1, counts.Untried, c.those("", counts.Untried))
	}
	if counts.Backfilled > 0 {
		c.violate(RuleInadmissible, p.Unit, "placed at position %d before %d that are %s, and there is no calendar: %s",
			i+1, counts.Backfilled, Backfilled, c.those(Backfilled, counts.Backfilled))
	}
	if p.Position != i+1 || p.Ahead != counts {
		c.violate(RuleCounts, p.Unit, "position %d with %s ahead; by the records before it is %d with %s", p.Position, p.Ahead, i+1, counts)
	}
	if c.version == 1 {
		c.triedAgain(p, counts.ofGeneration())
	} else {
		c.classesAhead(p, u)
	}
	c.noteLateBackoffs(counts.InBackoff)
}

// noteLateBackoffs looks at the first n units in the order that have a backoff:
// those ahead.
func (c *Checker) noteLateBackoffs(n int) {
	backoff := InBackoff.number()
	for u := range c.order.units.Select(func(t tally) bool { return t[backoff] > 0 }) {
		if n--; n < 0 {
			return
		}
		if e := u.Value().evidence; c.at > e.Until+lateBackoff {
			c.note("%s is passed over for a backoff that ended %d ms before", u.Key().Path, c.at-e.Until)
		}
	}
}

// those names the first units in the order with evidence of one kind, of which
// there are all ahead.
func (c *Checker) those(why Why, all int) string {
	number := why.number()
	return named(c.order.paths(min(all, namedUnits), func(t tally) bool { return t[number] > 0 }), all)
}

// alone checks that the unit has no other transaction (I6).
func (c *Checker) alone(p *Place) {
	if tx, found := c.running[p.Unit]; found {
		c.violate(RuleRunning, p.Unit, "it is placed as %s while %s of it runs", p.Tx, tx)
	}
	for _, f := range inOrder(c.inFlight) {
		if f.Unit == p.Unit && f.Tx != p.Tx {
			c.violate(RuleRunning, p.Unit, "it is placed as %s while %s of it is in flight", p.Tx, f.Tx)
		}
	}
}

// victims checks the priorities of those who give way to a preemption (I7).
func (c *Checker) victims(p *Place, key queue.Key) {
	for _, v := range p.Victims {
		if known, found := c.priority[v.Unit]; found && known != v.Priority {
			c.violate(RulePriority, p.Unit, "victim %s is said to have priority %d; it was placed with %d", v.Unit, v.Priority, known)
		}
		if p.Kind == Preemption && v.Priority >= key.Priority {
			c.violate(RulePriority, p.Unit, "victim %s has priority %d, the preemptor %d: it must be strictly lower", v.Unit, v.Priority, key.Priority)
		}
	}
}

// nominated checks that no device is planned that is being cleared for a unit
// ahead (I7).
func (c *Checker) nominated(p *Place, key queue.Key) {
	for _, f := range inOrder(c.inFlight) {
		if f.Kind == Plain || !before(f.key(f.Unit), key) {
			continue
		}
		if node, gpu, both := shared(f.Devices, p.Devices); both {
			c.violate(RuleNominated, p.Unit, "it plans GPU %d of %s, which %s, ahead of it, is nominated to by %s", gpu, node, f.Unit, f.Tx)
			return
		}
	}
}

func (c *Checker) commit(m *Commit) {
	c.report.Commits++
	f, found := c.inFlight[m.Tx]
	delete(c.inFlight, m.Tx)
	decided, again := c.decided[m.Tx]
	switch {
	case again:
		c.twice(decided, m.Unit, "%s is committed at revision %d, and is %s already", m.Tx, m.Revision, decided.what)
		return
	case !found && c.known:
		c.violate(RuleUnplaced, m.Unit, "%s is committed at revision %d, and was never placed", m.Tx, m.Revision)
	case found && f.Unit != m.Unit:
		c.violate(RuleUnplaced, m.Unit, "%s is committed for it, and was placed for %s", m.Tx, f.Unit)
	}
	c.decided[m.Tx] = fate{"committed", c.report.Terms}
	if tx, runs := c.running[m.Unit]; runs {
		c.violate(RuleRunning, m.Unit, "%s is committed while %s of it runs", m.Tx, tx)
	}
	c.running[m.Unit] = m.Tx
	if found {
		c.priority[m.Unit] = f.Priority
	}
}

func (c *Checker) abort(a *Abort) {
	c.report.Aborts++
	f, found := c.inFlight[a.Tx]
	delete(c.inFlight, a.Tx)
	switch decided, again := c.decided[a.Tx]; {
	case again:
		c.twice(decided, f.Unit, "%s is aborted, and is %s already", a.Tx, decided.what)
	case !found && c.known:
		c.violate(RuleUnplaced, "", "%s is aborted, and was never placed", a.Tx)
	}
	c.decided[a.Tx] = fate{"aborted", c.report.Terms}
	c.freed(a.Generation, f.Unit)
	c.room.owe(f.Unit, string(a.Tx), c.seq)
}

func (c *Checker) end(e *End) {
	c.report.Ends++
	if decided, again := c.decided[e.Tx]; again && decided.what != "committed" {
		c.twice(decided, e.Unit, "%s ends, and is %s already", e.Tx, decided.what)
	}
	c.decided[e.Tx] = fate{"ended", c.report.Terms}
	if c.running[e.Unit] == e.Tx {
		delete(c.running, e.Unit)
		delete(c.priority, e.Unit)
	}
	c.freed(e.Generation, e.Unit)
	c.room.owe(e.Unit, string(e.Tx), c.seq)
}
