package place

import (
	"fmt"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// search yields the nodes for one unit's members, best first. The first choice
// is one pass without a heap, for most units need no more.
//
// Invariant: once queued, queue is a binary heap, best on top, of every node
// that is allowed, has room by its aggregates and has not refused a member.
type search struct {
	state   *cluster.State
	nodes   []*cluster.Node // of the state, all or some
	unit    *Unit
	started bool
	queued  bool
	open    int           // nodes that first found to have room
	refused *cluster.Node // the first choice, if its fit said no
	queue   []candidate
}

// candidate is a node that may take a member.
type candidate struct {
	doubt int // see search.doubt
	score int64
	at    int // in nodes
}

// before orders candidates: the least doubt, then the greatest score, then the
// lowest node id.
func (c candidate) before(d candidate) bool {
	switch {
	case c.doubt != d.doubt:
		return c.doubt < d.doubt
	case c.score != d.score:
		return c.score > d.score
	}
	return c.at < d.at
}

// place takes one member's resources on the best node that has them.
func (s *search) place() (Choice, bool) {
	if !s.started {
		s.started = true
		n := s.first()
		if n == nil {
			s.queued = true // with nobody in it
			return Choice{}, false
		}
		if m, ok := s.take(n); ok {
			return m, true
		}
		s.refused = n
	}
	if !s.queued {
		s.fill()
	}
	for len(s.queue) > 0 {
		n := s.nodes[s.queue[0].at]
		m, ok := s.take(n)
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
	return Choice{}, false
}

// first returns the best node, or nil.
func (s *search) first() *cluster.Node {
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
func (s *search) fill() {
	s.queued = true
	s.queue = make([]candidate, 0, s.open)
	for i, n := range s.nodes {
		if score, ok := s.score(n); ok && n != s.refused {
			s.queue = append(s.queue, candidate{s.doubt(n), score, i})
		}
	}
	for i := len(s.queue)/2 - 1; i >= 0; i-- {
		s.sift(i)
	}
}

// sift moves the candidate at i down to where it belongs.
func (s *search) sift(i int) {
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
func (s *search) score(n *cluster.Node) (int64, bool) {
	u := s.unit
	if !n.Ready || n.Unschedulable || !n.MayFit(&u.Request) || !u.Constraints.Allows(n.Labels) {
		return 0, false
	}
	score := packed(n, &u.Request)
	if u.Constraints.Prefers() {
		score += min(u.Constraints.Preference(n.Labels), maxPreference) * preferenceWeight
	}
	return score, true
}

// The parts of a node's doubt, in the order in which they weigh.
const (
	suspected = 1 << iota // gossip believes the node dead
	tripped               // the node does not answer reserves as it should
	avoided               // once for each failed attempt of the unit there

	mostAvoided = 1 << 10
)

// doubt is why a node is the last choice whatever its score, 0 for none. It
// keeps no member off a node that alone has room.
func (s *search) doubt(n *cluster.Node) int {
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

// take fits one member on the node and takes what it gets there.
func (s *search) take(n *cluster.Node) (Choice, bool) {
	var a resource.Assignment
	if !n.Host.Assign(n.Free, s.unit.Request, &a) {
		return Choice{}, false
	}
	if err := s.state.Take(n, a); err != nil {
		panic(fmt.Sprintf("place: fit assigned on %s what is not free: %v", n.ID, err))
	}
	return Choice{Node: n, Assignment: a}, true
}

// preferenceWeight lets one point of preferred affinity outweigh any packing:
// packed is above -(1<<48), for no host has 1<<16 device-milli (fit.MaxGPUs is
// 64). Points beyond maxPreference do not count.
const (
	preferenceWeight = 1 << 48
	maxPreference    = 1 << 14
)

// packed prefers the node with the least left over, devices before CPU: whole
// nodes stay free for large gangs, and work without devices goes to nodes that
// have none. MIG instances are nothing that a request for GPUs could leave
// over. Greater is better.
func packed(n *cluster.Node, r *resource.Request) int64 {
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
