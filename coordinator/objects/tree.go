package objects

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/btree"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// cachedTrees are the quota trees as their keys have them, the units that are charged to
// them, and the nodes that count these units.
type cachedTrees struct {
	of      map[string]*cachedTree // by name
	charged *btree.BTreeG[*charged]
	seats   *btree.BTreeG[*seats]
	// use is the use of the trees as they are now; nil when something has changed since.
	use    *treeUse
	stands *shared
}

// cachedTree is a tree. It never changes.
type cachedTree struct {
	shown.Versioned[api.QuotaTree]
	spec   quota.TreeSpec
	former map[string]string // former names of nodes, each with its name of today
}

// charged is a unit that holds something of quota trees, by its record.
type charged struct {
	tx      resource.TxID
	rev     resource.Revision // of the commit
	path    string
	charges []record.Charge
}

func (c *charged) before(o *charged) bool { return strings.Compare(string(c.tx), string(o.tx)) < 0 }

// seats are where a unit is counted that has moved since its commit.
type seats struct {
	tx    resource.TxID
	rev   resource.Revision
	nodes map[string]string // by tree
}

func (s *seats) before(o *seats) bool { return strings.Compare(string(s.tx), string(o.tx)) < 0 }

func newCachedTrees() cachedTrees {
	return cachedTrees{
		of:      map[string]*cachedTree{},
		charged: btree.NewBTreeGOptions((*charged).before, btree.Options{NoLocks: true}),
		seats:   btree.NewBTreeGOptions((*seats).before, btree.Options{NoLocks: true}),
		stands:  &shared{},
	}
}

// remakeTree makes a tree from its key.
func (c *Cache) remakeTree(name string, kv record.KV, found bool) error {
	c.stale[Name{QuotaTrees, "", name}] = true
	c.trees.use = nil
	delete(c.trees.of, name)
	if !found {
		return nil
	}
	t, err := readTree(kv)
	if err == nil {
		c.trees.of[name] = t
	}
	return err
}

func readTree(kv record.KV) (*cachedTree, error) {
	v, err := readQuota(kv, api.DecodeQuotaTree, func(o *api.QuotaTree) *api.ObjectMeta { return &o.Metadata })
	if err != nil {
		return nil, err
	}
	rec, err := record.Decode[record.Quota](kv.Key, kv.Value)
	if err != nil {
		return nil, err
	}
	spec, status := charges.SpecOf(v.Object)
	if status != nil {
		return nil, fmt.Errorf("%s: document: %w", kv.Key, status)
	}
	if _, err := quota.NewManager(quota.Options{}).AddTree(spec); err != nil {
		return nil, fmt.Errorf("%s: document: %w", kv.Key, err)
	}
	return &cachedTree{v, spec, rec.Former}, nil
}

// remakeSeats takes over the nodes of a transaction.
func (t *cachedTrees) remakeSeats(tx resource.TxID, kv record.KV, found bool) error {
	t.use = nil
	if !found {
		t.seats.Delete(&seats{tx: tx})
		return nil
	}
	rec, err := record.Decode[record.Seats](kv.Key, kv.Value)
	if err == nil {
		t.seats.Set(&seats{tx, kv.ModRev, rec.Nodes})
	}
	return err
}

// charge charges a unit to the trees that its record names.
func (t *cachedTrees) charge(u *cachedUnit) {
	h := u.holding
	if slices.ContainsFunc(h.record.Charges, func(c record.Charge) bool { return c.Tree != quota.Tree }) {
		t.charged.Set(&charged{h.tx, h.committed, u.path, h.record.Charges})
		t.use = nil
	}
}

// discharge ends that.
func (t *cachedTrees) discharge(tx resource.TxID) {
	if _, was := t.charged.Delete(&charged{tx: tx}); was {
		t.use = nil
	}
}

// now is the use of the trees as they are now. All views share one between two changes
// of trees and charges.
func (t *cachedTrees) now() *treeUse {
	if t.use == nil {
		t.use = &treeUse{of: maps.Clone(t.of), charged: t.charged.Copy(), seats: t.seats.Copy(), stands: t.stands}
	}
	return t.use
}

// treeUse is the use of all trees at one moment. It is computed once, for the first
// reader: BenchmarkTrees measures that. Any number of goroutines may read it.
type treeUse struct {
	of      map[string]*cachedTree
	charged *btree.BTreeG[*charged]
	seats   *btree.BTreeG[*seats]
	stands  *shared // with the uses of other moments

	once   sync.Once
	shown  map[string]api.QuotaTreeStatus
	broken error
}

// status is the status of a tree that is there.
func (u *treeUse) status(name string) (api.QuotaTreeStatus, error) {
	u.once.Do(func() {
		u.shown, u.broken = u.stands.at(u)
		u.charged, u.seats, u.stands = nil, nil, nil
	})
	return u.shown[name], u.broken
}

// units are the units that are charged, ascending by transaction.
func (u *treeUse) units() []counted {
	units := make([]counted, 0, u.charged.Len())
	moved := u.seats.Items()
	u.charged.Scan(func(c *charged) bool {
		for len(moved) > 0 && moved[0].tx < c.tx {
			moved = moved[1:]
		}
		unit := counted{charged: c}
		if len(moved) > 0 && moved[0].tx == c.tx {
			unit.moved = moved[0]
		}
		units = append(units, unit)
		return true
	})
	return units
}

// counted is a unit with the nodes to which it has moved since its commit, nil where the
// unit is where its record says.
type counted struct {
	*charged
	moved *seats
}

// since is the revision at which the unit came to its nodes.
func (c counted) since() resource.Revision {
	if c.moved != nil {
		return c.moved.rev
	}
	return c.rev
}

// seat is the node of a tree that the unit's keys name, "" for none.
func (c counted) seat(charge *record.Charge) string {
	if c.moved != nil && c.moved.nodes[charge.Tree] != "" {
		return c.moved.nodes[charge.Tree]
	}
	return charge.Node
}

// compareArrival orders units as they came to their nodes.
func compareArrival(a, b counted) int {
	return cmp.Or(cmp.Compare(a.since(), b.since()), cmp.Compare(a.rev, b.rev), cmp.Compare(a.tx, b.tx))
}

// treeEntry is a quota tree. Its status follows from the units of everybody.
type treeEntry struct{ tree *cachedTree }

func (e *treeEntry) base() any {
	o := e.tree.Object
	return &o
}

func (e *treeEntry) figures(object any, v *View) {
	t := object.(*api.QuotaTree)
	if status, err := v.trees.status(t.Metadata.Name); err == nil {
		t.Status = status
	}
}

func (e *treeEntry) size() int { return 2<<10 + 2*len(e.tree.Object.Spec) }

// Tree returns a quota tree with its status. An error says that the records charge the
// trees in a way that no leader could.
func (v *View) Tree(name string) (t *api.QuotaTree, found bool, err error) {
	e, found := at[*treeEntry](v, Name{QuotaTrees, "", name})
	if !found {
		return nil, false, nil
	}
	t = e.base().(*api.QuotaTree)
	t.Status, err = v.trees.status(name)
	return t, true, err
}

// Trees are all quota trees by name.
func (v *View) Trees() (all []api.QuotaTree, newest resource.Revision, err error) {
	all, newest = []api.QuotaTree{}, v.revision
	for i := range v.After(QuotaTrees, "", Name{}) {
		t, _, err := v.Tree(i.Name.Name)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, *t)
	}
	return all, newest, nil
}
