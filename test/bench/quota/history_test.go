package quota_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// Histories of which the original makes no mistake and in which it leaves
// nothing to chance. It goes wrong where it takes back what it did in a call
// (QUOTA.md section 8, D1 to D4). Where it places a consumer, nothing is taken
// back if every node can always claim its quota: the quotas of children do not
// add up to more than their parent's, only leaves are hard, and all consumers
// are of one type and preemptable. Where it refuses one of priority above 0,
// the evictions it tried are taken back: such a consumer is tried, and undone
// when it is refused.

const treeName = "T"

// claimableTree makes such a tree, from the leaves up.
func claimableTree(r *rand.Rand) (s quota.TreeSpec, leaves, inner []string) {
	s = quota.TreeSpec{Name: treeName, Resources: []resource.Name{"a", "b", "c"}[:1+r.IntN(3)], Nodes: map[string]quota.NodeSpec{}}
	parents := []string{""}
	for i := 1; i < 2+r.IntN(14); i++ {
		parents = append(parents, name(r.IntN(i)))
	}
	for i, parent := range slices.Backward(parents) {
		n := s.Nodes[name(i)] // holds what the children have
		n.Parent = parent
		leaf := n.Quota == nil
		if leaf {
			n.Quota, n.Hard = resource.Vector{}, r.IntN(4) == 0
			leaves = append(leaves, name(i))
		} else {
			inner = append(inner, name(i))
		}
		for _, of := range s.Resources {
			if leaf || r.IntN(2) == 0 {
				n.Quota[of] += int64(r.IntN(8))
			}
		}
		s.Nodes[name(i)] = n
		if parent != "" {
			above := s.Nodes[parent]
			if above.Quota == nil {
				above.Quota = resource.Vector{}
			}
			for of, amount := range n.Quota {
				above.Quota[of] += amount
			}
			s.Nodes[parent] = above
		}
	}
	return s, leaves, inner
}

func name(i int) string { return fmt.Sprint("n", i) }

// history takes both managers through the same calls.
type history struct {
	r            *rand.Rand
	tree         quota.TreeSpec
	ours, theirs manager
	consumers    []quota.Demand // by number
}

// tally counts what the calls of a history did.
type tally struct{ admitted, evicted, moved, undone, refused, released int }

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	h := &history{r: rand.New(rand.NewPCG(seed, 1)), ours: newOurs(), theirs: newTheirs()}
	tree, leaves, inner := claimableTree(h.r)
	h.tree = tree
	must(t, h.ours.addTree(tree))
	must(t, h.theirs.addTree(tree))
	for i := range 30 {
		d := quota.Demand{Tree: treeName, Group: leaves[h.r.IntN(len(leaves))], Request: resource.Vector{}, Priority: h.r.IntN(8) - 3}
		if len(inner) > 0 && h.r.IntN(30) == 0 {
			d.Group, d.Priority = inner[h.r.IntN(len(inner))], 0
		}
		for _, of := range tree.Resources {
			d.Request[of] = int64(h.r.IntN(5))
		}
		spec := quota.ConsumerSpec{ID: fmt.Sprint("c", i), Demands: []quota.Demand{d}}
		must(t, h.ours.addConsumer(spec))
		must(t, h.theirs.addConsumer(spec))
		h.consumers = append(h.consumers, d)
	}
	return h
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reply is what a call answers.
type reply struct {
	preempted []string
	ok        bool
}

// step makes one call, or a try and its undo, and tells what it was and what
// each answered.
func (h *history) step() (call string, our, their reply) {
	i := h.r.IntN(len(h.consumers))
	id := fmt.Sprint("c", i)
	standing := slices.ContainsFunc(slices.Collect(maps.Values(h.theirs.nodes(treeName))), func(n node) bool {
		return slices.Contains(n.Consumers, id)
	})
	switch {
	case standing && h.r.IntN(8) > 0:
		return "release " + id, reply{ok: h.ours.release(treeName, id)}, reply{ok: h.theirs.release(treeName, id)}
	case standing || h.consumers[i].Priority <= 0:
		return "allocate " + id, replyOf(h.ours.allocate(treeName, id)), replyOf(h.theirs.allocate(treeName, id))
	}
	call, our, their = "try "+id, replyOf(h.ours.try(treeName, id)), replyOf(h.theirs.try(treeName, id))
	if !their.ok || h.r.IntN(4) == 0 {
		call += " and undo it"
		our.ok = h.ours.undo(treeName, id) && our.ok
		their.ok = h.theirs.undo(treeName, id) && their.ok
	}
	return call, our, their
}

func replyOf(preempted []string, ok bool) reply {
	return reply{slices.Sorted(slices.Values(preempted)), ok}
}

func TestHistoriesEndAlike(t *testing.T) {
	var total tally
	for seed := range uint64(400) {
		h := newHistory(t, seed)
		before := h.theirs.nodes(treeName)
		for range 60 {
			call, our, their := h.step()
			if our.ok != their.ok || !slices.Equal(our.preempted, their.preempted) {
				t.Fatalf("seed %d, %s: ours %+v, the original %+v; before:\n%v\ntree %v", seed, call, our, their, before, h.tree)
			}
			a, b := h.ours.nodes(treeName), h.theirs.nodes(treeName)
			if !maps.EqualFunc(a, b, alike) {
				t.Fatalf("seed %d, %s: ours\n%v\nthe original\n%v\nbefore\n%v\ntree %v", seed, call, a, b, before, h.tree)
			}
			total.count(call, our, before, b)
			before = b
		}
	}
	t.Logf("%+v", total)
}

func alike(a, b node) bool {
	return maps.Equal(a.Allocated, b.Allocated) && slices.Equal(a.Consumers, b.Consumers)
}

// count adds a call that both answered alike.
func (c *tally) count(call string, r reply, before, after map[string]node) {
	verb, id, _ := strings.Cut(call, " ")
	switch {
	case strings.HasSuffix(call, "undo it"):
		c.undone++
	case verb == "release":
		c.released++
	case !r.ok:
		c.refused++
	default:
		c.admitted++
	}
	c.evicted += len(r.preempted)
	for name, n := range after {
		for _, other := range n.Consumers {
			if other != id && !slices.Contains(before[name].Consumers, other) {
				c.moved++
			}
		}
	}
}
