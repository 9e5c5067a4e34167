// Package charges keeps the quota objects of operators and what is charged to them: the
// limits of namespaces, the quota trees with their mode, and the use of each tenant. A Book
// charges the units that the leader names, by their paths and transactions. It decides
// neither which unit is charged nor who gives way, and it writes nothing.
//
// Pure: no clock, no I/O. One goroutine owns a Book.
package charges

import (
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// Forest is the one forest of the quota manager: a unit is charged on all
// the trees that it names or on none, whatever forests operators have made.
const Forest = "every"

// Book is the objects that bound tenants, as the store has them, and the charges.
//
// Invariant: limits charge exactly the attempts of the leader, trees
// exactly those of them that name a tree, by their unit's path; beside them
// trees hold a unit for the moment between its admission and its attempt.
type Book struct {
	limits *quota.Limits
	// reserved are the same limits with the charges alone whose units have not started.
	// They decide nothing.
	reserved *quota.Limits
	trees    *quota.Manager
	timed    bool // the trees want to know the time
	usage    usage

	resources   map[string]*Quota // by namespace/name
	treeObjects map[string]*Tree
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

// New returns a book without objects. now begins the history of use.
func New(o quota.Options, now time.Time) *Book {
	q := &Book{
		usage: newUsage(now), limits: quota.New(), reserved: quota.New(), trees: quota.NewManager(o), timed: o.MinRunTime > 0,
		resources: map[string]*Quota{}, treeObjects: map[string]*Tree{}, closed: map[string]bool{},
		generation: 1, sampled: now, loadedSeats: map[resource.TxID]map[string]string{},
	}
	mustHold(q.trees.SetMode(quota.Normal))
	mustHold(q.trees.AddForest(Forest))
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
func (q *Book) Limits() *quota.Limits { return q.limits }

// Reserved are the same limits with the charges alone whose units have not started.
func (q *Book) Reserved() *quota.Limits { return q.reserved }

// Trees are the quota trees with their consumers, for readers and for trials that are taken
// back.
func (q *Book) Trees() *quota.Manager { return q.trees }

// Closed are the trees whose deletion is under way. The map changes with the book.
func (q *Book) Closed() map[string]bool { return q.closed }

// IsOpen reports whether units may be charged to a tree.
func (q *Book) IsOpen(tree string) bool { return q.treeObjects[tree] != nil && !q.closed[tree] }

// CloseTree keeps units from a tree that is to be deleted.
func (q *Book) CloseTree(name string) { q.closed[name] = true }

// ReopenTree lets units be charged to a tree again, whose deletion came to nothing.
func (q *Book) ReopenTree(name string) { delete(q.closed, name) }

// Generation grows with every change of the objects that units are charged to.
func (q *Book) Generation() uint64 { return q.generation }

// NoteMoved notes that units may be charged to other objects from now on.
func (q *Book) NoteMoved() { q.generation++ }

// Tree is a tree by its name, nil for none.
func (q *Book) Tree(name string) *Tree { return q.treeObjects[name] }

// TreeNames are the names of the trees, ascending.
func (q *Book) TreeNames() []string { return slices.Sorted(maps.Keys(q.treeObjects)) }

// Quota is a resource quota by its key, "namespace/name", nil for none.
func (q *Book) Quota(key string) *Quota { return q.resources[key] }

// QuotaKeys are the keys of the resource quotas, ascending.
func (q *Book) QuotaKeys() []string { return slices.Sorted(maps.Keys(q.resources)) }

// TakeSeats returns the nodes of units that the store had, by transaction, once.
func (q *Book) TakeSeats() map[resource.TxID]map[string]string {
	seats := q.loadedSeats
	q.loadedSeats = nil
	return seats
}
