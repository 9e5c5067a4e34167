package objects

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// At is the cache as clients are shown it at a time.
func (c *Cache) At(now time.Time) shown.Index { return cached{c, now} }

// cached is a cache at a time.
type cached struct {
	c   *Cache
	now time.Time
}

var _ shown.Index = cached{}

// Floor implements shown.Index.
func (i cached) Floor() resource.Revision { return i.c.floor }

// Newest implements shown.Index.
func (i cached) Newest() resource.Revision {
	newest := i.c.floor
	for _, u := range i.c.units {
		newest = max(newest, u.Revision)
	}
	return newest
}

// Member implements shown.Index.
func (i cached) Member(position string) (shown.Member, bool) {
	m, found := i.c.members[position]
	if !found {
		return shown.Member{}, false
	}
	return i.c.showMember(m.unit, m.index), true
}

// Members implements shown.Index.
func (i cached) Members(namespace string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for position, m := range i.c.members {
			if (namespace == "" || m.unit.record.Namespace == namespace) && !yield(position) {
				return
			}
		}
	}
}

// MemberChanged implements shown.Index: the cache reports every change.
func (i cached) MemberChanged(string) <-chan struct{} { return nil }

// Job implements shown.Index.
func (i cached) Job(position string) (shown.Job, bool) {
	j := i.c.jobs[position]
	if j == nil {
		return shown.Job{}, false
	}
	return i.c.showJob(j), true
}

// Jobs implements shown.Index.
func (i cached) Jobs(namespace string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for position, j := range i.c.jobs {
			if (namespace == "" || j.record.Namespace == namespace) && !yield(position) {
				return
			}
		}
	}
}

// JobChanged implements shown.Index.
func (i cached) JobChanged(string) <-chan struct{} { return nil }

// Node implements shown.Index.
func (i cached) Node(id resource.NodeID) (shown.Node, bool) {
	n := i.c.nodes[id]
	if n == nil {
		return shown.Node{}, false
	}
	return n.show(i.c.addresses(n.spec.AgentAddr), i.now), true
}

// Nodes implements shown.Index.
func (i cached) Nodes() iter.Seq[shown.Node] {
	return func(yield func(shown.Node) bool) {
		book := i.c.addresses("")
		for _, id := range i.c.order {
			if !yield(i.c.nodes[id].show(book, i.now)) {
				return
			}
		}
	}
}

// ResourceQuota implements shown.Index.
func (i cached) ResourceQuota(position string) (shown.ResourceQuota, bool) {
	q := i.c.quotas.resources[position]
	if q == nil {
		return shown.ResourceQuota{}, false
	}
	return i.c.quotas.show(q, i.now), true
}

// ResourceQuotas implements shown.Index.
func (i cached) ResourceQuotas(namespace string) iter.Seq[shown.ResourceQuota] {
	return func(yield func(shown.ResourceQuota) bool) {
		for _, q := range i.c.quotas.resources {
			if (namespace == "" || q.Object.Metadata.Namespace == namespace) && !yield(i.c.quotas.show(q, i.now)) {
				return
			}
		}
	}
}

// Binding implements shown.Index.
func (i cached) Binding(namespace string) (shown.Versioned[api.QuotaBinding], bool) {
	b, found := i.c.quotas.bindings[namespace]
	return b, found
}

// Bindings implements shown.Index.
func (i cached) Bindings() iter.Seq[shown.Versioned[api.QuotaBinding]] {
	return inOrder(i.c.quotas.bindings)
}

// Forest implements shown.Index.
func (i cached) Forest(name string) (shown.Versioned[api.QuotaForest], bool) {
	f, found := i.c.quotas.forests[name]
	return f, found
}

// Forests implements shown.Index.
func (i cached) Forests() iter.Seq[shown.Versioned[api.QuotaForest]] {
	return inOrder(i.c.quotas.forests)
}

// Queue implements shown.Index.
func (i cached) Queue(head int) (int, []shown.Queued) {
	var first []shown.Queued
	for _, key := range i.c.queue.Head(head) {
		r := i.c.units[key.Path].Record
		first = append(first, shown.Queued{Name: r.Namespace + "/" + r.Name, Priority: key.Priority, Members: r.Members})
	}
	return i.c.queue.Len(), first
}

// inOrder yields objects by name.
func inOrder[T any](objects map[string]T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			if !yield(objects[name]) {
				return
			}
		}
	}
}
