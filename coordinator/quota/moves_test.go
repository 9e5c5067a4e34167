package quota_test

import (
	"testing"

	"github.com/musterd/muster/coordinator/quota"
)

// TestWhichAllocationsMoveOthers: a claim may name other victims after those.
func TestWhichAllocationsMoveOthers(t *testing.T) {
	mine := func(gpusOf int64, priority int) quota.Demand {
		return quota.Demand{Group: "vision", Request: gpus(gpusOf), Priority: priority}
	}
	for name, c := range map[string]struct {
		before []quota.Demand
		demand quota.Demand
		then   func(m *quota.Manager) error
		moved  bool
	}{
		"it fits in its group":                    {demand: mine(4, 0)},
		"it borrows":                              {before: []quota.Demand{mine(4, 0)}, demand: mine(1, 0)},
		"it pushes one of lower priority up":      {before: []quota.Demand{mine(4, 0)}, demand: mine(1, 5), moved: true},
		"it evicts a borrower":                    {before: []quota.Demand{mine(4, 0), mine(4, 0)}, demand: quota.Demand{Group: "nlp", Request: gpus(1)}, moved: true},
		"it pushes one up, which is taken back":   {before: []quota.Demand{mine(4, 0)}, demand: mine(1, 5), then: func(m *quota.Manager) error { return m.UndoAllocate("lab", "new") }, moved: true},
		"another call has followed: nobody knows": {demand: mine(4, 0), then: func(m *quota.Manager) error { m.Deallocate("lab", "new"); return nil }, moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := lab(quota.Options{}, map[string]quota.NodeSpec{"all": {Quota: gpus(8)}, "vision": {Parent: "all", Quota: gpus(4)}, "nlp": {Parent: "all", Quota: gpus(4)}})
			for i, d := range c.before {
				arrive(m, string(rune('a'+i)), "", d)
			}
			c.demand.Tree = "lab"
			if err := m.AddConsumer(quota.ConsumerSpec{ID: "new", Demands: []quota.Demand{c.demand}}); err != nil {
				t.Fatal(err)
			}
			if r, err := m.TryAllocate("lab", "new"); err != nil || !r.OK {
				t.Fatal(r, err)
			}
			if c.then != nil {
				if err := c.then(m); err != nil {
					t.Fatal(err)
				}
			}
			if moved := m.HasMovedOthers("new"); moved != c.moved {
				t.Errorf("has moved others: %t, want %t", moved, c.moved)
			}
		})
	}
}
