// Package place decides on which nodes a unit's members go: filter, score,
// choose, over the cluster's nodes; all members or none. It is advice, run with
// the same fit as the agents' verdict. It does not charge quota, order the queue
// or talk to agents.
//
// Pure: no clock, no I/O, integer scores, ties by node id. The package changes
// nothing but the free amounts of the State's nodes.
package place

import (
	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Unit is what is to be placed: Members members, equal unless Sets says otherwise.
type Unit struct {
	Members     int
	Request     resource.Request
	Constraints *constraint.Set
	// Sets are the members where they differ, in the order of their indices; Members is
	// their sum then, and Request and Constraints are those of the first. nil: all members
	// are equal.
	Sets []Set
	// Subject has the unit's rules about other units, and is the unit as others' rules
	// see it. nil has none.
	Subject *constraint.Subject
	// Without are occupants that rules about other units do not count.
	Without []string
	// Beside are units that rules about other units count beside the occupants: they
	// are about to start with this unit.
	Beside []*cluster.Occupant
	// Avoid counts, by node, the latest attempts of the unit that failed there.
	// Such a node is chosen only where no other has room.
	Avoid map[resource.NodeID]int
	// Topology has the rules about domains of nodes, nil for none. The Policy chooses
	// nothing then.
	Topology *topology.Rules
	// Joins is the gang, of units with Topology, of which other members have places; nil
	// for none.
	Joins *Joining
	// Within are the nodes that are looked at; nil for all. Of units with Topology only.
	Within map[resource.NodeID]bool
	// Bounds are the most device-milli of models of GPUs that the plan may take, by the
	// names under which quotas count them; nil for none. A node with GPUs of several models
	// is no candidate where one of them is bounded.
	Bounds map[resource.Name]int64
	// Policy chooses among the nodes; nil is Packed.
	Policy Policy
	sure   bool // nodes that have failed the unit, or are in doubt, are left out
	// home is the only domain of the first affinity to try, NoDomain for all.
	home int32
}

// Choice is where one member goes, and what it would get there.
type Choice struct {
	Index      int // in the unit
	Node       *cluster.Node
	Assignment resource.Assignment
}

// AsMember returns the choice without its node.
func (c Choice) AsMember() grant.Member {
	return grant.Member{Index: c.Index, Assignment: c.Assignment}
}

// Place finds a place for every member, or for none. On success the members'
// assignments are taken from the State; a caller that only asks opens a checkpoint
// before the call and rolls back after it. Otherwise nothing has changed. Equal
// scores go to the first node.
//
// Members are equal, so they are placed one after the other on the best node
// that still takes one. A node that refuses one member refuses the rest too:
// its free amounts only shrink while the unit is placed.
//
// Under rules about other units each member is looked for anew: a member that has a
// place may open domains to the next one, and close others.
//
// Members that differ are placed set by set: see placeSets.
func Place(state *cluster.State, u Unit) ([]Choice, bool) {
	if u.Sets != nil {
		return placeSets(state, &u)
	}
	r := relate(state, &u)
	if u.Topology != nil {
		return placeInDomains(state, &u, r)
	}
	if r != nil && u.Members > 1 {
		return placeRelated(state, &u, r)
	}
	s := newSearch(state, &u, r)
	mark := state.Checkpoint()
	var members []Choice
	for i := range u.Members {
		member, ok := s.place()
		if !ok {
			state.Rollback(mark)
			return nil, false
		}
		if members == nil {
			members = make([]Choice, 0, u.Members)
		}
		member.Index = i
		members = append(members, member)
	}
	state.Keep(mark)
	return members, true
}
