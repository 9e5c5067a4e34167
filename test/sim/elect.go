package sim

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file is how a coordinator becomes the leader.

// actElect lets a coordinator become a candidate, or a candidate the leader.
func (s *Sim) actElect() bool {
	c := pick(s, s.coordinators)
	switch {
	case c.term != nil && !c.term.ended || c.preparing:
		return false
	case c.key == "":
		s.candidates++
		c.key, c.preparing = record.LeaderKey(record.LeaseID(s.candidates)), true
		key := c.key
		s.send(&write{
			what: c.name + "'s candidacy", compares: []record.Compare{record.Absent(key)}, ops: []record.Op{record.Put(key, record.MustEncode(record.LeaderAddress{ID: c.name}))},
			done: func(o txn.Outcome, rev resource.Revision) {
				if c.key != key {
					return
				}
				c.preparing = false
				if o == txn.Landed {
					c.epoch = resource.Epoch(rev)
					if s.bug == SumBeforeElection {
						c.early = s.store.snapshot()
					}
				} else {
					c.key = "" // its lease ends by itself
				}
			},
		})
		return true
	case s.store.keys[c.key].CreateRev == 0:
		c.key = "" // it waited in vain
		return true
	case s.elected() != c.epoch:
		return false
	}
	c.preparing = true
	key := c.key
	s.ask(c.name+"'s view of the state", func() func() {
		state := s.store.snapshot()
		if c.early != nil {
			state = c.early
		}
		return func() {
			if c.key != key {
				return
			}
			c.preparing = false
			c.term = s.begin(c, state)
			s.terms = append(s.terms, c.term)
			c.term.schedule()
		}
	})
	return true
}
