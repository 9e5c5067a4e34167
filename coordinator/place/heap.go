package place

import (
	"cmp"

	"github.com/musterd/muster/coordinator/cluster"
)

// rank is a Policy's verdict on a node.
type rank struct {
	doubt int
	score int64
}

// compare is negative where r is better.
func (r rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(r.doubt, o.doubt), cmp.Compare(o.score, r.score))
}

// candidate is a node that may take a member. Where peers is set, those behind
// position at of run have the same rank and come later.
type candidate struct {
	rank
	node    *cluster.Node
	peers   *cluster.Peers
	run, at int32 // in the runs of peers, behind node
}

// before orders candidates: the least doubt, then the greatest score, then the
// lowest node ID.
func (c *candidate) before(d *candidate) bool {
	switch {
	case c.doubt != d.doubt:
		return c.doubt < d.doubt
	case c.score != d.score:
		return c.score > d.score
	}
	return c.node.ID < d.node.ID
}

// improve makes c the better one of the two; the zero candidate is worse than any.
func (c *candidate) improve(d candidate) {
	if c.node == nil || d.before(c) {
		*c = d
	}
}

// advance goes on to the next node of the candidate's peers that is admitted;
// false where there is none.
func (s *search) advance(c *candidate) bool {
	if s.isHopeless(c.peers.Kind()) {
		return false
	}
	for runs := c.peers.Runs(); int(c.run) < len(runs); c.run, c.at = c.run+1, 0 {
		for run := runs[c.run]; int(c.at) < len(run); {
			n := run[c.at]
			c.at++
			if n != s.tried && s.admits(n) {
				c.node = n
				return true
			}
		}
	}
	return false
}

// replaceTop takes the node on top out of the heap, and adds the next one of its
// peers and, where it has room, the node again.
func (s *search) replaceTop(again candidate, room bool) {
	top := &s.queue[0]
	last := len(s.queue) - 1
	switch {
	case top.peers != nil && s.advance(top):
		s.sift(0)
		if room {
			s.push(again)
		}
		return
	case room:
		*top = again
	default:
		*top = s.queue[last]
		s.queue = s.queue[:last]
	}
	s.sift(0)
}

// push adds a candidate.
func (s *search) push(c candidate) {
	s.queue = append(s.queue, c)
	for i := len(s.queue) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s.queue[i].before(&s.queue[parent]) {
			return
		}
		s.queue[i], s.queue[parent] = s.queue[parent], s.queue[i]
		i = parent
	}
}

// sift moves the candidate at i down to where it belongs.
func (s *search) sift(i int) {
	for {
		best := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s.queue); child++ {
			if s.queue[child].before(&s.queue[best]) {
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
