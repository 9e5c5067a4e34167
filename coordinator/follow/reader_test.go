package follow

import (
	"encoding/json"
	"testing"
	"time"

	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
)

// reader is a client that watches, and goes on elsewhere when its coordinator
// dies. It knows the objects by what the watch has told.
type reader struct {
	objects.Kind
	namespace string
	selects   func(any) bool
	at        objects.ID
	watch     *Watch
	known     map[string]string // JSON without figures, by namespace/name
	ids       []objects.ID
}

// take reads all changes that are there.
func (r *reader) take(t *testing.T, f *Follower) {
	t.Helper()
	if r.watch == nil {
		if r.at == (objects.ID{}) {
			clear(r.known)
		}
		var err error
		if r.watch, err = f.Watch(t.Context(), objects.WatchOptions{Kind: r.Kind, Namespace: r.namespace, After: r.at}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), BookmarkEvery+time.Second)
	defer cancel()
	for {
		c, err := r.watch.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			r.see(t, e)
		}
		if c.Bookmark.Revision > 0 {
			r.at = c.Bookmark
			if r.at.Revision >= f.revision {
				return
			}
		}
	}
}

// see takes one event as the API sends it to a client with a selector.
func (r *reader) see(t *testing.T, e *objects.Event) {
	t.Helper()
	if e.ID.Revision > 0 {
		if len(r.ids) > 0 && r.ids[len(r.ids)-1].Compare(e.ID) >= 0 {
			t.Fatalf("%s after %s", e.ID, r.ids[len(r.ids)-1])
		}
		r.ids, r.at = append(r.ids, e.ID), e.ID
	}
	name := e.Namespace + "/" + e.Name.Name
	_, known := r.known[name]
	kind, object := objects.Selected(e, r.selects)
	switch kind {
	case "":
	case objects.Added:
		if known {
			t.Fatalf("%s %s %s: the reader knows it already", e.ID, kind, name)
		}
		r.known[name] = bare(object)
	case objects.Modified:
		if !known {
			t.Fatalf("%s %s %s: the reader does not know it", e.ID, kind, name)
		}
		r.known[name] = bare(object)
	case objects.Deleted:
		if !known {
			t.Fatalf("%s %s %s: the reader does not know it", e.ID, kind, name)
		}
		delete(r.known, name)
	}
}

// bare is an object as JSON without the parts that make no event.
func bare(object any) string {
	var fields map[string]any
	if err := json.Unmarshal(objects.Encode(object), &fields); err != nil {
		panic(err)
	}
	if status, is := fields["status"].(map[string]any); is {
		for _, figure := range []string{"queuePosition", "available", "allocations"} {
			if figure != "allocations" || fields["kind"] == "Node" {
				delete(status, figure)
			}
		}
		if fields["kind"] == "ResourceQuota" {
			delete(fields, "status")
		}
	}
	return string(objects.Encode(fields))
}

// list is what a reader should know: the objects of a view.
func (r *reader) list(v *objects.View) map[string]string {
	all := map[string]string{}
	for i := range v.After(r.Kind, r.namespace, objects.Name{}) {
		if o := i.Object(); r.selects(o) {
			all[i.Namespace+"/"+i.Name.Name] = bare(o)
		}
	}
	return all
}

func everything(any) bool { return true }

// teamOf selects allocations and jobs by a label.
func teamOf(team string) func(any) bool {
	return func(o any) bool {
		switch o := o.(type) {
		case *api.Allocation:
			return o.Metadata.Labels["team"] == team
		case *api.Job:
			return o.Metadata.Labels["team"] == team
		case *api.Node:
			return o.Metadata.Labels["rack"] == "1"
		}
		return true
	}
}

// running selects allocations by their phase.
func running(o any) bool {
	a, is := o.(*api.Allocation)
	return !is || a.Status.Phase == api.Running
}
