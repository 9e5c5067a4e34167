package lead

import (
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// everyTree is the one forest of the quota manager: a unit is charged on all
// the trees that it names or on none, whatever forests operators have made.
const everyTree = "every"

// quotas are what bounds tenants: objects that operators set, as the store has
// them, and what is charged.
//
// Invariant: limits charge exactly the attempts of the leader, trees
// exactly those of them that name a tree, by their unit's path; beside them
// trees hold a unit for the moment between its admission and its attempt.
type quotas struct {
	limits *quota.Limits
	trees  *quota.Manager
	timed  bool // the trees want to know the time
	usage  usage

	resources   map[string]*resourceQuota // by namespace/name
	treeObjects map[string]*quotaTree
	// closed are the trees whose deletion is under way: nobody is charged to them.
	closed map[string]bool
	// mode is the mode of the trees, as the store has it.
	mode quotaMode

	// generation grows with every change of what units are charged to.
	generation uint64
	// loadedSeats are those of the store, by transaction, until the attempts have them.
	loadedSeats map[resource.TxID]map[string]string
	// outdated are keys of the version before, to be deleted.
	outdated []string
	sampled  time.Time // when utilization was noted last
}

func newQuotas(o quota.Options, now time.Time) *quotas {
	q := &quotas{
		usage: newUsage(now), limits: quota.New(), trees: quota.NewManager(o), timed: o.MinRunTime > 0,
		resources: map[string]*resourceQuota{}, treeObjects: map[string]*quotaTree{}, closed: map[string]bool{},
		generation: 1, sampled: now, loadedSeats: map[resource.TxID]map[string]string{},
	}
	mustHold(q.trees.SetMode(quota.Normal))
	mustHold(q.trees.AddForest(everyTree))
	return q
}

// mustHold is for calls of the quota manager that only a broken invariant makes
// fail.
func mustHold(err error) {
	if err != nil {
		panic("coordinator: " + err.Error())
	}
}

// Limits are the limits of namespaces with their charges. They belong to the book: a caller
// reads, and charges by the book alone.
func (q *quotas) Limits() *quota.Limits { return q.limits }

// Trees are the quota trees with their consumers, for readers and for trials that are taken
// back.
func (q *quotas) Trees() *quota.Manager { return q.trees }

// Closed are the trees whose deletion is under way. The map changes with the book.
func (q *quotas) Closed() map[string]bool { return q.closed }

// isOpen reports whether units may be charged to a tree.
func (q *quotas) isOpen(tree string) bool { return q.treeObjects[tree] != nil && !q.closed[tree] }

// closeTree keeps units from a tree that is to be deleted; reopenTree lets them again.
func (q *quotas) closeTree(name string) { q.closed[name] = true }

func (q *quotas) reopenTree(name string) { delete(q.closed, name) }

// Generation grows with every change of the objects that units are charged to.
func (q *quotas) Generation() uint64 { return q.generation }

// noteMoved notes that units may be charged to other objects from now on.
func (q *quotas) noteMoved() { q.generation++ }

// tree is a tree by its name, nil for none.
func (q *quotas) tree(name string) *quotaTree { return q.treeObjects[name] }

// treeNames are the names of the trees, ascending.
func (q *quotas) treeNames() []string { return slices.Sorted(maps.Keys(q.treeObjects)) }

// quota is a resource quota by its key, "namespace/name", nil for none.
func (q *quotas) quota(key string) *resourceQuota { return q.resources[key] }

// quotaKeys are the keys of the resource quotas, ascending.
func (q *quotas) quotaKeys() []string { return slices.Sorted(maps.Keys(q.resources)) }

// takeSeats returns the nodes of units that the store had, by transaction, once.
func (q *quotas) takeSeats() map[resource.TxID]map[string]string {
	seats := q.loadedSeats
	q.loadedSeats = nil
	return seats
}
