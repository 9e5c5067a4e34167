package cluster

import (
	"slices"

	"github.com/musterd/muster/constraint"
)

// relations has the counts of occupants by domain that rules about other units ask
// for. A namespace without such rules costs nothing.
//
// Invariant: censuses has those of byNamespace, and oldest has their keys. Where read
// is set, apart has each required rule of anti-affinity of the occupants, and counts
// its carriers.
type relations struct {
	namespaces  map[string]bool // in which some unit has rules
	topologies  map[string]*Topology
	censuses    map[string]*Census
	byNamespace map[string][]*Census
	oldest      []string
	apart       map[string]map[string]*Apart // by namespace, then by rule
	read        bool                         // false in a fork that has not needed apart yet
	news        []*constraint.Subject
	regrouped   bool
	numbered    bool // the nodes have their positions
}

// mostCensuses bounds the counts that are kept. The oldest one is counted anew when
// a rule asks for it again.
const mostCensuses = 512

// Census counts, by domain, the members of the occupants that a rule selects. It is
// valid until the State changes; the caller must not change the counts.
type Census struct {
	*Topology
	key string
	// namespace is that of the units that count.
	namespace string
	selects   func(*constraint.Subject) bool
	counts    func(*Node) bool // nil: on all nodes
	// Active counts the members that run or are about to, All also those that are on
	// their way out.
	Active, All []int32
	// Eligible has the domains with a node that counts; nil for all.
	Eligible []bool
}

// Apart is a required rule of anti-affinity of some occupants.
type Apart struct {
	Rule     *constraint.NearRule
	Owner    *constraint.Subject // one of the carriers
	carriers int
	census   *Census
}

// Relate keeps account of the occupants of a namespace from now on, and reports
// whether that is new. A unit of the namespace has rules about other units.
func (s *State) Relate(namespace string) bool {
	if s.relations.namespaces[namespace] {
		return false
	}
	put(&s.relations.namespaces, namespace, true)
	return true
}

// Relates reports whether some unit of the namespace has, or had, rules about others.
func (s *State) Relates(namespace string) bool { return s.relations.namespaces[namespace] }

// Census counts the units that a rule of owner selects by the rule's domains.
func (s *State) Census(owner *constraint.Subject, rule *constraint.NearRule) *Census {
	key := rule.TopologyKey + " " + rule.Selection.In(owner)
	return s.census(owner.Namespace, key, rule.TopologyKey, func(u *constraint.Subject) bool { return rule.Selection.Selects(owner, u) }, nil)
}

// CensusAll counts the units that all these rules of owner select by the domains of
// the first one.
func (s *State) CensusAll(owner *constraint.Subject, rules []constraint.NearRule, of *constraint.NearRule) *Census {
	key := of.TopologyKey + " all"
	for i := range rules {
		key += " " + rules[i].Selection.In(owner)
	}
	return s.census(owner.Namespace, key, of.TopologyKey, func(u *constraint.Subject) bool { return SelectedByAll(owner, rules, u) }, nil)
}

// SelectedByAll reports whether all rules of owner select a unit.
func SelectedByAll(owner *constraint.Subject, rules []constraint.NearRule, u *constraint.Subject) bool {
	return !slices.ContainsFunc(rules, func(n constraint.NearRule) bool { return !n.Selection.Selects(owner, u) })
}

// CensusOn is Census on those nodes alone that the set matches and that have all the
// labels of the keys.
func (s *State) CensusOn(owner *constraint.Subject, rule *constraint.NearRule, set *constraint.Set, keys []string) *Census {
	key := rule.TopologyKey + " " + rule.Selection.In(owner) + " on " + set.NodesKey()
	for _, k := range keys {
		key += " " + k
	}
	on := func(n *Node) bool {
		for _, k := range keys {
			if _, has := n.Labels.Get(k); !has {
				return false
			}
		}
		return set.Matches(n.Labels)
	}
	return s.census(owner.Namespace, key, rule.TopologyKey, func(u *constraint.Subject) bool { return rule.Selection.Selects(owner, u) }, on)
}

// census returns the counts under a key, or makes them.
func (s *State) census(namespace, key, topology string, selects func(*constraint.Subject) bool, on func(*Node) bool) *Census {
	r := &s.relations
	if c := r.censuses[key]; c != nil {
		return c
	}
	s.Relate(namespace)
	c := s.count(namespace, key, topology, selects, on)
	if len(r.oldest) >= mostCensuses {
		s.dropCensus(r.oldest[0])
	}
	put(&r.censuses, key, c)
	put(&r.byNamespace, namespace, append(r.byNamespace[namespace], c))
	r.oldest = append(r.oldest, key)
	return c
}

func (s *State) dropCensus(key string) {
	r := &s.relations
	dropped := r.censuses[key]
	for namespace, list := range r.byNamespace {
		if i := slices.Index(list, dropped); i >= 0 {
			r.byNamespace[namespace] = slices.Delete(list, i, i+1)
		}
	}
	delete(r.censuses, key)
	r.oldest = r.oldest[1:]
}

// count makes counts from all occupants.
func (s *State) count(namespace, key, topology string, selects func(*constraint.Subject) bool, on func(*Node) bool) *Census {
	t := s.Topology(topology)
	c := &Census{Topology: t, key: key, namespace: namespace, selects: selects, counts: on, Active: make([]int32, t.Len()), All: make([]int32, t.Len())}
	if on != nil {
		c.Eligible = make([]bool, t.Len())
		for _, n := range s.nodes {
			if d := t.Of(n); !c.Eligible[d] && on(n) {
				c.Eligible[d] = true
			}
		}
	}
	for _, o := range s.occupants.list {
		if o.Subject != nil && o.Subject.Namespace == namespace && selects(o.Subject) {
			c.add(s, o, 1)
		}
	}
	return c
}

// add adds the members of an occupant, or takes them out.
func (c *Census) add(s *State, o *Occupant, by int32) {
	for i, id := range o.Nodes {
		n := s.Node(id)
		if n == nil || c.counts != nil && !c.counts(n) {
			continue
		}
		d := c.Of(n)
		if c.All[d] += by * o.membersOn(i); !o.IsLeaving() {
			c.Active[d] += by * o.membersOn(i)
		}
	}
}

// membersOn counts the members on the i-th node.
func (o *Occupant) membersOn(i int) int32 {
	if o.Counts == nil {
		return 1
	}
	return o.Counts[i]
}

// With counts the occupants as if some had come and others were not there.
func (c *Census) With(s *State, come, gone []*Occupant) *Census {
	of := *c
	of.Active, of.All = slices.Clone(c.Active), slices.Clone(c.All)
	for _, o := range come {
		if o.Subject != nil && o.Subject.Namespace == c.namespace && c.selects(o.Subject) {
			of.add(s, o, 1)
		}
	}
	for _, o := range gone {
		if o.Subject != nil && c.selects(o.Subject) {
			of.add(s, o, -1)
		}
	}
	return &of
}

// Apart yields the required rules of anti-affinity of the occupants of a namespace,
// with the domains of their carriers.
func (s *State) Apart(namespace string) func(yield func(*Apart, *Census) bool) {
	r := &s.relations
	if !r.read {
		r.read = true
		for _, o := range s.occupants.list {
			s.carry(o, 1)
		}
	}
	return func(yield func(*Apart, *Census) bool) {
		for key, a := range r.apart[namespace] { // each is judged by itself, so that their order does not matter
			if a.census == nil {
				a.census = s.count(namespace, key, a.Rule.TopologyKey, func(u *constraint.Subject) bool { return carries(u, key) }, nil)
			}
			if !yield(a, a.census) {
				return
			}
		}
	}
}

// HasApart reports whether an occupant of the namespace has a required rule of
// anti-affinity.
func (s *State) HasApart(namespace string) bool {
	for range s.Apart(namespace) {
		return true
	}
	return false
}

func keyOfApart(owner *constraint.Subject, rule *constraint.NearRule) string {
	return rule.TopologyKey + " " + rule.Selection.In(owner)
}

// carries reports whether a unit has a required rule of anti-affinity.
func carries(u *constraint.Subject, key string) bool {
	rules := u.Relations.AntiAffinity()
	for i := range rules {
		if keyOfApart(u, &rules[i]) == key {
			return true
		}
	}
	return false
}

// carry counts the rules of anti-affinity of an occupant, or takes them out.
func (s *State) carry(o *Occupant, by int) {
	if o == nil || o.Subject == nil {
		return
	}
	rules := o.Subject.Relations.AntiAffinity()
	for i := range rules {
		key := keyOfApart(o.Subject, &rules[i])
		in := s.relations.apart[o.Subject.Namespace]
		a := in[key]
		if a == nil {
			a = &Apart{Rule: &rules[i], Owner: o.Subject}
			put(&in, key, a)
			put(&s.relations.apart, o.Subject.Namespace, in)
		}
		if a.census != nil {
			a.census.add(s, o, int32(by))
		}
		if a.carriers += by; a.carriers == 0 {
			delete(in, key)
		}
	}
}

// relate takes an occupant into the counts that was another one before; either may
// be nil.
func (s *State) relate(before, after *Occupant) {
	if sameToOthers(before, after) {
		return
	}
	for _, o := range [...]*Occupant{before, after} {
		if o == nil || o.Subject == nil {
			continue
		}
		if o.Subject.Relations != nil {
			s.Relate(o.Subject.Namespace)
		}
		if !s.Relates(o.Subject.Namespace) {
			continue
		}
		by := int32(1)
		if o == before {
			by = -1
		}
		for _, c := range s.relations.byNamespace[o.Subject.Namespace] {
			if c.selects(o.Subject) {
				c.add(s, o, by)
			}
		}
		if s.relations.read {
			s.carry(o, int(by))
		}
		s.relations.news = append(s.relations.news, o.Subject)
	}
}

// sameToOthers reports whether no rule about other units tells two occupants apart.
func sameToOthers(a, b *Occupant) bool {
	if a == nil || b == nil {
		return (a == nil || a.Subject == nil) && (b == nil || b.Subject == nil)
	}
	return a.Subject == b.Subject && a.IsLeaving() == b.IsLeaving() && slices.Equal(a.Nodes, b.Nodes) && slices.Equal(a.Counts, b.Counts)
}

// TakeNeighbourNews returns, since the last call, the units that have come to nodes,
// are leaving them or have left, in namespaces where units have rules about others.
func (s *State) TakeNeighbourNews() []*constraint.Subject {
	news := s.relations.news
	s.relations.news = nil
	return news
}

// HasNeighbourNews reports whether TakeNeighbourNews or TakeRegrouped has news.
func (s *State) HasNeighbourNews() bool { return len(s.relations.news) > 0 || s.relations.regrouped }
