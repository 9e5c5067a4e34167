package objects

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// resourcesWorld is a cache and the keys that it follows.
type resourcesWorld struct {
	*testing.T
	cache *Cache
	kvs   map[string]record.KV
	rev   resource.Revision
}

// put writes a key; a value of nil deletes the key. The events of the revision come back.
func (w *resourcesWorld) put(key string, value []byte) (events string) {
	w.Helper()
	w.rev++
	delete(w.kvs, key)
	if value != nil {
		w.kvs[key] = record.KV{Key: key, Value: value, ModRev: w.rev}
	}
	w.cache.Touch(key)
	before := w.names()
	if err := w.cache.Refresh(w.kvs, w.rev, time.Unix(0, 0)); err != nil {
		w.Fatal(err)
	}
	after := w.names()
	for _, name := range after {
		if !slices.Contains(before, name) {
			events += "+" + name
		}
	}
	for _, name := range before {
		if !slices.Contains(after, name) {
			events += "-" + name
		}
	}
	return events
}

func (w *resourcesWorld) names() (names []string) {
	for r := range w.cache.View(w.rev, time.Unix(0, 0)).Resources() {
		names = append(names, fmt.Sprintf("%s:%s:%d ", r.Object.Metadata.Name, strings.Join(r.Object.Status.Sources, ","), r.Object.Status.Nodes))
	}
	return names
}

func (w *resourcesWorld) node(name string, capacity resource.Vector) string {
	w.Helper()
	value := record.MustEncode(record.NodeSpec{Capacity: capacity, AgentAddr: name + ":1"})
	if capacity == nil {
		value = nil
	}
	return w.put(record.NodeSpecKey(resource.NodeID(name)), value)
}

// The names of resources come and go with the nodes that declare them and with the
// objects of operators; a built-in name is always there.
func TestNamesOfResourcesComeFromThreeSources(t *testing.T) {
	w := &resourcesWorld{T: t, cache: New(), kvs: map[string]record.KV{}}
	seat := record.MustEncode(record.Object{UID: "r", Name: "hugepages-2Mi", Document: []byte(`{"metadata":{"name":"hugepages-2Mi"},"spec":{"displayName":"pages"}}`)})
	if got := strings.Join(w.names(), ""); got != "cpu:BuiltIn:0 ephemeral-storage:BuiltIn:0 memory:BuiltIn:0 muster.io/cores:BuiltIn:0 nvidia.com/gpu:BuiltIn:0 pods:BuiltIn:0 " {
		t.Errorf("at first: %s", got)
	}
	for _, c := range []struct{ after, got, want string }{
		{"a first node", w.node("n1", resource.Vector{"hugepages-2Mi": 4}), "+hugepages-2Mi:Node:1 "},
		{"a second node", w.node("n2", resource.Vector{"hugepages-2Mi": 8}), "+hugepages-2Mi:Node:2 -hugepages-2Mi:Node:1 "},
		{"more of it", w.node("n2", resource.Vector{"hugepages-2Mi": 9}), ""},
		{"an object", w.put(record.NamedKey(record.ResourcesPrefix, "hugepages-2Mi"), seat), "+hugepages-2Mi:Node,Operator:2 -hugepages-2Mi:Node:2 "},
		{"the end of a node", w.node("n1", nil), "+hugepages-2Mi:Node,Operator:1 -hugepages-2Mi:Node,Operator:2 "},
		{"none on the other", w.node("n2", resource.Vector{"hugepages-2Mi": 0}), "+hugepages-2Mi:Operator:0 -hugepages-2Mi:Node,Operator:1 "},
		{"the end of the object", w.put(record.NamedKey(record.ResourcesPrefix, "hugepages-2Mi"), nil), "-hugepages-2Mi:Operator:0 "},
	} {
		if c.got != c.want {
			t.Errorf("after %s: %q, want %q", c.after, c.got, c.want)
		}
	}
}

// A name with a domain is that of the earliest node, and a node that declares the name
// otherwise does not count.
func TestADeclaredNameIsTheEarliestNodes(t *testing.T) {
	w := &resourcesWorld{T: t, cache: New(), kvs: map[string]record.KV{}}
	node := func(name, created string, counts ...grant.Count) string {
		return w.put(record.NodeSpecKey(resource.NodeID(name)), record.MustEncode(record.NodeSpec{
			Capacity: grant.AmountsOf(counts), Counts: counts, Created: created, AgentAddr: name + ":1",
		}))
	}
	boards := grant.Count{Name: "example.com/fpga", Amount: 2, Kind: grant.KindCount, Unit: "boards"}
	bytes := grant.Count{Name: "example.com/fpga", Amount: 2, Kind: grant.KindBytes}
	shown := func() string {
		v, found := w.cache.View(w.rev, time.Unix(0, 0)).Resource("example.com/fpga")
		return fmt.Sprintf("%t %s %s %d", found, v.Object.Spec.Kind, v.Object.Spec.Unit, v.Object.Status.Nodes)
	}
	for _, c := range []struct {
		after, name, created string
		counts               []grant.Count
		want                 string
	}{
		{"the later node alone", "a", "2026-02-02T00:00:00Z", []grant.Count{bytes}, "true bytes example.com/fpga 1"},
		{"the earlier node too", "b", "2026-01-01T00:00:00Z", []grant.Count{boards}, "true count boards 1"},
		{"the later node agrees", "a", "2026-02-02T00:00:00Z", []grant.Count{boards}, "true count boards 2"},
		{"the earlier node has none", "b", "2026-01-01T00:00:00Z", nil, "true count boards 1"},
		{"no node has any", "a", "2026-02-02T00:00:00Z", nil, "false   0"},
	} {
		if node(c.name, c.created, c.counts...); shown() != c.want {
			t.Errorf("after %s: %s, want %s", c.after, shown(), c.want)
		}
	}
}
