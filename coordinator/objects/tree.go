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
	"github.com/musterd/muster/coordinator/lead"
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
	use *treeUse
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
	spec, status := lead.SpecOf(v.Object)
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
		t.use = &treeUse{of: maps.Clone(t.of), charged: t.charged.Copy(), seats: t.seats.Copy()}
	}
	return t.use
}

// treeUse is the use of all trees at one moment. It is computed once, for the first
// reader: BenchmarkTrees measures that. Any number of goroutines may read it.
type treeUse struct {
	of      map[string]*cachedTree
	charged *btree.BTreeG[*charged]
	seats   *btree.BTreeG[*seats]

	once   sync.Once
	shown  map[string]api.QuotaTreeStatus
	broken error
}

// status is the status of a tree that is there.
func (u *treeUse) status(name string) (api.QuotaTreeStatus, error) {
	u.once.Do(func() { u.broken = u.compute() })
	return u.shown[name], u.broken
}

// compute puts each unit on the nodes that the keys name.
func (u *treeUse) compute() error {
	trees := quota.NewManager(quota.Options{})
	standing := make(map[string]*treeStanding, len(u.of))
	names := slices.Sorted(maps.Keys(u.of))
	for _, name := range names {
		s, err := newTreeStanding(trees, u.of[name])
		if err != nil {
			return err
		}
		standing[name] = s
	}
	for _, c := range u.inOrder() {
		if err := c.stand(trees, standing); err != nil {
			return fmt.Errorf("count the units of the records: %w", err)
		}
	}
	u.shown = make(map[string]api.QuotaTreeStatus, len(names))
	for _, name := range names {
		nodes, err := trees.Nodes(name)
		if err != nil {
			return err
		}
		u.shown[name] = lead.TreeStatus(standing[name].shape, nodes, standing[name].detached)
	}
	u.charged, u.seats = nil, nil
	return nil
}

// counted is a unit with the nodes of its key, if there is one.
type counted struct {
	*charged
	since resource.Revision // when it came to its nodes
	seats map[string]string
}

// inOrder are the units in the order in which they came to their nodes.
func (u *treeUse) inOrder() []counted {
	units := make([]counted, 0, u.charged.Len())
	u.charged.Scan(func(c *charged) bool {
		unit := counted{c, c.rev, nil}
		if s, moved := u.seats.Get(&seats{tx: c.tx}); moved {
			unit.since, unit.seats = s.rev, s.nodes
		}
		units = append(units, unit)
		return true
	})
	slices.SortFunc(units, func(a, b counted) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.rev, b.rev), cmp.Compare(a.tx, b.tx))
	})
	return units
}

// treeStanding is a tree while units are put on it.
type treeStanding struct {
	*cachedTree
	shape    quota.Shape
	leaves   map[string]bool // the nodes: true for a leaf
	detached map[string]bool // by path
}

func newTreeStanding(trees *quota.Manager, t *cachedTree) (*treeStanding, error) {
	shape, err := trees.AddTree(t.spec)
	if err != nil {
		return nil, err
	}
	nodes, err := trees.Nodes(t.spec.Name)
	if err != nil {
		return nil, err
	}
	s := &treeStanding{t, shape, make(map[string]bool, len(nodes)), map[string]bool{}}
	for _, n := range nodes {
		s.leaves[n.Name] = n.Leaf
	}
	return s, nil
}

// name is the name of today of a node.
func (t *treeStanding) name(of string) string { return cmp.Or(t.former[of], of) }

// stand puts a unit on its nodes. A unit whose group the tree lacks is on the root, and one
// that the tree cannot count is named among the detached.
func (c *counted) stand(trees *quota.Manager, standing map[string]*treeStanding) error {
	consumer := quota.ConsumerSpec{ID: c.path}
	var on []*treeStanding
	var nodes []string
	for i := range c.charges {
		charge := &c.charges[i]
		t := standing[charge.Tree]
		if t == nil { // of a namespace, or of a tree that has gone
			continue
		}
		group := t.name(charge.Group)
		leaf, known := t.leaves[group]
		if !leaf {
			t.detached[c.path] = true
		}
		if !known {
			group = t.shape.Root
		}
		if group == "" { // the tree is empty
			continue
		}
		consumer.Demands = append(consumer.Demands, quota.Demand{Tree: charge.Tree, Group: group, Request: charge.Request})
		on, nodes = append(on, t), append(nodes, t.name(cmp.Or(c.seats[charge.Tree], charge.Node, group)))
	}
	if len(on) == 0 {
		return nil
	}
	if err := trees.AddConsumer(consumer); err != nil {
		return err
	}
	for i, t := range on {
		counted, err := trees.Stand(consumer.Demands[i].Tree, c.path, nodes[i])
		if err != nil {
			return err
		}
		if !counted {
			t.detached[c.path] = true
		}
	}
	return nil
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
