package lead

import (
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/resource"
)

// FiguresCount counts the figures in steps, between which the leader goes on. Only the
// goroutine of the leader may call its methods.
//
// The figures are not those of one moment: a node or a unit counts as it is in its
// step. A node or a unit that comes after the begin does not count, and so does one
// that has gone before its step.
type FiguresCount struct {
	leader  *Leader
	figures *Figures
	nodes   []resource.NodeID // that are still to be counted, like the rest
	units   []*work.Unit
	quotas  []string // keys of quotas.resources
	trees   []string
}

// What one step counts at most: a millisecond's work.
const (
	nodesPerStep  = 256
	unitsPerStep  = 2048
	quotasPerStep = 256
)

// CountFigures begins to count the figures.
func (l *Leader) CountFigures() *FiguresCount {
	c := &FiguresCount{leader: l, units: make([]*work.Unit, 0, len(l.work.Units)), figures: &Figures{
		Nodes: make([]NodeFigures, 0, len(l.nodes)), Models: map[string]GPUFigures{}, Units: map[UnitKind]int{},
		Allocated: map[string]cluster.Amounts{}, Waiting: map[string]int{}, Queues: map[QueueKind]QueueFigures{}, At: l.post.Now(), Elected: l.post.Elected(),
	}}
	c.figures.Scheduling, c.figures.Waits = l.activity.figures(l.post.Now(), l.post.Elected())
	c.nodes = make([]resource.NodeID, 0, len(l.nodes))
	for _, at := range l.state.Nodes() {
		c.nodes = append(c.nodes, at.ID)
	}
	for _, u := range l.work.Units {
		c.units = append(c.units, u)
	}
	c.quotas, c.trees = l.quotas.QuotaKeys(), l.quotas.TreeNames()
	return c
}

// Step counts a part and reports whether all is counted.
func (c *FiguresCount) Step() (done bool) {
	l, f := c.leader, c.figures
	switch {
	case len(c.nodes) > 0:
		for _, id := range take(&c.nodes, nodesPerStep) {
			if n := l.nodes[id]; n != nil && l.state.Node(id) != nil {
				f.Nodes = append(f.Nodes, n.figures(f.Models))
			}
		}
	case len(c.units) > 0:
		for _, u := range take(&c.units, unitsPerStep) {
			if !u.Life.Gone() {
				f.countUnit(u)
			}
		}
	case len(c.quotas) > 0:
		for _, key := range take(&c.quotas, quotasPerStep) {
			if r := l.quotas.Quota(key); r != nil {
				f.countQuota(l.quotas, r)
			}
		}
	case len(c.trees) > 0:
		for _, tree := range take(&c.trees, 1) {
			if l.quotas.Tree(tree) != nil {
				f.countTree(l.quotas, tree)
			}
		}
	}
	return len(c.nodes)+len(c.units)+len(c.quotas)+len(c.trees) == 0
}

// Figures are the result, once Step has reported the end.
func (c *FiguresCount) Figures() *Figures { return c.figures }

// take cuts off the first elements of a list, at most so many.
func take[T any](list *[]T, most int) []T {
	n := min(most, len(*list))
	first := (*list)[:n]
	*list = (*list)[n:]
	return first
}
