package place

import (
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
)

// relations are the rules of a unit about other units, and of other units about the
// unit, with the counts that decide them. nil has no rules.
//
// The counts are those of the State's occupants. A unit of several members, and a
// question that leaves occupants out, has counts of its own: each member counts once
// it has a place.
type relations struct {
	near   []nearRule   // required affinity
	apart  []apartRule  // required anti-affinity, own and others'
	spread []spreadRule // required
	wishes []wish
	most   int64 // points of a node that all wishes prefer
	// within is the only domain of near[0] that is tried, NoDomain for all.
	within int32
	// founds: no unit that the affinity selects runs, and the unit itself is selected:
	// its first member may go to any domain.
	founds, joins bool
}

// nearRule lets members into domains with a count.
type nearRule struct {
	*cluster.Census
	rule *constraint.NearRule
}

// apartRule keeps members out of domains with a count.
type apartRule struct {
	*cluster.Topology
	counts []int32
	self   bool // a member of the unit counts
	rule   *constraint.NearRule
	theirs bool // the rule is of other units
}

// spreadRule keeps members out of domains with too great a count.
type spreadRule struct {
	*cluster.Census
	rule  *constraint.SpreadRule
	self  int32 // 1: a member of the unit counts
	least int32 // of the counts of eligible domains
}

// wish adds points to a node.
type wish struct {
	*cluster.Census
	weight int64 // of a domain with a count
	spread bool  // instead: points are taken off for the count above least
	self   bool
	least  int32
}

// Points that are taken off a node for each member by which its domain exceeds the
// least domain, under a spread that is not required, and the most that are.
const (
	skewPoints     = 10
	mostSkewPoints = 100
)

// relate finds the rules of a unit.
func relate(state *cluster.State, u *Unit) *relations {
	subject := u.Subject
	if subject == nil || subject.Relations == nil && !state.Relates(subject.Namespace) {
		return nil
	}
	r := &relations{within: u.home}
	f := finder{state, u, gone(state, u.Without), u.Members > 1 || len(u.Beside) > 0}
	f.findNear(r)
	f.findApart(r)
	f.findSpread(r)
	f.findWishes(r)
	if len(r.near)+len(r.apart)+len(r.spread)+len(r.wishes) == 0 {
		return nil
	}
	return r
}

// finder finds the rules of one unit.
type finder struct {
	state *cluster.State
	unit  *Unit
	gone  []*cluster.Occupant
	owns  bool // the counts change as members get their places
}

func gone(state *cluster.State, units []string) []*cluster.Occupant {
	var list []*cluster.Occupant
	for _, unit := range units {
		if o := state.Occupant(unit); o != nil {
			list = append(list, o)
		}
	}
	return list
}

// own returns the counts as this search may change them.
func (f *finder) own(c *cluster.Census) *cluster.Census {
	if !f.owns && len(f.gone) == 0 {
		return c
	}
	return c.With(f.state, f.unit.Beside, f.gone)
}

func (f *finder) findNear(r *relations) {
	subject := f.unit.Subject
	rules := subject.Relations.Affinity()
	if len(rules) == 0 {
		return
	}
	r.joins = cluster.SelectedByAll(subject, rules, subject)
	r.founds = r.joins
	for i := range rules {
		c := f.own(f.state.CensusAll(subject, rules, &rules[i]))
		r.near = append(r.near, nearRule{c, &rules[i]})
		r.founds = r.founds && !slices.ContainsFunc(c.Active[1:], func(n int32) bool { return n > 0 })
	}
}

func (f *finder) findApart(r *relations) {
	subject := f.unit.Subject
	own := subject.Relations.AntiAffinity()
	for i := range own {
		c := f.own(f.state.Census(subject, &own[i]))
		r.apart = append(r.apart, apartRule{c.Topology, c.All, own[i].Selection.Selects(subject, subject), &own[i], false})
	}
	for a, c := range f.state.Apart(subject.Namespace) {
		if a.Rule.Selection.Selects(a.Owner, subject) {
			c = f.own(c)
			r.apart = append(r.apart, apartRule{c.Topology, c.All, false, a.Rule, true})
		}
	}
	r.apart = append(r.apart, f.apartFromBeside()...)
	slices.SortStableFunc(r.apart[len(own):], func(a, b apartRule) int { return a.rule.Compare(b.rule) })
}

// apartFromBeside are the rules of the units that start with this unit which keep it
// away from them.
func (f *finder) apartFromBeside() []apartRule {
	var list []apartRule
	for _, o := range f.unit.Beside {
		if o.Subject == nil || o.Subject.Namespace != f.unit.Subject.Namespace {
			continue
		}
		rules := o.Subject.Relations.AntiAffinity()
		for i := range rules {
			if rules[i].Selection.Selects(o.Subject, f.unit.Subject) {
				t := f.state.Topology(rules[i].TopologyKey)
				list = append(list, apartRule{t, t.Count(f.state, o), false, &rules[i], true})
			}
		}
	}
	return list
}

func (f *finder) findSpread(r *relations) {
	subject := f.unit.Subject
	rules := subject.Relations.Spread()
	var keys []string
	for i := range rules {
		if rules[i].Required {
			keys = append(keys, rules[i].TopologyKey)
		}
	}
	for i := range rules {
		rule := &rules[i]
		selects := rule.Selection.Selects(subject, subject)
		if !rule.Required {
			c := f.own(f.state.CensusOn(subject, &rule.NearRule, f.unit.Constraints, []string{rule.TopologyKey}))
			r.wishes = append(r.wishes, wish{Census: c, spread: true, self: selects, least: least(c)})
			continue
		}
		s := spreadRule{Census: f.own(f.state.CensusOn(subject, &rule.NearRule, f.unit.Constraints, keys)), rule: rule}
		if s.least = least(s.Census); selects {
			s.self = 1
		}
		r.spread = append(r.spread, s)
	}
}

// least is the least count of an eligible domain, 0 where there is none.
func least(c *cluster.Census) int32 {
	found, none := int32(0), true
	for d := 1; d < len(c.Active); d++ {
		if c.Eligible[d] && (none || c.Active[d] < found) {
			if found, none = c.Active[d], false; found == 0 {
				break
			}
		}
	}
	return found
}

func (f *finder) findWishes(r *relations) {
	subject := f.unit.Subject
	rules := subject.Relations.Preferred()
	for i := range rules {
		c := f.own(f.state.Census(subject, &rules[i].NearRule))
		r.wishes = append(r.wishes, wish{Census: c, weight: rules[i].Weight, self: rules[i].Selection.Selects(subject, subject)})
		r.most += max(0, rules[i].Weight)
	}
}

// admits reports whether the next member may go to a node.
func (r *relations) admits(n *cluster.Node) bool {
	for i := range r.near {
		d := r.near[i].Of(n)
		if d == cluster.NoDomain || !r.founds && r.near[i].Active[d] == 0 || i == 0 && r.within != cluster.NoDomain && d != r.within {
			return false
		}
	}
	for i := range r.apart {
		if d := r.apart[i].Of(n); d != cluster.NoDomain && r.apart[i].counts[d] > 0 {
			return false
		}
	}
	for i := range r.spread {
		if !r.spread[i].admits(r.spread[i].Of(n)) {
			return false
		}
	}
	return true
}

func (s *spreadRule) admits(d int32) bool {
	return d != cluster.NoDomain && s.Active[d]+s.self-s.least <= s.rule.MaxSkew
}

// points are those of the wishes.
func (r *relations) points(n *cluster.Node) int64 {
	var sum int64
	for i := range r.wishes {
		w := &r.wishes[i]
		d := w.Of(n)
		switch {
		case w.spread && d == cluster.NoDomain:
			sum -= mostSkewPoints
		case w.spread:
			sum -= min(mostSkewPoints, skewPoints*int64(w.Active[d]-w.least))
		case d != cluster.NoDomain && w.Active[d] > 0:
			sum += w.weight
		}
	}
	return sum
}

// prefers reports whether some nodes are better than others.
func (r *relations) prefers() bool { return r != nil && len(r.wishes) > 0 }

// settle counts a member of the unit that goes to a node.
func (r *relations) settle(n *cluster.Node) {
	for i := range r.near {
		if r.joins {
			r.near[i].Active[r.near[i].Of(n)]++
		}
	}
	r.founds = r.founds && !r.joins
	for i := range r.apart {
		if r.apart[i].self {
			r.apart[i].counts[r.apart[i].Of(n)]++
		}
	}
	for i := range r.spread {
		if s := &r.spread[i]; s.self > 0 {
			s.Active[s.Of(n)]++
			s.least = least(s.Census)
		}
	}
	for i := range r.wishes {
		if w := &r.wishes[i]; w.self {
			if w.Active[w.Of(n)]++; w.spread {
				w.least = least(w.Census)
			}
		}
	}
}
