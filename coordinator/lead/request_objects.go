package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// This file serves the changes of the objects that package edit judges, in turn with
// the changes of quota: the object and the objects that it names are judged one after
// the other. The result is the object with the change, or as it was before its
// deletion.

type (
	// Put writes an object that is valid by itself. Create: there must be none of its
	// name.
	Put[T any] struct {
		Object *T
		Create bool
	}
	// Delete ends an object. It is refused with 409 where the object does not have the
	// required values.
	Delete[T any] struct {
		Name    string
		Require api.Preconditions
	}
)

func (r Put[T]) serve(l *Leader, c *desk.Call) {
	l.changeQuotas(c, func(l *Leader) (edit.Write, *api.Status) {
		return edit.Of[T](l.objects).Put(l.editView(), r.Object, r.Create)
	})
}

func (r Delete[T]) serve(l *Leader, c *desk.Call) {
	l.changeQuotas(c, func(l *Leader) (edit.Write, *api.Status) {
		return edit.Of[T](l.objects).Delete(l.editView(), r.Name, r.Require)
	})
}

// editView is the state by which objects are judged in this input.
func (l *Leader) editView() edit.View {
	return edit.View{Objects: l.objects, Cluster: judged{l}, Stamp: l.post.Stamp(), UID: l.post.UID}
}

// judged implements edit.Cluster.
type judged struct{ *Leader }

func (l judged) Owner(namespace string) resource.TenantID { return l.namespace(namespace).Tenant }

// Contents counts the objects of a namespace. The members of a job count with the job.
func (l judged) Contents(namespace string) edit.Contents {
	var c edit.Contents
	for _, u := range l.work.Units {
		if u.Record.Namespace == namespace && u.Job == nil {
			c.Allocations++
		}
	}
	for _, j := range l.work.Jobs {
		if j.Record.Namespace == namespace {
			c.Jobs++
		}
	}
	for _, key := range l.quotas.QuotaKeys() {
		if l.quotas.Quota(key).Object.Metadata.Namespace == namespace {
			c.ResourceQuotas++
		}
	}
	return c
}

func (l judged) Tree(name string) (edit.Tree, bool) {
	t := l.quotas.Tree(name)
	return t, t != nil
}

// DeclaredBy implements edit.Names. Its time is in proportion to the nodes.
func (l judged) DeclaredBy(name resource.Name) resource.NodeID {
	var first resource.NodeID
	for id, n := range l.nodes {
		if n.specRev != 0 && registry.DeclaredBy(registry.WithModels(n.spec.Capacity, n.spec.Topology.GPUModels))[name] && (first == "" || id < first) {
			first = id
		}
	}
	return first
}

// Describe implements edit.Names.
func (l judged) Describe(name resource.Name) registry.Entry { return l.declared.describe(name) }

// UserOf implements edit.Names. Its time is in proportion to the quotas and the units.
func (l judged) UserOf(name resource.Name) string {
	for _, key := range l.quotas.QuotaKeys() {
		q := l.quotas.Quota(key)
		if q.Object.Spec.Names()[name] {
			return resourceQuotaName(q.Object.Metadata.Namespace, q.Object.Metadata.Name)
		}
	}
	for _, tree := range l.quotas.TreeNames() {
		if l.quotas.Tree(tree).Object.Names()[name] {
			return "quota tree " + tree
		}
	}
	first := ""
	for path, u := range l.work.Units {
		if u.AsksFor(name) && (first == "" || path < first) {
			first = path
		}
	}
	if first == "" {
		return ""
	}
	return "unit " + first
}

// prepare takes the steps of a write that come before it is sent, and adds the steps
// that follow its outcome.
func (l *Leader) prepare(w edit.Write) edit.Write {
	for _, n := range w.Notes {
		l.post.Warn(n.Event, n.Args...)
	}
	if w.MovesCharges {
		landed := w.Landed
		w.Landed = func(rev resource.Revision) {
			landed(rev)
			l.quotas.NoteMoved()
		}
	}
	if w.Queue != "" {
		w = l.changesQueue(w)
	}
	if w.Pauses != "" {
		w = l.pauseWork(w.Pauses, w)
	}
	return w
}
