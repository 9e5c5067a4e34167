package objects

import (
	"iter"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// Floor is a revision that no list is older than.
func (v *View) Floor() resource.Revision { return v.revision }

// Newest is the greatest revision known of an object.
func (v *View) Newest() resource.Revision { return v.revision }

// at finds an entry by its position, NAMESPACE/NAME, or by its name alone.
func at[E entry](v *View, n Name) (E, bool) {
	e, found := v.tables[n.Kind].Get(n.position())
	if !found {
		var none E
		return none, false
	}
	return e.(E), true
}

// positions yields the positions of a kind in a namespace.
func (v *View) positions(k Kind, namespace string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range v.After(k, namespace, Name{}) {
			if !yield(i.Namespace + "/" + i.Name.Name) {
				return
			}
		}
	}
}

// Member returns an allocation by its position, "namespace/name".
func (v *View) Member(position string) (shown.Member, bool) {
	e, found := at[*memberEntry](v, Named(Allocations, position))
	if !found {
		return shown.Member{}, false
	}
	m := e.Member
	m.Together = e.together
	if m.Phase() == api.Pending {
		m.Position = v.queuePosition(e.Record.Queue, e.key)
	}
	return m, true
}

// Members are the positions of the allocations of a namespace, "" being all.
func (v *View) Members(namespace string) iter.Seq[string] { return v.positions(Allocations, namespace) }

// Job returns a job by its position.
func (v *View) Job(position string) (shown.Job, bool) {
	e, found := at[*jobEntry](v, Named(Jobs, position))
	if !found {
		return shown.Job{}, false
	}
	j := e.Job
	if e.first.Path != "" {
		j.Position = v.queuePosition(e.line, e.first)
	}
	j.UseOf = v.useOf
	return j, true
}

// Jobs are the positions of the jobs of a namespace, "" being all.
func (v *View) Jobs(namespace string) iter.Seq[string] { return v.positions(Jobs, namespace) }

// Node returns a node.
func (v *View) Node(id resource.NodeID) (shown.Node, bool) {
	e, found := at[*nodeEntry](v, Name{Nodes, "", string(id)})
	if !found {
		return shown.Node{}, false
	}
	return e.show(v.now), true
}

// Nodes are all nodes by id.
func (v *View) Nodes() iter.Seq[shown.Node] {
	return each(v, Nodes, "", func(e *nodeEntry) shown.Node { return e.show(v.now) })
}

// ResourceQuota returns a quota by its position.
func (v *View) ResourceQuota(position string) (shown.ResourceQuota, bool) {
	e, found := at[*quotaEntry](v, Named(ResourceQuotas, position))
	if !found {
		return shown.ResourceQuota{}, false
	}
	return e.ResourceQuota, true
}

// ResourceQuotas are the quotas of a namespace, "" being all.
func (v *View) ResourceQuotas(namespace string) iter.Seq[shown.ResourceQuota] {
	return each(v, ResourceQuotas, namespace, func(e *quotaEntry) shown.ResourceQuota { return e.ResourceQuota })
}

// Binding returns the quota binding of a namespace.
func (v *View) Binding(namespace string) (shown.Versioned[api.QuotaBinding], bool) {
	e, found := at[*bindingEntry](v, Name{QuotaBindings, "", namespace})
	if !found {
		return shown.Versioned[api.QuotaBinding]{}, false
	}
	return e.Versioned, true
}

// Bindings are all of them by namespace.
func (v *View) Bindings() iter.Seq[shown.Versioned[api.QuotaBinding]] {
	return each(v, QuotaBindings, "", func(e *bindingEntry) shown.Versioned[api.QuotaBinding] { return e.Versioned })
}

// Forest returns a quota forest.
func (v *View) Forest(name string) (shown.Versioned[api.QuotaForest], bool) {
	e, found := at[*forestEntry](v, Name{QuotaForests, "", name})
	if !found {
		return shown.Versioned[api.QuotaForest]{}, false
	}
	return e.Versioned, true
}

// Forests are all of them by name.
func (v *View) Forests() iter.Seq[shown.Versioned[api.QuotaForest]] {
	return each(v, QuotaForests, "", func(e *forestEntry) shown.Versioned[api.QuotaForest] { return e.Versioned })
}

// Tenant returns a tenant.
func (v *View) Tenant(name string) (shown.Versioned[api.Tenant], bool) {
	e, found := at[*tenantEntry](v, Name{Tenants, "", name})
	if !found {
		return shown.Versioned[api.Tenant]{}, false
	}
	return e.Versioned, true
}

// Tenants are all of them by name.
func (v *View) Tenants() iter.Seq[shown.Versioned[api.Tenant]] {
	return each(v, Tenants, "", func(e *tenantEntry) shown.Versioned[api.Tenant] { return e.Versioned })
}

// Namespace returns a namespace with an object.
func (v *View) Namespace(name string) (shown.Versioned[api.Namespace], bool) {
	e, found := at[*namespaceEntry](v, Name{Namespaces, "", name})
	if !found {
		return shown.Versioned[api.Namespace]{}, false
	}
	return e.show(), true
}

// Namespaces are all of them by name.
func (v *View) Namespaces() iter.Seq[shown.Versioned[api.Namespace]] {
	return each(v, Namespaces, "", func(e *namespaceEntry) shown.Versioned[api.Namespace] { return e.show() })
}

// Queue counts the units that wait, and returns the first of them, as many as head.
func (v *View) Queue(head int) (int, []shown.Queued) {
	var first []shown.Queued
	for i := range min(head, v.queue.Len()) {
		u, _ := v.queue.GetAt(i)
		first = append(first, shown.Queued{Name: u.name, Priority: u.key.Priority, Members: u.members})
	}
	return v.queue.Len(), first
}

// each yields the values of a kind's entries.
func each[E entry, T any](v *View, k Kind, namespace string, of func(E) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := range v.After(k, namespace, Name{}) {
			if !yield(of(i.entry.(E))) {
				return
			}
		}
	}
}
