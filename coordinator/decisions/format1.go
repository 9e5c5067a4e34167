package decisions

import (
	"fmt"
)

// This file reads what format 1 alone has. Its leaders tried every unit again
// whenever something was freed, and counted that in generations of their view: a
// placement said how many of those ahead of it had been tried again at its
// generation.

// Skip is why Count units that are neighbours in the order are passed over from
// now on.
type Skip struct {
	First    string   `json:"first"`
	Last     string   `json:"last,omitempty"`  // empty for one
	Count    int      `json:"count,omitempty"` // 0 for one
	Evidence Evidence `json:"why"`
}

func (s *Skip) check() error {
	one := s.Last == "" && s.Count == 0
	if !one && (s.Last == "" || s.Last == s.First || s.Count < 2) {
		return fmt.Errorf("skip: first %q, last %q, count %d: want a unit, or two and a count of 2 or more", s.First, s.Last, s.Count)
	}
	return firstOf(want("skip.first", s.First), s.Evidence.check(1))
}

func (c *Checker) skip(s *Skip) {
	if !c.known {
		return
	}
	u := c.unit(s.First)
	if u == nil {
		c.violate(RuleOrder, s.First, "evidence for a unit that is not in the order")
		return
	}
	count := max(1, s.Count)
	all := c.order.units.Len()
	last := c.order.units.At(u.Position() + min(count, all) - 1)
	if count > 1 && (last == nil || last.Key().Path != s.Last || count > all) {
		c.violate(RuleState, s.First, "evidence for %d units up to %s, which is not the last of so many", count, s.Last)
		return
	}
	if s.Evidence.Why.ofGeneration() {
		c.takeGeneration(s.Evidence.Generation, s.First)
	}
	for range count {
		c.order.explain(u, &s.Evidence)
		u = u.Next()
	}
}

// takeGeneration takes the generation that a record is of.
func (c *Checker) takeGeneration(generation uint64, unit string) {
	if least := max(c.generation, c.floor); generation < least {
		c.violate(RuleGeneration, unit, "generation %d, when it was %d already", generation, least)
		return
	}
	c.generation = generation
}

// freed notes that something is free from the next generation on.
func (c *Checker) freed(generation uint64, unit string) {
	if !c.known || c.version > 1 {
		return
	}
	c.takeGeneration(generation, unit)
	c.floor = max(c.floor, generation+1)
}

// triedAgain checks that all ahead whose evidence is of a generation were tried
// again at that of the placement.
func (c *Checker) triedAgain(p *Place, all int) {
	switch {
	case p.Fresh < all:
		c.violate(RuleStale, p.Unit, "placed at generation %d; %d ahead were not tried again at it: %s", p.Generation, all-p.Fresh, named(p.Stale, all-p.Fresh))
	case p.Fresh > all:
		c.violate(RuleCounts, p.Unit, "%d ahead were tried again; by the records before there are %d", p.Fresh, all)
	}
}
