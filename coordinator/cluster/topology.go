package cluster

// Topology cuts the nodes into domains by the values of one label. A domain is a
// number; NoDomain has the nodes without the label. It is valid until a node is
// inserted, removed or relabelled.
type Topology struct {
	Key   string
	of    []int32  // by the position of the node
	names []string // by domain
}

// NoDomain is the domain of the nodes that do not have the label.
const NoDomain = 0

// mostTopologies bounds the topologies that are kept: a client names the label.
const mostTopologies = 64

// Of returns the domain of a node of the State.
func (t *Topology) Of(n *Node) int32 { return t.of[n.position] }

// Len is one more than the greatest domain.
func (t *Topology) Len() int { return len(t.names) }

// Name is the value of the label in a domain.
func (t *Topology) Name(domain int32) string { return t.names[domain] }

// Count counts the members of an occupant by domain.
func (t *Topology) Count(s *State, o *Occupant) []int32 {
	counts := make([]int32, t.Len())
	for i, id := range o.Nodes {
		if n := s.Node(id); n != nil {
			counts[t.Of(n)] += o.membersOn(i)
		}
	}
	return counts
}

// Topology returns the domains by a label.
func (s *State) Topology(key string) *Topology {
	r := &s.relations
	if t := r.topologies[key]; t != nil {
		return t
	}
	if !r.numbered {
		for i, n := range s.nodes {
			n.position = int32(i)
		}
		r.numbered = true
	}
	if len(r.topologies) >= mostTopologies {
		clear(r.topologies)
	}
	t := &Topology{Key: key, of: make([]int32, len(s.nodes)), names: []string{NoDomain: ""}}
	known := map[string]int32{}
	for i, n := range s.nodes {
		value, has := n.Labels.Get(key)
		if !has {
			continue
		}
		if known[value] == NoDomain {
			known[value] = int32(len(t.names))
			t.names = append(t.names, value)
		}
		t.of[i] = known[value]
	}
	put(&r.topologies, key, t)
	return t
}

// regroup forgets the domains, and all counts by domain: a node was inserted,
// removed or relabelled.
func (s *State) regroup() {
	r := &s.relations
	r.numbered = false
	if len(r.namespaces) > 0 {
		r.regrouped = true
	}
	clear(r.topologies)
	clear(r.censuses)
	clear(r.byNamespace)
	r.oldest = nil
	for _, rules := range r.apart {
		for _, a := range rules {
			a.census = nil
		}
	}
}

// TakeRegrouped reports whether the domains may have changed since the last call.
func (s *State) TakeRegrouped() bool {
	was := s.relations.regrouped
	s.relations.regrouped = false
	return was
}
