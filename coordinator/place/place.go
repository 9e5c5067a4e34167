// Package place decides on which nodes a unit's members go: filter, score,
// choose, over the cluster's nodes; all members or none. It is advice, run with
// the same fit as the agents' verdict. It does not charge quota, order the queue
// or talk to agents.
//
// Pure: no clock, no I/O, integer scores, ties by node id. The only thing it
// changes are the Free amounts of the nodes it is given, and it undoes that.
package place

import (
	"fmt"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Unit is what is to be placed: Members equal members.
type Unit struct {
	Members     int
	Request     resource.Request
	Constraints *constraint.Set
	// Avoid counts, by node, the latest attempts of the unit that failed there.
	// Such a node is chosen only where no other has room.
	Avoid map[resource.NodeID]int
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
// assignments are taken from the nodes' Free amounts (the caller gives them
// back if the plan comes to nothing); otherwise nothing has changed. Nodes must
// ascend by ID: equal scores go to the first.
//
// Members are equal, so they are placed one after the other on the best node
// that still takes one. A node that refuses one member refuses the rest too:
// its free amounts only shrink while the unit is placed.
func Place(nodes []*cluster.Node, u Unit) ([]Choice, bool) {
	members := make([]Choice, 0, u.Members)
	s := search{nodes: nodes, unit: &u}
	for i := range u.Members {
		member, ok := s.place()
		if !ok {
			Undo(members)
			return nil, false
		}
		member.Index = i
		members = append(members, member)
	}
	return members, true
}

// Undo gives back what Place took.
func Undo(members []Choice) {
	for _, m := range members {
		if err := m.Node.Host.Give(m.Node.Free, m.Assignment); err != nil {
			panic(fmt.Sprintf("place: undo on %s: %v", m.Node.ID, err))
		}
		m.Node.Refresh()
	}
}
