package charges

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// Enroll has the trees know a consumer, which is charged nothing yet.
func (q *Book) Enroll(c quota.ConsumerSpec) { mustHold(q.trees.AddConsumer(c)) }

// Forget has the trees forget a consumer that is not charged.
func (q *Book) Forget(path string) { mustHold(q.trees.RemoveConsumer(path)) }

// Undo takes back the charge of a consumer on all trees, where nothing else was tried since.
func (q *Book) Undo(path string) { mustHold(q.trees.UndoAllocateForest(Forest, path)) }

// Release ends the charge of a consumer on all trees.
func (q *Book) Release(path string) { q.trees.DeallocateForest(Forest, path) }

// Restore charges a consumer to its trees beside others, over quota where needed.
func (q *Book) Restore(path string) quota.Result {
	r, err := q.trees.RestoreForest(Forest, path)
	mustHold(err)
	return r
}

// Replace charges a consumer as an arrival, in place of the charge that it has. Where that
// would evict somebody, ok is false and nothing changes.
func (q *Book) Replace(path string) (r quota.Result, ok bool) {
	mark := q.trees.Checkpoint()
	q.Release(path)
	r, err := q.trees.AllocateForest(Forest, path)
	mustHold(err)
	if ok = r.OK && len(r.Preempted) == 0; ok {
		mustHold(q.trees.Keep(mark))
	} else {
		mustHold(q.trees.Rollback(mark))
	}
	return r, ok
}

// Without runs f while the trees do not charge some consumers. Nothing of that, and nothing
// of what f does to the trees, stays.
func (q *Book) Without(paths []string, f func()) {
	mark := q.trees.Checkpoint()
	for _, path := range paths {
		q.Release(path)
	}
	f()
	mustHold(q.trees.Rollback(mark))
}

// Arrive charges a consumer as if it arrived now, unless that evicts somebody. Its rules
// are those of the mode Normal in each mode: units that were charged before the mode became
// Maintenance stand as they stood, borrowers included.
func (q *Book) Arrive(path string) bool {
	mustHold(q.trees.SetMode(quota.Normal))
	defer func() { mustHold(q.ApplyMode()) }()
	r, err := q.trees.TryAllocateForest(Forest, path)
	mustHold(err)
	if r.OK && len(r.Preempted) == 0 {
		return true
	}
	q.Undo(path)
	return false
}

// Locate gives the demands of a consumer the names of today of their groups, and the root
// where a tree does not have the group. It reports whether each tree has the group: else the
// trees will know something else of the consumer than its record says.
func (q *Book) Locate(c *quota.ConsumerSpec) (all bool) {
	all = true
	for i := range c.Demands {
		d := &c.Demands[i]
		t := q.treeObjects[d.Tree]
		if t == nil {
			all = false
			continue
		}
		d.Group = t.group(d.Group)
		leaf, known := t.nodes[d.Group]
		if delete(t.detached, c.ID); !leaf {
			t.detached[c.ID] = true
		}
		if !known {
			all = false
			d.Group = t.shape.Root
		}
	}
	return all
}

// Committed is the outcome of the charge of a committed unit to one tree.
type Committed struct {
	quota.Result
	Absent bool // there is no such tree
}

// ChargeCommitted charges a unit to a tree as its record says, evicting nobody. A unit that
// is not charged belongs to no group of the tree.
func (q *Book) ChargeCommitted(tree, path string) Committed {
	t := q.treeObjects[tree]
	if t == nil {
		return Committed{Absent: true}
	}
	r, err := q.chargeAgain(tree, path)
	mustHold(err)
	if !r.OK {
		t.detached[path] = true
	}
	return Committed{Result: r}
}

// Reattach forgets that a unit belongs to no group of a tree.
func (q *Book) Reattach(tree, path string) {
	if t := q.treeObjects[tree]; t != nil {
		delete(t.detached, path)
	}
}

// SetNow lets the trees know the time, which counts for how long their consumers have run.
func (q *Book) SetNow(now time.Time) {
	if q.timed {
		q.trees.SetNow(now)
	}
}

// Seated are a unit's charges with the nodes that count them now.
func (q *Book) Seated(path string, charges []record.Charge) []record.Charge {
	if len(charges) < 2 { // of the namespace alone
		return charges
	}
	charges = slices.Clone(charges)
	for i := range charges {
		c := &charges[i]
		c.Node = ""
		if node, counted := q.trees.NodeOf(c.Tree, path); counted && node != q.Group(c.Tree, c.Group) {
			c.Node = node
		}
	}
	return charges
}

// MovedSeats are the nodes of a unit on all its trees, nil where the store has them already:
// seats, else those of its charges.
func (q *Book) MovedSeats(path string, charges []record.Charge, seats map[string]string) map[string]string {
	nodes, moved := map[string]string{}, false
	for i := range charges {
		c := &charges[i]
		t := q.treeObjects[c.Tree]
		node, counted := q.trees.NodeOf(c.Tree, path)
		if t == nil || !counted {
			continue
		}
		nodes[c.Tree] = node
		moved = moved || node != t.group(cmp.Or(seats[c.Tree], c.Node, c.Group))
	}
	if !moved {
		return nil
	}
	return nodes
}

// Excess is a charge above its limit.
type Excess struct {
	Quota      string // the key of a resource quota, or "" for one of Tree and Node
	Tree, Node string
	Resources  []resource.Name
}

// Exceeded lists the charges above their limits: resource quotas by their keys, then trees
// by their names.
func (q *Book) Exceeded() []Excess {
	var all []Excess
	for _, key := range q.QuotaKeys() {
		r := q.resources[key]
		if over := shown.Exceeded(q.limits.Used(r.Object.Metadata.Namespace, r.Object.Metadata.Name), r.hard); len(over) > 0 {
			all = append(all, Excess{Quota: key, Resources: over})
		}
	}
	for _, name := range q.TreeNames() {
		nodes, err := q.trees.Nodes(name)
		mustHold(err)
		for _, n := range nodes {
			if over := shown.Exceeded(n.Allocated, n.Quota); len(over) > 0 {
				all = append(all, Excess{Tree: name, Node: n.Name, Resources: over})
			}
		}
	}
	return all
}
