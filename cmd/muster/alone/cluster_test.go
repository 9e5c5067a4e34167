package alone_test

import (
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/alone"
	"github.com/musterd/muster/coordinator/lead"
)

// TestAnAllocationBeginsWhenThereIsRoom: everything that follows from a request has
// happened when the request returns.
func TestAnAllocationBeginsWhenThereIsRoom(t *testing.T) {
	var begun []string
	rules := lead.Rules{NamespaceAllocations: 10, Namespaces: map[string]lead.Namespace{"default": {Admission: "queue"}}}
	c := alone.New(alone.Options{Nodes: 1, Rules: rules, Begun: func(path string) { begun = append(begun, path) }}, time.Unix(1_700_000_000, 0))
	for _, name := range []string{"a", "b"} {
		document := []byte(`{"metadata":{"name":"` + name + `"},"spec":{"resources":{"requests":{"nvidia.com/gpu":"8"}}}}`)
		doc, status := api.DecodeAllocation(document)
		if status != nil {
			t.Fatal(status)
		}
		made, status := c.Ask(lead.CreateAllocation{Submitted: lead.Submitted{Namespace: "default", Document: document}, Document: doc})
		if status != nil || made.(lead.Created).Allocation == nil {
			t.Fatalf("%s: %v, %v", name, made, status)
		}
	}
	if want := []string{"default/alloc/a/0"}; !slices.Equal(begun, want) {
		t.Fatalf("%v has begun, want %v", begun, want)
	}
	c.AdvanceTo(c.Now().Add(time.Hour))
	if _, status := c.Ask(lead.DeleteAllocation{Namespace: "default", Name: "a", Options: api.DeleteOptions{GracePeriodSeconds: new(int64)}}); status != nil {
		t.Fatal(status)
	}
	if want := []string{"default/alloc/a/0", "default/alloc/b/0"}; !slices.Equal(begun, want) {
		t.Errorf("%v has begun, want %v", begun, want)
	}
	c.Lead()
	if _, units, live, queued := c.Leader().Sizes(); units != 1 || live != 1 || queued != 0 {
		t.Errorf("the next leader has %d units, %d live and %d that wait", units, live, queued)
	}
	if err := c.Leader().Check(); err != nil || len(c.Errors()) > 0 {
		t.Error(err, c.Errors())
	}
}
