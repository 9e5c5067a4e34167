package lead

import (
	"fmt"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Tree is a quota tree as its key has it. It never changes.
type Tree struct {
	Object api.QuotaTree // without its status
	rev    resource.Revision
	spec   quota.TreeSpec
	former map[string]string
}

// ReadTree reads a tree from its key. The tree is one that a leader could use: its
// status can be shown.
func ReadTree(kv record.KV) (*Tree, error) {
	t, err := readTree(kv)
	if err != nil {
		return nil, err
	}
	if _, err := NewTrees(quota.Options{}, record.QuotaMode{}, []*Tree{t}); err != nil {
		return nil, fmt.Errorf("%s: %w", kv.Key, err)
	}
	return t, nil
}

func readTree(kv record.KV) (*Tree, error) {
	rec, err := record.Decode[record.Quota](kv.Key, kv.Value)
	if err != nil {
		return nil, err
	}
	object, status := api.DecodeQuotaTree(rec.Document)
	if status != nil {
		return nil, fmt.Errorf("%s: document: %w", kv.Key, status)
	}
	object.Metadata = MetadataOf(rec, object.Metadata, kv.ModRev)
	spec, status := SpecOf(*object)
	if status != nil {
		return nil, fmt.Errorf("%s: document: %w", kv.Key, status)
	}
	return &Tree{*object, kv.ModRev, spec, rec.Former}, nil
}

// Charged is a unit that holds something, and its charges, as the store's keys have
// them.
type Charged struct {
	TxID      resource.TxID
	Committed resource.Revision
	Path      string
	Tenant    resource.TenantID
	Priority  int32
	Demand    api.QuotaDemand
	Charges   []record.Charge
}

// Before reports whether a unit is charged before another one: in the order of commits.
func (c *Charged) Before(o *Charged) bool {
	if c.Committed != o.Committed {
		return c.Committed < o.Committed
	}
	return strings.Compare(string(c.TxID), string(o.TxID)) < 0
}

// OnTrees reports whether the unit is charged to a quota tree at all.
func (c *Charged) OnTrees() bool {
	for i := range c.Charges {
		if c.Charges[i].Tree != quota.Tree {
			return true
		}
	}
	return false
}

// Trees are quota trees and the units that are charged to them, made of keys alone: the
// units are charged in the order of their commits, as a leader charges them when its
// term begins. So every coordinator that has the same keys has the same Trees. Not for
// use by several goroutines at once.
type Trees struct{ quotas *quotas }

// NewTrees returns trees to which nobody is charged yet.
func NewTrees(o quota.Options, mode record.QuotaMode, trees []*Tree) (*Trees, error) {
	o.MinRunTime = 0 // nobody is evicted here
	q := &quotas{trees: quota.NewManager(o), treeObjects: map[string]*quotaTree{}, closed: map[string]bool{}, mode: quotaMode{record: mode}}
	must(q.trees.AddForest(everyTree))
	must(q.applyMode())
	for _, t := range trees {
		if _, err := q.setTree(t.Object, t.rev, t.spec, t.former); err != nil {
			return nil, err
		}
	}
	return &Trees{q}, nil
}

// Charge charges one more unit. An error says that no leader could charge it.
func (t *Trees) Charge(c *Charged) error {
	_, err := t.quotas.chargeLive(consumerOf(c.Path, c.Tenant, c.Priority, c.Demand, c.Charges))
	return err
}

// Show shows a tree that is there.
func (t *Trees) Show(name string) *api.QuotaTree { return t.quotas.show(t.quotas.treeObjects[name]) }
