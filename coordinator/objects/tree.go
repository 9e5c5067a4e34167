package objects

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tidwall/btree"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// cachedTrees are the quota trees as their keys have them, and the units that are charged
// to them, in the order of commits.
type cachedTrees struct {
	options quota.Options
	mode    record.QuotaMode
	of      map[string]*lead.Tree // by name
	charged *chargedUnits
	// use is the use of the trees as they are now; nil when something has changed since.
	use *treeUse
}

type chargedUnits = btree.BTreeG[*lead.Charged]

func newCachedTrees() cachedTrees {
	return cachedTrees{
		of:      map[string]*lead.Tree{},
		charged: btree.NewBTreeGOptions((*lead.Charged).Before, btree.Options{NoLocks: true}),
	}
}

// ChargeBy has the cache charge units to quota trees by the rules of a configuration,
// which is that of every coordinator. It is called before the first Refresh.
func (c *Cache) ChargeBy(o quota.Options) { c.trees.options = o }

// remakeTree makes a tree from its key.
func (c *Cache) remakeTree(name string, kv record.KV, found bool) error {
	c.stale[Name{QuotaTrees, "", name}] = true
	c.trees.use = nil
	delete(c.trees.of, name)
	if !found {
		return nil
	}
	t, err := lead.ReadTree(kv)
	if err == nil {
		c.trees.of[name] = t
	}
	return err
}

// remakeMode takes over the mode of the trees. A key that cannot be read keeps the next
// leader from leading; reads go on with the mode Normal.
func (c *Cache) remakeMode(kv record.KV, found bool) {
	c.trees.use, c.trees.mode = nil, record.QuotaMode{}
	if !found {
		return
	}
	if mode, err := record.Decode[record.QuotaMode](kv.Key, kv.Value); err == nil {
		c.trees.mode = mode
	}
}

// chargedOf is a unit that holds something as the trees see it.
func (u *cachedUnit) chargedOf() *lead.Charged {
	h := u.holding
	return &lead.Charged{
		TxID: h.tx, Committed: h.committed, Path: u.path, Tenant: u.record.Tenant, Priority: u.record.Priority,
		Demand: u.demand, Charges: h.record.Charges,
	}
}

// charge charges a unit to the trees that its record names.
func (t *cachedTrees) charge(u *cachedUnit) {
	if charged := u.chargedOf(); charged.OnTrees() {
		t.charged.Set(charged)
		t.use = nil
	}
}

// discharge ends that.
func (t *cachedTrees) discharge(u *cachedUnit) {
	if _, was := t.charged.Delete(u.chargedOf()); was {
		t.use = nil
	}
}

// now is the use of the trees as they are now. All views share one between two changes
// of trees and charges.
func (t *cachedTrees) now() *treeUse {
	if t.use == nil {
		t.use = &treeUse{options: t.options, mode: t.mode, of: maps.Clone(t.of), charged: t.charged.Copy()}
	}
	return t.use
}

// treeUse is the use of all trees at one moment. It is computed once, for the first
// reader: 10,000 units take some 30 ms. Any number of goroutines may read it.
type treeUse struct {
	options quota.Options
	mode    record.QuotaMode
	of      map[string]*lead.Tree
	charged *chargedUnits

	once   sync.Once
	shown  map[string]api.QuotaTreeStatus
	broken error
}

// status is the status of a tree that is there.
func (u *treeUse) status(name string) (api.QuotaTreeStatus, error) {
	u.once.Do(func() { u.broken = u.compute() })
	return u.shown[name], u.broken
}

func (u *treeUse) compute() error {
	names := slices.Sorted(maps.Keys(u.of))
	all := make([]*lead.Tree, len(names))
	for i, name := range names {
		all[i] = u.of[name]
	}
	trees, err := lead.NewTrees(u.options, u.mode, all)
	if err != nil {
		return err
	}
	u.charged.Scan(func(c *lead.Charged) bool {
		err = trees.Charge(c)
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("charge the units of the records: %w", err)
	}
	u.shown = make(map[string]api.QuotaTreeStatus, len(names))
	for _, name := range names {
		u.shown[name] = trees.Show(name).Status
	}
	u.charged = nil
	return nil
}

// treeEntry is a quota tree. Its status follows from the units of everybody.
type treeEntry struct{ tree *lead.Tree }

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
