package quota

import (
	"errors"
	"testing"

	"github.com/musterd/muster/resource"
)

func TestARequestIsReplacedWhileNothingIsAllocated(t *testing.T) {
	m := NewManager(Options{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(m.SetMode(Normal))
	_, err := m.AddTree(TreeSpec{Name: "t", Resources: []resource.Name{"cpu"}, Nodes: map[string]NodeSpec{"g": {Quota: resource.Vector{"cpu": 10}}}})
	must(err)
	must(m.AddConsumer(ConsumerSpec{ID: "c", Demands: []Demand{{Tree: "t", Group: "g", Request: resource.Vector{"cpu": 4}}, {Tree: "later", Group: "g", Request: resource.Vector{"cpu": 4}}}}))
	allocated := func(want int64) {
		t.Helper()
		nodes, err := m.Nodes("t")
		must(err)
		if got := nodes[0].Allocated["cpu"]; got != want {
			t.Errorf("%d are allocated, want %d", got, want)
		}
	}
	must(m.SetRequest("c", resource.Vector{"cpu": 7, "gpu": 1}))
	if r, err := m.TryAllocate("t", "c"); err != nil || !r.OK {
		t.Fatal(r, err)
	}
	allocated(7)
	must(m.SetRequest("c", resource.Vector{"cpu": 7, "gpu": 1})) // the same
	if err := m.SetRequest("c", resource.Vector{"cpu": 7}); !errors.Is(err, ErrAllocated) {
		t.Error(err)
	}
	must(m.UndoAllocate("t", "c"))
	allocated(0)
	must(m.SetRequest("c", resource.Vector{"cpu": 11}))
	if r, err := m.Allocate("t", "c"); err != nil || r.OK || r.Refusal.Want != 11 {
		t.Error(r, err)
	}
	if err := m.SetRequest("other", nil); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if err := m.SetRequest("c", resource.Vector{"cpu": -1}); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	allocated(0)
}
