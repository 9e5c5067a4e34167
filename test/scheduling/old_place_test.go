package scheduling_test

import (
	"fmt"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// This file is placement as it was before cluster.State: it takes from the nodes
// and undoes that by itself.

// refused stands for why a node's labels or taints keep a unit away.
const refused = "refused"

// oldPlace finds a place for every member, or for none. On success the members'
// assignments are taken from the nodes' Free amounts (the caller gives them
// back if the plan comes to nothing); otherwise nothing has changed. Nodes must
// ascend by ID: equal scores go to the first.
//
// Members are equal, so they are placed one after the other on the best node
// that still takes one. A node that refuses one member refuses the rest too:
// its free amounts only shrink while the unit is placed.
func oldPlace(nodes []*cluster.Node, u place.Unit) ([]place.Choice, bool) {
	members := make([]place.Choice, 0, u.Members)
	s := placing{nodes: nodes, unit: &u}
	for i := range u.Members {
		member, ok := s.place()
		if !ok {
			oldUndo(members)
			return nil, false
		}
		member.Index = i
		members = append(members, member)
	}
	return members, true
}

// oldUndo gives back what Place took.
func oldUndo(members []place.Choice) {
	for _, m := range members {
		if err := m.Node.Host.Give(m.Node.Free, m.Assignment); err != nil {
			panic(fmt.Sprintf("place: undo on %s: %v", m.Node.ID, err))
		}
		m.Node.Refresh()
	}
}

// oldExplain tells for each node, in the given order, how many members fit and
// why no more do. It leaves the views as they were.
func oldExplain(nodes []*cluster.Node, u place.Unit) place.Explanation {
	var e place.Explanation
	free := resource.Vector{}
	var placed []place.Choice
	for i, n := range nodes {
		reasons := n.WhyClosed()
		if reasons == nil {
			if !u.Constraints.Allows(n.Labels) {
				reasons = []resource.Reason{{Code: refused}}
			}
		}
		if reasons != nil {
			e.Nodes = append(e.Nodes, place.NodeExplanation{Node: n.ID, Reasons: reasons})
			continue
		}
		free.Add(n.FreeFor(&u.Request))
		here, s := 0, placing{nodes: nodes[i : i+1], unit: &u}
		for e.Fit+here < u.Members {
			m, ok := s.place()
			if !ok {
				break
			}
			placed = append(placed, m)
			here++
		}
		e.Fit += here
		// The reasons are those of one more member than fits.
		e.Nodes = append(e.Nodes, place.NodeExplanation{Node: n.ID, Fit: here, Reasons: n.Host.Explain(n.Free, u.Request)})
	}
	oldUndo(placed)
	total := u.Request.Vector().Scaled(int64(u.Members))
	if u.Request.Cores > 0 {
		delete(total, resource.CPU) // what a core is charged; how many threads it takes is the node's
	}
	for _, name := range total.Names() {
		if total[name] > free[name] {
			e.Shortages = append(e.Shortages, resource.Reason{Code: resource.ReasonInsufficient, Resource: name, Want: total[name], Have: free[name]})
		}
	}
	return e
}

// placing yields the nodes for one unit's members, best first. The first choice
// is one pass without a heap, for most units need no more.
//
// Invariant: once queued, queue is a binary heap, best on top, of every node
// that is allowed, has room by its aggregates and has not refused a member.
type placing struct {
	nodes   []*cluster.Node
	unit    *place.Unit
	started bool
	queued  bool
	open    int           // nodes that first found to have room
	refused *cluster.Node // the first choice, if its fit said no
	queue   []option
}

// option is a node that may take a member.
type option struct {
	doubt int // see search.doubt
	score int64
	at    int // in nodes
}

// before orders candidates: the least doubt, then the greatest score, then the
// lowest node id.
func (c option) before(d option) bool {
	switch {
	case c.doubt != d.doubt:
		return c.doubt < d.doubt
	case c.score != d.score:
		return c.score > d.score
	}
	return c.at < d.at
}

// place takes one member's resources on the best node that has them.
func (s *placing) place() (place.Choice, bool) {
	if !s.started {
		s.started = true
		n := s.first()
		if n == nil {
			s.queued = true // with nobody in it
			return place.Choice{}, false
		}
		if m, ok := oldTake(n, &s.unit.Request); ok {
			return m, true
		}
		s.refused = n
	}
	if !s.queued {
		s.fill()
	}
	for len(s.queue) > 0 {
		n := s.nodes[s.queue[0].at]
		m, ok := oldTake(n, &s.unit.Request)
		score, room := int64(0), false
		if ok {
			score, room = s.score(n)
		}
		if room {
			s.queue[0].score = score
		} else {
			last := len(s.queue) - 1
			s.queue[0] = s.queue[last]
			s.queue = s.queue[:last]
		}
		s.sift(0)
		if ok {
			return m, true
		}
	}
	return place.Choice{}, false
}

// first returns the best node, or nil.
func (s *placing) first() *cluster.Node {
	var chosen *cluster.Node
	var greatest int64
	least := 0
	for _, n := range s.nodes {
		score, ok := s.score(n)
		if !ok {
			continue
		}
		doubt := s.doubt(n)
		if s.open++; chosen == nil || doubt < least || doubt == least && score > greatest {
			chosen, greatest, least = n, score, doubt
		}
	}
	return chosen
}

// fill makes the heap.
func (s *placing) fill() {
	s.queued = true
	s.queue = make([]option, 0, s.open)
	for i, n := range s.nodes {
		if score, ok := s.score(n); ok && n != s.refused {
			s.queue = append(s.queue, option{s.doubt(n), score, i})
		}
	}
	for i := len(s.queue)/2 - 1; i >= 0; i-- {
		s.sift(i)
	}
}

// sift moves the option at i down to where it belongs.
func (s *placing) sift(i int) {
	for {
		best := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s.queue); child++ {
			if s.queue[child].before(s.queue[best]) {
				best = child
			}
		}
		if best == i {
			return
		}
		s.queue[i], s.queue[best] = s.queue[best], s.queue[i]
		i = best
	}
}

// score rates a node; false means that it is not allowed or has no room by its
// aggregates.
func (s *placing) score(n *cluster.Node) (int64, bool) {
	u := s.unit
	if !n.Ready || n.Unschedulable || !n.MayFit(&u.Request) || !u.Constraints.Allows(n.Labels) {
		return 0, false
	}
	score := packedOf(n, &u.Request)
	if u.Constraints.Prefers() {
		score += min(u.Constraints.Preference(n.Labels), maxPreference) * preferenceWeight
	}
	return score, true
}

// preferenceWeight lets one point of preferred affinity outweigh any packing.
// Points beyond maxPreference do not count.
const (
	preferenceWeight = 1 << 48
	maxPreference    = 1 << 14
)

// The parts of a node's doubt, in the order in which they weigh.
const (
	suspected = 1 << iota // gossip believes the node dead
	tripped               // the node does not answer reserves as it should
	avoided               // once for each failed attempt of the unit there

	mostAvoided = 1 << 10
)

// doubt is why a node is the last choice whatever its score, 0 for none. It
// keeps no member off a node that alone has room.
func (s *placing) doubt(n *cluster.Node) int {
	doubt := 0
	if n.Suspect {
		doubt |= suspected
	}
	if n.Tripped {
		doubt |= tripped
	}
	if len(s.unit.Avoid) > 0 {
		doubt += avoided * min(s.unit.Avoid[n.ID], mostAvoided)
	}
	return doubt
}

// oldTake fits one member on the node and takes what it gets there.
func oldTake(n *cluster.Node, r *resource.Request) (place.Choice, bool) {
	var a resource.Assignment
	if !n.Host.Assign(n.Free, *r, &a) {
		return place.Choice{}, false
	}
	if err := n.Host.Take(n.Free, a); err != nil {
		panic(fmt.Sprintf("place: fit assigned on %s what is not free: %v", n.ID, err))
	}
	n.Refresh()
	return place.Choice{Node: n, Assignment: a}, true
}

// packedOf prefers the node with the least left over, devices before CPU: whole
// nodes stay free for large gangs, and work without devices goes to nodes that
// have none. MIG instances are nothing that a request for GPUs could leave
// over. Greater is better.
func packedOf(n *cluster.Node, r *resource.Request) int64 {
	left := n.FreeGPU
	if wanted := resource.Milli(r.GPUs)*resource.WholeDevice + r.GPUShare; wanted > 0 {
		left -= wanted
	} else {
		left += leftOfMIG(n, r)
	}
	return -(int64(left)<<32 + min(int64(n.FreeCPU-r.CPU), 1<<32-1))
}

// leftOfMIG is what a request without GPUs leaves of the node's MIG instances.
func leftOfMIG(n *cluster.Node, r *resource.Request) resource.Milli {
	if n.FreeMIG == 0 || r.MIG == 0 {
		return n.FreeMIG
	}
	return max(0, n.FreeMIG-resource.Milli(r.MIG)*cluster.SlicesMilli(devices.MIGInstance{Profile: r.MIGProfile}.Slices()))
}
