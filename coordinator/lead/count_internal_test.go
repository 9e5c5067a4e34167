package lead

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/grant"
)

// limits puts the namespace default with count quotas.
func (x *scene) limits(l api.NamespaceCounts) {
	x.t.Helper()
	x.clear()
	x.ask(Put[api.Namespace]{Object: &api.Namespace{Kind: api.KindNamespace, Metadata: api.ObjectMeta{Name: "default"}, Spec: api.NamespaceSpec{Limits: &l}}})
	x.answers()
}

const note = `"annotations":{"note":"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"}`

// creates asks for an allocation with an annotation of 104 bytes.
func (x *scene) creates(name string, gpus int) {
	x.t.Helper()
	document := fmt.Appendf(nil, `{"metadata":{"name":%q,%s},"spec":{"resources":{"requests":{"nvidia.com/gpu":"%d"}}}}`, name, note, gpus)
	doc, status := api.DecodeAllocation(document)
	if status != nil {
		x.t.Fatal(status)
	}
	x.ask(CreateAllocation{Submitted: Submitted{Namespace: "default", Document: document}, Document: doc})
}

// createsJob asks for a job of two units with the same annotation.
func (x *scene) createsJob(name string, gpus int) {
	x.t.Helper()
	document := fmt.Appendf(nil, `{"metadata":{"name":%q,%s},"spec":{"parallelism":2,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":"%d"}}}}}}`, name, note, gpus)
	doc, status := api.DecodeJob(document)
	if status != nil {
		x.t.Fatal(status)
	}
	x.ask(CreateJob{Submitted: Submitted{Namespace: "default", Document: document}, Document: doc})
}

// annotates asks for a change of the allocation a.
func (x *scene) annotates(p api.WorkPatch) { x.ask(PatchAllocation{"default", "a", p}) }

func TestCountQuotas(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	annotated := func(bytes int) api.WorkPatch {
		text := strings.Repeat("y", bytes-len("note"))
		return api.WorkPatch{Annotations: api.MapPatch{Set: map[string]*string{"note": &text}}}
	}
	for name, c := range map[string]struct {
		limits api.NamespaceCounts
		do     func(x *scene)
		want   string // the refusal, "" for none
	}{
		"one allocation too many": {api.NamespaceCounts{Allocations: n(1)}, func(x *scene) { x.creates("b", 1) },
			"429 namespace default has 1 allocations and may have 1: there is no room for 1 more; delete objects that have ended, or ask an admin to raise spec.limits.allocations of the namespace"},
		"a limit above the configuration's counts": {api.NamespaceCounts{Allocations: n(1000)}, func(x *scene) { x.rules.NamespaceAllocations = 1; x.annotates(annotated(104)) }, ""},
		"a job too many": {api.NamespaceCounts{Jobs: n(0)}, func(x *scene) { x.createsJob("j", 1) },
			"429 namespace default has 0 jobs and may have 0: there is no room for 1 more; delete objects that have ended, or ask an admin to raise spec.limits.jobs of the namespace"},
		"units that wait": {api.NamespaceCounts{WaitingUnits: n(1)}, func(x *scene) { x.createsJob("j", 9) },
			"429 namespace default has 0 units that wait and may have 1: there is no room for 2 more; delete objects that have ended, or ask an admin to raise spec.limits.waitingUnits of the namespace"},
		"annotations of new work": {api.NamespaceCounts{AnnotationBytes: n(207)}, func(x *scene) { x.creates("b", 1) },
			"429 namespace default has annotations of 104 bytes and may have 207: there is no room for 104 more; delete objects that have ended, or ask an admin to raise spec.limits.annotationBytes of the namespace"},
		"annotations that grow": {api.NamespaceCounts{AnnotationBytes: n(124)}, func(x *scene) { x.annotates(annotated(125)) },
			"429 namespace default has annotations of 104 bytes and may have 124: there is no room for 21 more; delete objects that have ended, or ask an admin to raise spec.limits.annotationBytes of the namespace"},
		"annotations that grow to the limit":               {api.NamespaceCounts{AnnotationBytes: n(124)}, func(x *scene) { x.annotates(annotated(124)) }, ""},
		"annotations that shrink, but not below the limit": {api.NamespaceCounts{AnnotationBytes: n(10)}, func(x *scene) { x.annotates(annotated(90)) }, ""},
		"a patch of another field in a full namespace": {api.NamespaceCounts{Allocations: n(0), WaitingUnits: n(0), AnnotationBytes: n(0)}, func(x *scene) {
			x.annotates(annotated(104))
		}, ""},
		"documents that grow": {api.NamespaceCounts{DocumentBytes: n(1)}, func(x *scene) { x.annotates(annotated(105)) }, "429 namespace default has documents of "},
		"members that are added": {api.NamespaceCounts{Allocations: n(4)}, func(x *scene) {
			x.sweep(2, 2)
			x.clear()
			x.ask(PatchJob{"default", "j", api.WorkPatch{Spec: []byte(`{"parallelism":4}`)}})
		}, "429 namespace default has 3 allocations and may have 4: there is no room for 2 more; "},
		"annotations of a job that grow": {api.NamespaceCounts{AnnotationBytes: n(228)}, func(x *scene) {
			x.createsJob("j", 1)
			x.answers()
			x.clear()
			x.ask(PatchJob{"default", "j", annotated(125)})
		}, "429 namespace default has annotations of 208 bytes and may have 228: there is no room for 21 more; "},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			x.creates("a", 1)
			x.settles(x.work.Units["default/alloc/a/0"], grant.Reserved)
			x.limits(c.limits)
			x.clear()
			c.do(x)
			x.answers()
			if got := x.refusedWith(); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			x.check()
		})
	}
}

// Two changes that are under way at once do not both take the last room, and a change
// that the store refuses gives its room back.
func TestARoomIsTakenBeforeTheStoreAnswers(t *testing.T) {
	bytes := int64(230)
	x := newScene(t)
	for _, name := range []string{"a", "b"} {
		x.creates(name, 9)
		x.answers()
	}
	x.limits(api.NamespaceCounts{AnnotationBytes: &bytes})
	text := strings.Repeat("y", 116)
	patch := api.WorkPatch{Annotations: api.MapPatch{Set: map[string]*string{"note": &text}}}
	x.clear()
	x.ask(PatchAllocation{"default", "a", patch})
	x.ask(PatchAllocation{"default", "b", patch})
	if got := x.refusedWith(); !strings.HasPrefix(got, "429 namespace default has annotations of 224 bytes and may have 230") {
		t.Errorf("the second change: %q", got)
	}
	x.answers()
	if got := x.used("default").Annotations; got != 224 {
		t.Errorf("%d bytes are counted, want 224", got)
	}
	x.check()
}

// A tenant has its part of all documents over all of its namespaces, and leaves the rest
// to others.
func TestATenantHasAShareOfAllDocuments(t *testing.T) {
	x := newScene(t)
	x.rules.Documents = 4 << 20
	put := func(namespace, tenant string) {
		x.clear()
		x.ask(Put[api.Tenant]{Object: &api.Tenant{Kind: api.KindTenant, Metadata: api.ObjectMeta{Name: tenant}}})
		x.answers()
		x.clear()
		x.ask(Put[api.Namespace]{Object: &api.Namespace{Kind: api.KindNamespace, Metadata: api.ObjectMeta{Name: namespace}, Spec: api.NamespaceSpec{Tenant: tenant}}})
		x.answers()
	}
	for namespace, tenant := range map[string]string{"one": "greedy", "two": "greedy", "other": "late"} {
		put(namespace, tenant)
	}
	create := func(namespace, name string, bytes int) string {
		x.clear()
		document := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"resources":{"requests":{"nvidia.com/gpu":"9"}}}}`, name)
		doc, status := api.DecodeAllocation(document)
		if status != nil {
			t.Fatal(status)
		}
		document = append(document, strings.Repeat(" ", bytes-len(document))...)
		x.ask(CreateAllocation{Submitted: Submitted{Namespace: namespace, Document: document}, Document: doc})
		x.answers()
		return x.refusedWith()
	}
	for i, namespace := range []string{"one", "two", "one", "two"} {
		if got := create(namespace, fmt.Sprint("a", i), 512<<10); got != "" {
			t.Fatalf("document %d: %s", i, got)
		}
	}
	const want = "429 tenant greedy has documents of 2097152 bytes in all of its namespaces and may have 2097152, half of the room of all tenants: there is no room for 1024 more; "
	if got := create("one", "more", 1024); !strings.HasPrefix(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := create("other", "first", 1<<20); got != "" {
		t.Errorf("another tenant: %s", got)
	}
	x.clear()
	x.ask(DeleteAllocation{Namespace: "one", Name: "a0"})
	x.answers()
	if got := create("two", "again", 512<<10); got != "" {
		t.Errorf("after a deletion: %s", got)
	}
	x.check()
}
