package place

import (
	"fmt"

	"github.com/musterd/muster/resource"
)

// Unit is what is to be placed: Members equal members.
type Unit struct {
	Members     int
	Request     resource.Request
	Constraints Constraints
}

// Member is where one member goes, and what it would get there.
type Member struct {
	Index      int // in the unit
	Node       *Node
	Assignment resource.Assignment
}

// Place finds a place for every member, or for none. On success the members'
// assignments are taken from the nodes' Free amounts (the caller gives them
// back if the plan comes to nothing); otherwise nothing has changed. Nodes must
// ascend by ID: equal scores go to the first.
//
// Members are equal, so they are placed one after the other on the best node
// that still takes one. A node that refuses one member refuses the rest too:
// its free amounts only shrink while the unit is placed.
func Place(nodes []*Node, u Unit) ([]Member, bool) {
	members := make([]Member, 0, u.Members)
	var refused map[*Node]bool
	for i := range u.Members {
		member, ok := placeOne(nodes, &u, &refused)
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
func Undo(members []Member) {
	for _, m := range members {
		if err := m.Node.Host.Give(m.Node.Free, m.Assignment); err != nil {
			panic(fmt.Sprintf("place: undo on %s: %v", m.Node.ID, err))
		}
		m.Node.Refresh()
	}
}

// placeOne takes one member's resources on the best node that has them.
func placeOne(nodes []*Node, u *Unit, refused *map[*Node]bool) (Member, bool) {
	for {
		n := best(nodes, u, *refused)
		if n == nil {
			return Member{}, false
		}
		var a resource.Assignment
		if n.Host.Assign(n.Free, u.Request, &a) {
			if err := n.Host.Take(n.Free, a); err != nil {
				panic(fmt.Sprintf("place: fit assigned on %s what is not free: %v", n.ID, err))
			}
			n.Refresh()
			return Member{Node: n, Assignment: a}, true
		}
		if *refused == nil {
			*refused = map[*Node]bool{}
		}
		(*refused)[n] = true
	}
}

// best returns the allowed node with the greatest score that has room by its
// aggregates, or nil.
func best(nodes []*Node, u *Unit, refused map[*Node]bool) *Node {
	var chosen *Node
	var chosenScore int64
	unconstrained := u.Constraints.IsZero()
	for _, n := range nodes {
		if !n.Ready || n.Unschedulable || !n.roomFor(&u.Request) || (len(refused) > 0 && refused[n]) {
			continue
		}
		if (!unconstrained || len(n.Taints) > 0) && u.Constraints.refuses(n) != nil {
			continue
		}
		score := packed(n, &u.Request)
		if len(u.Constraints.Preferred) > 0 {
			score += u.Constraints.preference(n) * preferenceWeight
		}
		if chosen == nil || score > chosenScore {
			chosen, chosenScore = n, score
		}
	}
	return chosen
}

// preferenceWeight lets one point of preferred affinity outweigh any packing:
// packed is above -(1<<47), no node has 1<<15 device-milli (32 GPUs).
const preferenceWeight = 1 << 47

// packed prefers the node with the least left over, GPUs before CPU: whole
// nodes stay free for large gangs, and work without GPUs goes to nodes that
// have none. Greater is better.
func packed(n *Node, r *resource.Request) int64 {
	return -(int64(n.FreeGPU-r.GPUMilli())<<32 + min(int64(n.FreeCPU-r.CPU), 1<<32-1))
}
