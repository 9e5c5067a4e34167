package edit_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// world is the state that changes are judged by, and the store that they are written to.
type world struct {
	*edit.Objects
	contents map[string]edit.Contents
	trees    map[string]tree
	declared map[resource.Name]resource.NodeID
	users    map[resource.Name]string
	lines    map[string][2]int // waiting and running members, by queue
	keys     map[string]record.KV
	rev      resource.Revision
	drawn    int
}

// tree has a node for each key, true for a leaf.
type tree map[string]bool

func (t tree) Has(node string) bool  { _, has := t[node]; return has }
func (t tree) Leaf(node string) bool { return t[node] }

func newWorld() *world {
	return &world{
		Objects: edit.New(), contents: map[string]edit.Contents{}, declared: map[resource.Name]resource.NodeID{"cpu": "n1", "hugepages-2Mi": "n1"},
		users: map[resource.Name]string{}, keys: map[string]record.KV{},
		trees: map[string]tree{"org": {"all": false, "team": true}, "service": {"all": true}},
	}
}

func (w *world) Contents(namespace string) edit.Contents { return w.contents[namespace] }

func (w *world) Tree(name string) (edit.Tree, bool) { t, found := w.trees[name]; return t, found }

func (w *world) Members(queue string) (waiting, running int) {
	return w.lines[queue][0], w.lines[queue][1]
}

func (w *world) DeclaredBy(name resource.Name) resource.NodeID { return w.declared[name] }

func (w *world) Describe(name resource.Name) registry.Entry { return registry.Describe(name) }

func (w *world) UserOf(name resource.Name) string { return w.users[name] }

func (w *world) Owner(namespace string) resource.TenantID {
	if k := w.Namespaces.Get(namespace); k != nil {
		return edit.OwnerOf(&k.Object)
	}
	return resource.TenantID(namespace)
}

func (w *world) view() edit.View {
	return edit.View{Objects: w.Objects, Cluster: w, Stamp: "2026-07-01T00:00:00Z", UID: func(kind string) string {
		w.drawn++
		return fmt.Sprintf("%s-%d", kind, w.drawn)
	}}
}

// land carries a write out.
func (w *world) land(write edit.Write) any {
	w.rev++
	if write.Op.Delete {
		delete(w.keys, write.Op.Key)
	} else {
		w.keys[write.Op.Key] = record.KV{Key: write.Op.Key, Value: write.Op.Value, ModRev: w.rev}
	}
	write.Landed(w.rev)
	return write.Result()
}

// put writes an object, or returns the refusal.
func put[T any](w *world, object *T, create bool) (*T, edit.Write, *api.Status) {
	write, status := edit.Of[T](w.Objects).Put(w.view(), object, create)
	if status != nil {
		return nil, write, status
	}
	return w.land(write).(*T), write, nil
}

func remove[T any](w *world, name string, require api.Preconditions) (edit.Write, *api.Status) {
	write, status := edit.Of[T](w.Objects).Delete(w.view(), name, require)
	if status == nil {
		w.land(write)
	}
	return write, status
}

func tenant(name string) *api.Tenant { return &api.Tenant{Metadata: api.ObjectMeta{Name: name}} }

func namespace(name, tenant string) *api.Namespace {
	return &api.Namespace{Metadata: api.ObjectMeta{Name: name}, Spec: api.NamespaceSpec{Tenant: tenant}}
}

func forest(name string, trees ...string) *api.QuotaForest {
	return &api.QuotaForest{Metadata: api.ObjectMeta{Name: name}, Spec: api.QuotaForestSpec{Trees: trees}}
}

func binding(name, forest string, groups map[string]string) *api.QuotaBinding {
	return &api.QuotaBinding{Metadata: api.ObjectMeta{Name: name}, Spec: api.QuotaBindingSpec{Forest: forest, Groups: groups}}
}

func seat(scope string) *api.Resource {
	return &api.Resource{Metadata: api.ObjectMeta{Name: "example.com/seat"}, Spec: api.ResourceSpec{Unit: "seats", Scope: scope}}
}

func must[T any](t *testing.T, w *world, object *T) *T {
	t.Helper()
	made, _, status := put(w, object, true)
	if status != nil {
		t.Fatal(status)
	}
	return made
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, w *world) *api.Status
		code   int
		want   string
	}{
		"a second creation": {func(t *testing.T, w *world) *api.Status {
			must(t, w, tenant("a"))
			_, _, status := put(w, tenant("a"), true)
			return status
		}, 409, "tenant a already exists"},
		"an update of an object that is gone": {func(t *testing.T, w *world) *api.Status {
			a := tenant("a")
			a.Metadata.ResourceVersion = "7"
			_, _, status := put(w, a, false)
			return status
		}, 409, "tenant a does not exist any more, the update was made from resourceVersion 7"},
		"an update from an older version": {func(t *testing.T, w *world) *api.Status {
			first := must(t, w, tenant("a"))
			if _, _, status := put(w, tenant("a"), false); status != nil {
				t.Fatal(status)
			}
			_, _, status := put(w, first, false)
			return status
		}, 409, "tenant a is at resourceVersion 2, the change was made from 1"},
		"a deletion of an object of another uid": {func(t *testing.T, w *world) *api.Status {
			must(t, w, tenant("a"))
			_, status := remove[api.Tenant](w, "a", api.Preconditions{UID: "tenant-9"})
			return status
		}, 409, "tenant a has the uid tenant-1, the change is for the uid tenant-9"},
		"a deletion of nothing": {func(t *testing.T, w *world) *api.Status {
			_, status := remove[api.QuotaForest](w, "f", api.Preconditions{})
			return status
		}, 404, "quota forest f not found"},
		"a tenant with namespaces": {func(t *testing.T, w *world) *api.Status {
			must(t, w, tenant("a"))
			must(t, w, namespace("b", "a"))
			must(t, w, namespace("c", "a"))
			_, status := remove[api.Tenant](w, "a", api.Preconditions{})
			return status
		}, 409, "tenant a owns 2 namespaces, the first is b"},
		"a namespace of a tenant that is none": {func(t *testing.T, w *world) *api.Status {
			_, _, status := put(w, namespace("b", "a"), true)
			return status
		}, 422, "spec.tenant: tenant a does not exist"},
		"another owner for a namespace with work": {func(t *testing.T, w *world) *api.Status {
			must(t, w, tenant("a"))
			w.contents["b"] = edit.Contents{Allocations: 1, Jobs: 2}
			_, _, status := put(w, namespace("b", "a"), true)
			return status
		}, 409, "from tenant b to tenant a while it has 1 allocation and 2 jobs"},
		"a namespace with objects": {func(t *testing.T, w *world) *api.Status {
			must(t, w, namespace("b", ""))
			must(t, w, binding("b", "", map[string]string{"org": "team"}))
			w.contents["b"] = edit.Contents{Jobs: 1, ResourceQuotas: 3}
			_, status := remove[api.Namespace](w, "b", api.Preconditions{})
			return status
		}, 409, "namespace b has 1 job, 3 resource quotas and 1 quota binding"},
		"a forest of a tree that is none": {func(t *testing.T, w *world) *api.Status {
			_, _, status := put(w, forest("f", "org", "none"), true)
			return status
		}, 422, "spec.trees[1]: quota tree none does not exist"},
		"a tree in two forests": {func(t *testing.T, w *world) *api.Status {
			must(t, w, forest("f", "org"))
			_, _, status := put(w, forest("g", "org"), true)
			return status
		}, 409, "spec.trees[0]: quota tree org is in forest f already"},
		"a forest that a namespace is bound to": {func(t *testing.T, w *world) *api.Status {
			must(t, w, forest("f", "org"))
			must(t, w, binding("b", "f", map[string]string{"org": "team"}))
			_, status := remove[api.QuotaForest](w, "f", api.Preconditions{})
			return status
		}, 409, "quota forest f is in use: namespace b is bound to it"},
		"a tree more, without a group of a bound namespace": {func(t *testing.T, w *world) *api.Status {
			must(t, w, forest("f", "org"))
			must(t, w, binding("b", "f", map[string]string{"org": "team"}))
			_, _, status := put(w, forest("f", "org", "service"), false)
			return status
		}, 409, "namespace b is bound to it and has no group on tree service"},
		"a resource that a quota names": {func(t *testing.T, w *world) *api.Status {
			must(t, w, seat("cluster"))
			w.users["example.com/seat"] = "resource quota q of namespace n"
			_, status := remove[api.Resource](w, "example.com/seat", api.Preconditions{})
			return status
		}, 409, "resource example.com/seat is in use: resource quota q of namespace n names it"},
		"a resource that a node declares": {func(t *testing.T, w *world) *api.Status {
			must(t, w, seat("node"))
			w.declared["example.com/seat"] = "n1"
			_, status := remove[api.Resource](w, "example.com/seat", api.Preconditions{})
			return status
		}, 409, "resource example.com/seat is in use: node n1 names it"},
		"a built-in resource that nobody wrote": {func(t *testing.T, w *world) *api.Status {
			_, status := remove[api.Resource](w, "pods", api.Preconditions{})
			return status
		}, 409, "resource pods is built in, and no operator has changed it"},
		"a declared resource that nobody wrote": {func(t *testing.T, w *world) *api.Status {
			_, status := remove[api.Resource](w, "hugepages-2Mi", api.Preconditions{})
			return status
		}, 409, "resource hugepages-2Mi is in use: node n1 declares it"},
		"a queue with work": {func(t *testing.T, w *world) *api.Status {
			must(t, w, &api.Queue{Metadata: api.ObjectMeta{Name: "train"}})
			w.lines = map[string][2]int{"train": {3, 1}}
			_, status := remove[api.Queue](w, "train", api.Preconditions{})
			return status
		}, 409, "queue train has 3 waiting members and 1 running member: move or end them first"},
		"a queue that nobody wrote": {func(t *testing.T, w *world) *api.Status {
			w.lines = map[string][2]int{"train": {3, 0}}
			_, status := remove[api.Queue](w, "train", api.Preconditions{})
			return status
		}, 409, "queue train has no rules to delete"},
		"the default queue, which nobody wrote": {func(t *testing.T, w *world) *api.Status {
			_, status := remove[api.Queue](w, "default", api.Preconditions{})
			return status
		}, 409, "queue default has no rules to delete"},
		"a resource that is none": {func(t *testing.T, w *world) *api.Status {
			_, status := remove[api.Resource](w, "disk", api.Preconditions{})
			return status
		}, 404, "resource disk not found"},
		"another kind for a built-in resource": {func(t *testing.T, w *world) *api.Status {
			_, _, status := put(w, &api.Resource{Metadata: api.ObjectMeta{Name: "cpu"}, Spec: api.ResourceSpec{Kind: "bytes"}}, true)
			return status
		}, 422, "spec.kind: cpu cannot be bytes, for it is built in: want count"},
		"another scope for a declared resource": {func(t *testing.T, w *world) *api.Status {
			w.declared["example.com/seat"] = "n1"
			_, _, status := put(w, seat("cluster"), true)
			return status
		}, 422, "spec.scope: example.com/seat cannot be cluster, for node n1 declares it: want node"},
		"another scope for a resource in use": {func(t *testing.T, w *world) *api.Status {
			must(t, w, seat("cluster"))
			w.users["example.com/seat"] = "quota tree T"
			_, _, status := put(w, seat("node"), false)
			return status
		}, 409, "quota tree T names it, so it stays count per cluster"},
		"a binding to a group that is none": {func(t *testing.T, w *world) *api.Status {
			_, _, status := put(w, binding("b", "", map[string]string{"org": "none"}), true)
			return status
		}, 422, "spec.groups.org: quota tree org has no node none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			status := c.change(t, w)
			if status == nil || status.Code != c.code || !strings.Contains(status.Message, c.want) {
				t.Fatalf("got %v, want %d %q", status, c.code, c.want)
			}
		})
	}
}

func TestAnOwnerChangesWhileSubmissionsWait(t *testing.T) {
	w := newWorld()
	must(t, w, tenant("a"))
	if _, write, status := put(w, namespace("b", ""), true); status != nil || write.Pauses != "" {
		t.Errorf("a namespace of its own tenant: %v, pauses %q", status, write.Pauses)
	}
	if _, write, status := put(w, namespace("b", "a"), false); status != nil || write.Pauses != "b" || !write.WakesNobody {
		t.Errorf("another owner: %v, pauses %q, wakes nobody: %v", status, write.Pauses, write.WakesNobody)
	}
	if write, status := remove[api.Namespace](w, "b", api.Preconditions{}); status != nil || write.Pauses != "b" {
		t.Errorf("a deletion: %v, pauses %q", status, write.Pauses)
	}
}

func TestABindingToAnInnerNodeIsTakenAndReported(t *testing.T) {
	w := newWorld()
	_, write, status := put(w, binding("b", "", map[string]string{"org": "all"}), true)
	if status != nil || !write.MovesCharges || write.WakesNobody {
		t.Fatalf("%v; moves charges %v, wakes nobody %v", status, write.MovesCharges, write.WakesNobody)
	}
	if len(write.Notes) != 1 || write.Notes[0].Event != "binding_without_leaf" {
		t.Errorf("notes %v", write.Notes)
	}
}

func TestABuiltInResourceGetsItsDescriptionBack(t *testing.T) {
	w := newWorld()
	must(t, w, &api.Resource{Metadata: api.ObjectMeta{Name: "cpu"}, Spec: api.ResourceSpec{DisplayName: "Processor"}})
	if e := edit.ResourceEntry(&w.Resources.Get("cpu").Object); e.DisplayName != "Processor" || e.Unit != "logical CPUs" || !e.BuiltIn {
		t.Errorf("described as %+v", e)
	}
	if _, status := remove[api.Resource](w, "cpu", api.Preconditions{}); status != nil || w.Resources.Len() != 0 {
		t.Errorf("deleted: %v; %d objects are left", status, w.Resources.Len())
	}
}

// Whatever operators try in whatever order: no object names one that does not exist,
// no key changes after a refusal, and the keys alone make the same objects again.
func TestPropertyObjectsNameObjectsThatExist(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	trees := rapid.SampledFrom([]string{"org", "service", "none"})
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			rev, name, create := w.rev, names.Draw(t, "name"), rapid.Bool().Draw(t, "create")
			var status *api.Status
			switch rapid.IntRange(0, 7).Draw(t, "change") {
			case 0:
				_, _, status = put(w, tenant(name), create)
			case 1:
				_, _, status = put(w, namespace(name, rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "tenant")), create)
			case 2:
				_, _, status = put(w, forest(name, trees.Draw(t, "tree")), create)
			case 3:
				_, _, status = put(w, binding(name, names.Draw(t, "forest"), map[string]string{"org": "team", "service": "all"}), create)
			case 4:
				_, status = remove[api.Tenant](w, name, api.Preconditions{})
			case 5:
				_, status = remove[api.Namespace](w, name, api.Preconditions{})
			case 6:
				_, status = remove[api.QuotaForest](w, name, api.Preconditions{})
			case 7:
				_, status = remove[api.QuotaBinding](w, name, api.Preconditions{})
			}
			if (status == nil) == (w.rev == rev) {
				t.Fatalf("the change was answered %v, and the store went from revision %d to %d", status, rev, w.rev)
			}
			w.check(t)
		}
	})
}

func (w *world) check(t *rapid.T) {
	t.Helper()
	for _, n := range w.Namespaces.Names() {
		if owner := string(edit.OwnerOf(&w.Namespaces.Get(n).Object)); owner != n && w.Tenants.Get(owner) == nil {
			t.Fatalf("namespace %s belongs to tenant %s, which does not exist", n, owner)
		}
	}
	for _, b := range w.Bindings.Names() {
		if f := w.Bindings.Get(b).Object.Spec.Forest; f != "" && w.Forests.Get(f) == nil {
			t.Fatalf("namespace %s is bound to forest %s, which does not exist", b, f)
		}
	}
	again := edit.New()
	for _, kv := range w.keys {
		if mine, err := again.Load(kv); !mine || err != nil {
			t.Fatalf("load %s: of a kind %v, %v", kv.Key, mine, err)
		}
	}
	for name, counts := range map[string][2]int{
		"tenants": {w.Tenants.Len(), again.Tenants.Len()}, "namespaces": {w.Namespaces.Len(), again.Namespaces.Len()},
		"forests": {w.Forests.Len(), again.Forests.Len()}, "bindings": {w.Bindings.Len(), again.Bindings.Len()},
	} {
		if counts[0] != counts[1] {
			t.Fatalf("%s: %d in memory, %d in the store", name, counts[0], counts[1])
		}
	}
}
