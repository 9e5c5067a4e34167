package decisions

import (
	"reflect"
	"strings"
)

// takeClasses takes a record about classes.
func (c *Checker) takeClasses(r *Record) {
	if !c.known {
		return
	}
	switch {
	case r.Class != nil:
		if known := c.room.classes[r.Class.ID]; known != nil && !reflect.DeepEqual(known.Class, *r.Class) {
			c.violate(RuleState, "", "class %d is another than before", r.Class.ID)
		}
		c.room.define(r.Class)
	case r.Node != nil:
		c.room.labels[r.Node.ID] = r.Node.intern()
	case r.Offer != nil:
		c.offer(r.Offer)
	case r.Hold != nil:
		c.hold(r.Hold)
	case r.Sleep != nil:
		c.sleep(r.Sleep)
	case r.Event != nil:
		c.event(r.Event)
	}
}

func (c *Checker) offer(o *Offer) {
	u, to := c.unit(o.Unit), c.room.classes[o.Class]
	switch {
	case u == nil:
		c.violate(RuleOrder, o.Unit, "it may be tried, and is not in the order")
	case to == nil:
		c.violate(RuleState, o.Unit, "it may be tried with class %d, which is not described", o.Class)
	default:
		c.offerTo(u, to)
	}
}

// offerTo puts a unit of the order into a class.
func (c *Checker) offerTo(u *unit, to *class) {
	k := u.Key()
	if namespace, _, _ := strings.Cut(k.Path, "/"); namespace != to.Namespace || k.Priority != to.Priority {
		c.violate(RuleState, k.Path, "it has priority %d, and its class %d is of priority %d in namespace %s", k.Priority, to.ID, to.Priority, to.Namespace)
	}
	c.room.drop(u)
	c.order.assign(u, to.ID)
	c.room.add(to, k)
}

func (c *Checker) hold(h *Hold) {
	u := c.unit(h.Unit)
	if u == nil {
		c.violate(RuleOrder, h.Unit, "evidence for a unit that is not in the order")
		return
	}
	c.room.drop(u)
	c.order.explain(u, &h.Evidence)
}

func (c *Checker) sleep(s *Sleep) {
	of := c.room.classes[s.Class]
	if of == nil || of.units.Len() == 0 {
		c.violate(RuleState, "", "class %d has failed, and has no units", s.Class)
		return
	}
	of.sleep, of.slept = s, c.seq
	if s.Subject != "" || s.Detail != "" || of.words == nil || of.words.Code != s.Code {
		of.words = s
	}
	delete(c.room.awake, s.Class)
}

func (c *Checker) event(e *Event) {
	for _, n := range e.Nodes {
		if _, known := c.room.labels[n.Node]; !known {
			c.violate(RuleState, "", "an event on %s, of which no labels are known", n.Node)
		}
	}
	c.room.wake(e)
}

// classesAhead checks that no unit ahead of one that is placed is of a class that
// is awake, and that the unit is the first of its own class.
func (c *Checker) classesAhead(p *Place, u *unit) {
	key, own := u.Key(), c.room.classes[u.Value().class]
	switch {
	case own == nil:
		c.violate(RuleOrder, p.Unit, "it is placed, and could not be tried: %s", whys[u.Value().why])
	case own.first() != key:
		c.violate(RuleUntried, p.Unit, "placed before %s, which is ahead of it and wants the same", own.first().Path)
	}
	var untried, stale []string
	why := ""
	for _, a := range c.room.awakeAhead(key) {
		switch {
		case a == own:
		case a.slept == 0:
			untried = append(untried, a.first().Path)
		default:
			stale = append(stale, a.first().Path)
			if why == "" {
				why = a.woken
			}
		}
	}
	if len(untried) > 0 {
		c.violate(RuleUntried, p.Unit, "placed at position %d; the classes of %d ahead were not tried: %s", u.Position()+1, len(untried), few(untried))
	}
	if len(stale) > 0 {
		c.violate(RuleStale, p.Unit, "placed at position %d; the classes of %d ahead were not tried again after %s: %s", u.Position()+1, len(stale), why, few(stale))
	}
	if a, o := c.room.unreported(key); a != nil {
		c.violate(RuleStale, p.Unit, "placed at position %d; the class of %s ahead waits for the limit of %s, and the end of %s there is not reported",
			u.Position()+1, a.first().Path, a.Namespace, o.tx)
	}
}

// few names the first of some units.
func few(units []string) string { return named(units[:min(len(units), namedUnits)], len(units)) }
