package place

import (
	"fmt"
	"math"
	"slices"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/resource"
)

// search yields the nodes for one unit's members, best first. The first choice
// needs no heap, and most units need no more.
//
// The search asks the State for peers, which a Policy rates alike, and looks
// at the first of them alone where labels and failed attempts make no difference
// between them.
//
// Invariant: once queued, queue is a heap, best on top. Each node that is allowed,
// has room by its sums and has not refused a member is the node of a candidate, or
// behind it among the candidate's peers.
type search struct {
	state     *cluster.State
	unit      *Unit
	relations *relations // nil for none
	policy    Policy
	rated     bool  // the State remembers the policy's scores, which cost much
	soft      bool  // nodes have taints that take points off, of which a rating knows nothing
	ideal     int64 // points of a node that matches all preferred terms
	prefers   bool  // some nodes have more points than others
	// sumsDecide: a node needs nothing for a member but the room by its sums, and a
	// toleration of its taints.
	sumsDecide bool
	started    bool
	queued     bool
	tried      *cluster.Node // the first choice
	takes      bool          // the first choice took a member
	seen       int           // peers that the first choice was among
	queue      []candidate
	// Where known: the taints that were looked at last, whether the unit tolerates them,
	// and the points for nodes with them as the policy counts them.
	known     bool
	taints    *constraint.Taints
	tolerated bool
	extra     int64
	// left are the Bounds less the members that are placed; nil for none.
	left map[resource.Name]int64
	// hopeless are kinds of hosts that hold no member even when empty.
	hopeless []*cluster.Kind
}

func newSearch(state *cluster.State, u *Unit, r *relations) search {
	s := search{state: state, unit: u, relations: r, left: u.Bounds, policy: u.Policy, ideal: u.Constraints.MostPreference(), prefers: u.Constraints.Prefers() || r.prefers()}
	if r != nil {
		s.ideal += r.most
	}
	s.sumsDecide = u.Constraints == nil && r == nil && u.Request.Hugepages == 0 && u.Request.MIG == 0 && u.Request.Counts == "" && u.Bounds == nil
	if s.policy == nil {
		s.policy = Packed{}
	}
	_, s.rated = s.policy.(*Fragmentation)
	s.soft = state.HasSoftTaints()
	return s
}

// place takes one member's resources on the best node that has them.
func (s *search) place() (Choice, bool) {
	if !s.started {
		s.started = true
		if s.tried = s.first(); s.tried == nil {
			s.queued = true // with nobody in it
			return Choice{}, false
		}
		if m, ok := s.take(s.tried); ok {
			s.takes = true
			return m, true
		}
	}
	if !s.queued {
		s.fill()
	}
	for len(s.queue) > 0 {
		n := s.queue[0].node
		m, ok := s.take(n)
		again, room := candidate{}, false
		if ok {
			again, room = s.again(n)
		}
		s.replaceTop(again, room)
		if ok {
			return m, true
		}
	}
	return Choice{}, false
}

// first returns the best node, or nil.
func (s *search) first() *cluster.Node {
	var best candidate
	if runs, few := s.fewRuns(); few {
		for _, run := range runs {
			for _, n := range run {
				if s.allows(n) {
					best.improve(candidate{rank: s.rank(n, s.score(n)), node: n})
				}
			}
		}
		return best.node
	}
	if s.rated {
		return s.firstRated()
	}
	target := s.target()
	for standing, p := range s.state.Peers(&s.unit.Request) {
		score := s.policy.Score(standing, p.Kind(), &s.unit.Request)
		if bound := s.bound(standing, p, score); bound == target {
			s.improveAmong(bound, score, p, &best)
		}
	}
	if best.node != nil && best.rank == target {
		return best.node
	}
	for standing, p := range s.state.Peers(&s.unit.Request) {
		score := s.policy.Score(standing, p.Kind(), &s.unit.Request)
		s.improveAmong(s.bound(standing, p, score), score, p, &best)
	}
	return best.node
}

// firstRated is first with the ratings that the State remembers. It looks for the best
// rating before it looks at a node.
func (s *search) firstRated() *cluster.Node {
	all := s.state.Rated(s.policy, &s.unit.Request)
	s.seen = all.Len()
	target, found := rank{}, false // of the best node that a block may have
	for block := range all.Blocks() {
		if bound, _, room := s.boundOfBlock(&all, block); room && (!found || bound.compare(target) < 0) {
			target, found = bound, true
		}
	}
	if !found {
		return nil
	}
	var best candidate
	for block := range all.Blocks() {
		if bound, extra, room := s.boundOfBlock(&all, block); room && bound == target {
			s.improveInBlock(&all, block, extra, target, &best)
		}
	}
	if best.node != nil && best.rank == target {
		return best.node
	}
	for block := range all.Blocks() {
		if bound, extra, room := s.boundOfBlock(&all, block); room && (best.node == nil || bound.compare(best.rank) <= 0) {
			s.improveInBlock(&all, block, extra, rank{math.MaxInt, 0}, &best)
		}
	}
	return best.node
}

// boundOfBlock is the best rank that a node of a block can have, and the part of it that is
// for points; false where no node of the block has room, or their taints keep the unit away.
func (s *search) boundOfBlock(all *cluster.Ratings, block int) (bound rank, extra int64, room bool) {
	at, taints := all.Best(block)
	if !at.Room {
		return rank{}, 0, false
	}
	s.lookAt(taints)
	return rank{int(at.Doubt), at.Score + s.extra}, s.extra, s.tolerated
}

// improveInBlock looks in a block for a node that is better than the best, among the peers
// that may be as good as the worst rank or better.
func (s *search) improveInBlock(all *cluster.Ratings, block int, extra int64, worst rank, best *candidate) {
	ratings, peers := all.Block(block)
	for i := range ratings {
		at := &ratings[i]
		if bound := (rank{int(at.Doubt), at.Score + extra}); at.Room && bound.compare(worst) <= 0 {
			s.improveAmong(bound, at.Score, peers[i], best)
		}
	}
}

// score rates a node by the policy.
func (s *search) score(n *cluster.Node) int64 {
	return s.policy.Score(&n.Standing, n.Kind(), &s.unit.Request)
}

// target returns the best rank that a node can have by its standing. It counts the
// peers, and reads no more of them.
func (s *search) target() rank {
	var target rank
	s.seen = 0
	for standing, p := range s.state.Peers(&s.unit.Request) {
		if bound := s.bound(standing, p, s.policy.Score(standing, p.Kind(), &s.unit.Request)); s.seen == 0 || bound.compare(target) < 0 {
			target = bound
		}
		s.seen++
	}
	return target
}

// improveAmong looks among peers, none of whom is better than bound, for a node that is
// better than the best.
func (s *search) improveAmong(bound rank, score int64, p *cluster.Peers, best *candidate) {
	if best.node != nil && best.rank.compare(bound) < 0 || !s.unit.Constraints.Tolerates(p.Taints()) {
		return
	}
	for _, run := range p.Runs() {
		for _, n := range run {
			if best.node != nil && bound == best.rank && n.ID > best.node.ID {
				return // it is no better, and the others have greater IDs
			}
			if !s.admits(n) {
				continue
			}
			c := candidate{rank: s.rank(n, score), node: n}
			if best.improve(c); c.rank == bound {
				return // the others have greater IDs
			}
		}
	}
}

// fill makes the heap.
func (s *search) fill() {
	s.queued = true
	if runs, few := s.fewRuns(); few {
		for _, run := range runs {
			for _, n := range run {
				if n != s.tried && s.allows(n) {
					s.queue = append(s.queue, candidate{rank: s.rank(n, s.score(n)), node: n})
				}
			}
		}
	} else {
		s.queue = make([]candidate, 0, s.seen)
		s.fillFromPeers()
	}
	if s.takes {
		if again, room := s.again(s.tried); room {
			s.queue = append(s.queue, again)
		}
	}
	for i := len(s.queue)/2 - 1; i >= 0; i-- {
		s.sift(i)
	}
}

// fillFromPeers adds all peers to the heap, which is none yet.
func (s *search) fillFromPeers() {
	if s.rated {
		all := s.state.Rated(s.policy, &s.unit.Request)
		for block := range all.Blocks() {
			_, extra, room := s.boundOfBlock(&all, block)
			if !room {
				continue
			}
			ratings, peers := all.Block(block)
			for i := range ratings {
				if at := &ratings[i]; at.Room {
					s.enqueue(rank{int(at.Doubt), at.Score + extra}, at.Score, peers[i])
				}
			}
		}
		return
	}
	for standing, p := range s.state.Peers(&s.unit.Request) {
		score := s.policy.Score(standing, p.Kind(), &s.unit.Request)
		s.enqueue(s.bound(standing, p, score), score, p)
	}
}

// enqueue adds peers but the first choice: as one candidate where they are equal,
// else each by itself.
func (s *search) enqueue(bound rank, score int64, p *cluster.Peers) {
	if !s.unit.Constraints.Tolerates(p.Taints()) || s.isHopeless(p.Kind()) {
		return
	}
	if len(s.unit.Avoid) == 0 && !s.prefers {
		c := candidate{rank: bound, peers: p}
		if s.advance(&c) {
			s.queue = append(s.queue, c)
		}
		return
	}
	for _, run := range p.Runs() {
		for _, n := range run {
			if n != s.tried && s.admits(n) {
				s.queue = append(s.queue, candidate{rank: s.rank(n, score), node: n})
			}
		}
	}
}

// again is the candidate for one more member of a node that has taken one; false
// where the node has no more room.
func (s *search) again(n *cluster.Node) (candidate, bool) {
	if !n.MayFit(&s.unit.Request) {
		return candidate{}, false
	}
	return candidate{rank: s.rank(n, s.score(n)), node: n}, true
}

// few is how many times fewer nodes than all must have a label, for the search to
// look at these nodes instead of all peers.
const few = 8

// fewRuns returns the nodes with a label that the unit needs, if these are few.
func (s *search) fewRuns() ([][]*cluster.Node, bool) {
	least := len(s.state.Nodes()) / few
	var fewest [][]*cluster.Node
	found := false
	for _, l := range s.unit.Constraints.Needs() {
		if runs, count := s.state.Labelled(l); count <= least {
			fewest, least, found = runs, count, true
		}
	}
	return fewest, found
}

// allows reports whether the node may take a member.
func (s *search) allows(n *cluster.Node) bool {
	return n.Open() && n.MayFit(&s.unit.Request) && s.unit.Allows(n) && (s.relations == nil || s.relations.admits(n))
}

// admits is allows for one of the peers, whose taints are tolerated.
func (s *search) admits(n *cluster.Node) bool {
	return s.sumsDecide || n.MayFit(&s.unit.Request) && (s.relations == nil || s.relations.admits(n)) && s.unit.Constraints.Matches(n.Labels) && !s.unit.bars(n, int64(s.unit.Request.GPUMilli()))
}

// points are those of a node for what the unit prefers.
func (s *search) points(n *cluster.Node) int64 {
	points := s.unit.Constraints.Preference(n.Labels)
	if s.relations != nil {
		points += s.relations.points(n)
	}
	return points
}

// rank rates a node, whose standing has a score.
func (s *search) rank(n *cluster.Node, score int64) rank {
	failures := 0
	if len(s.unit.Avoid) > 0 {
		failures = s.unit.Avoid[n.ID]
	}
	switch cost := s.cost(n.Labels.Taints()); {
	case s.prefers:
		score = s.policy.Prefer(score, s.points(n)-cost)
	case cost > 0:
		score = s.policy.Prefer(score, -cost)
	}
	return rank{s.policy.Doubt(&n.Standing, failures), score}
}

// taintCost is the points that a taint of the effect PreferNoSchedule takes off: as many
// as the preferred term of most weight adds.
const taintCost = 100

// cost is the points that taints take off which the unit does not tolerate.
func (s *search) cost(t *constraint.Taints) int64 {
	if t == nil {
		return 0
	}
	return taintCost * s.unit.Constraints.SoftTaints(t)
}

// bound is the best rank that one of the peers can have.
func (s *search) bound(standing *cluster.Standing, p *cluster.Peers, score int64) rank {
	if s.soft || s.prefers {
		s.lookAt(p.Taints())
		score += s.extra
	}
	return rank{s.policy.Doubt(standing, 0), score}
}

// lookAt notes whether the unit tolerates taints, and the most points of a node with them.
func (s *search) lookAt(taints *constraint.Taints) {
	if s.known && s.taints == taints {
		return
	}
	points := int64(0)
	if s.prefers {
		points = s.ideal
	}
	if s.soft {
		points -= s.cost(taints)
	}
	s.known, s.taints = true, taints
	s.tolerated, s.extra = s.unit.Constraints.Tolerates(taints), s.policy.Prefer(0, points)
}

// take is the function take. After a refusal it asks whether each host of the kind
// refuses, whatever is free.
func (s *search) take(n *cluster.Node) (Choice, bool) {
	if s.isHopeless(n.Kind()) || s.left != nil && barred(s.left, n, int64(s.unit.Request.GPUMilli())) {
		return Choice{}, false
	}
	c, ok := take(s.state, n, &s.unit.Request)
	if ok && s.left != nil {
		s.left = without(s.left, Models([]Choice{c}))
	}
	if !ok && !n.Kind().MayHold(s.unit.Request) {
		s.hopeless = append(s.hopeless, n.Kind())
	}
	return c, ok
}

// isHopeless reports whether no host of the kind can take a member, as far as the
// search has asked.
func (s *search) isHopeless(k *cluster.Kind) bool { return slices.Contains(s.hopeless, k) }

// take fits one member on the node and takes the assignment.
func take(state *cluster.State, n *cluster.Node, r *resource.Request) (Choice, bool) {
	var a resource.Assignment
	if !state.Assign(n, r, &a) {
		return Choice{}, false
	}
	if err := state.Take(n, a); err != nil {
		panic(fmt.Sprintf("place: fit assigned on %s what is not free: %v", n.ID, err))
	}
	return Choice{Node: n, Assignment: a}, true
}
