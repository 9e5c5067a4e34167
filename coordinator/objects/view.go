package objects

import (
	"cmp"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/tidwall/btree"

	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/resource"
)

// table is the objects of one kind by position. A copy takes O(1): it shares all
// nodes of the tree until one of the two changes.
type table = btree.Map[string, entry]

// waiting is a unit in the queue.
type waiting struct {
	key     queue.Key
	queue   string
	name    string // "namespace/name"
	members int
}

// order is the waiting units, the first one first; copies are as cheap.
type order = btree.BTreeG[waiting]

func newOrder() *order {
	return btree.NewBTreeGOptions(func(a, b waiting) bool { return a.key.Compare(b.key) < 0 }, btree.Options{NoLocks: true})
}

// newLines is the waiting units by queue, the first of each queue first.
func newLines() *order {
	return btree.NewBTreeGOptions(func(a, b waiting) bool {
		return cmp.Or(cmp.Compare(a.queue, b.queue), a.key.Compare(b.key)) < 0
	}, btree.Options{NoLocks: true})
}

// View is all objects at one revision, at a time. It never changes, and any
// number of goroutines may read it.
type View struct {
	revision resource.Revision
	now      time.Time
	tables   [kinds]*table
	queue    *order
	lines    *order
	trees    *treeUse
	since    time.Time // of the events
}

// EventsSince is the instant from which on every event is there; the zero value where
// none are kept.
func (v *View) EventsSince() time.Time { return v.since }

// Revision is the store's revision that the view shows.
func (v *View) Revision() resource.Revision { return v.revision }

// At is the same view for a reader at another time.
func (v *View) At(now time.Time) *View {
	later := *v
	later.now = now
	return &later
}

// Item is an object of a View that was not rendered yet.
type Item struct {
	Name
	view  *View
	entry entry
}

// Object renders the object: a pointer to the API's type of its kind, which is
// the caller's own.
func (i Item) Object() any {
	o := i.entry.base()
	i.entry.figures(o, i.view)
	return o
}

// Get finds an object.
func (v *View) Get(n Name) (Item, bool) {
	e, found := v.tables[n.Kind].Get(n.position())
	return Item{n, v, e}, found
}

// Len counts the objects of a kind.
func (v *View) Len(k Kind) int { return v.tables[k].Len() }

// After yields the objects of a kind in a namespace, "" being all namespaces, in
// the order of namespace and name, from the first object beyond after, which
// need not exist; the zero value begins with the first one. It takes O(log n) to begin.
func (v *View) After(k Kind, namespace string, after Name) iter.Seq[Item] {
	return func(yield func(Item) bool) {
		within := ""
		if namespace != "" {
			within = namespace + "\x00"
		}
		from := within
		if after.Name != "" {
			from = max(from, after.position()+"\x00") // no name is between
		}
		v.tables[k].Ascend(from, func(position string, e entry) bool {
			if !strings.HasPrefix(position, within) {
				return false
			}
			namespace, name, _ := strings.Cut(position, "\x00")
			return yield(Item{Name{k, namespace, name}, v, e})
		})
	}
}

// queuePosition is a unit's place in its queue, 1 for the first; 0 where it has none. The
// members of a group have the place of the first.
func (v *View) queuePosition(name string, k queue.Key) int {
	if _, found := v.lines.Get(waiting{queue: name, key: k}); !found {
		return 0
	}
	first := queue.Key{Priority: math.MaxInt32}
	place := k
	place.Path = ""
	return v.ahead(name, place) - v.ahead(name, first) + 1
}

// ahead counts the units of all queues, by queue, before a place in one of them.
func (v *View) ahead(name string, k queue.Key) int {
	from, to := 0, v.lines.Len() // the place is in [from, to]
	for from < to {
		middle := (from + to) / 2
		if at, _ := v.lines.GetAt(middle); cmp.Or(cmp.Compare(at.queue, name), at.key.Compare(k)) < 0 {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from
}
