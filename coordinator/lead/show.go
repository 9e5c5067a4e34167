package lead

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// This file is what the leader shows: plain values of its state, made for one
// answer in the loop.

// shownLeader is the leader's state as clients are shown it at a time.
type shownLeader struct {
	l   *Leader
	now time.Time
	// changes is a channel that closes when an object changes, by its key.
	changes func(key string) <-chan struct{}
}

var _ shown.Index = shownLeader{}

// allocation shows one member of a unit, stored or not.
func (l *Leader) allocation(u *unit, index int) *api.Allocation {
	m := l.showMember(u, index)
	return m.Show()
}

// jobObject shows a job, stored or not.
func (l *Leader) jobObject(j *job) *api.Job {
	s := l.showJob(j)
	return s.Show()
}

// Floor implements shown.Index.
func (i shownLeader) Floor() resource.Revision { return i.l.floor }

// Newest implements shown.Index.
func (i shownLeader) Newest() resource.Revision {
	newest := i.l.floor
	for _, u := range i.l.units {
		newest = max(newest, u.version())
	}
	return newest
}

// Member implements shown.Index.
func (i shownLeader) Member(position string) (shown.Member, bool) {
	m := i.l.members[position]
	if m == nil || m.unit.stored == 0 || m.unit.isHidden() { // it may yet come to nothing
		return shown.Member{}, false
	}
	return i.l.showMember(m.unit, m.index), true
}

// Members implements shown.Index.
func (i shownLeader) Members(namespace string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for position, m := range i.l.members {
			if m.unit.stored != 0 && !m.unit.isHidden() && (namespace == "" || m.unit.record.Namespace == namespace) && !yield(position) {
				return
			}
		}
	}
}

// MemberChanged implements shown.Index.
func (i shownLeader) MemberChanged(position string) <-chan struct{} {
	if m := i.l.members[position]; m != nil {
		return i.changes(m.unit.path)
	}
	return nil
}

// Job implements shown.Index.
func (i shownLeader) Job(position string) (shown.Job, bool) {
	j := i.l.jobs[position]
	if j == nil || j.stored == 0 || j.isHidden() { // it may yet come to nothing
		return shown.Job{}, false
	}
	return i.l.showJob(j), true
}

// Jobs implements shown.Index.
func (i shownLeader) Jobs(namespace string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for position, j := range i.l.jobs {
			if j.stored != 0 && !j.isHidden() && (namespace == "" || j.record.Namespace == namespace) && !yield(position) {
				return
			}
		}
	}
}

// JobChanged implements shown.Index.
func (i shownLeader) JobChanged(position string) <-chan struct{} {
	if j := i.l.jobs[position]; j != nil {
		return i.changes(j.key())
	}
	return nil
}

// Node implements shown.Index.
func (i shownLeader) Node(id resource.NodeID) (shown.Node, bool) {
	n := i.l.nodes[id]
	if n == nil {
		return shown.Node{}, false
	}
	return i.l.showNode(n, i.l.addresses(n.spec.AgentAddr)), true
}

// Nodes implements shown.Index.
func (i shownLeader) Nodes() iter.Seq[shown.Node] {
	return func(yield func(shown.Node) bool) {
		book := i.l.addresses("")
		for _, at := range i.l.state.Nodes() {
			if !yield(i.l.showNode(i.l.nodes[at.ID], book)) {
				return
			}
		}
	}
}

// ResourceQuota implements shown.Index.
func (i shownLeader) ResourceQuota(position string) (shown.ResourceQuota, bool) {
	q := i.l.quotas.resources[position]
	if q == nil {
		return shown.ResourceQuota{}, false
	}
	return i.l.showResourceQuota(q, i.now), true
}

// ResourceQuotas implements shown.Index.
func (i shownLeader) ResourceQuotas(namespace string) iter.Seq[shown.ResourceQuota] {
	return func(yield func(shown.ResourceQuota) bool) {
		for _, q := range i.l.quotas.resources {
			if (namespace == "" || q.object.Metadata.Namespace == namespace) && !yield(i.l.showResourceQuota(q, i.now)) {
				return
			}
		}
	}
}

// Binding implements shown.Index.
func (i shownLeader) Binding(namespace string) (shown.Versioned[api.QuotaBinding], bool) {
	return i.l.quotas.bindings[namespace].show()
}

// Bindings implements shown.Index.
func (i shownLeader) Bindings() iter.Seq[shown.Versioned[api.QuotaBinding]] {
	return showAll(i.l.quotas.bindings)
}

// Forest implements shown.Index.
func (i shownLeader) Forest(name string) (shown.Versioned[api.QuotaForest], bool) {
	return i.l.quotas.forests[name].show()
}

// Forests implements shown.Index.
func (i shownLeader) Forests() iter.Seq[shown.Versioned[api.QuotaForest]] {
	return showAll(i.l.quotas.forests)
}

// Tenant implements shown.Index.
func (i shownLeader) Tenant(name string) (shown.Versioned[api.Tenant], bool) {
	return i.l.spaces.tenants[name].show()
}

// Tenants implements shown.Index.
func (i shownLeader) Tenants() iter.Seq[shown.Versioned[api.Tenant]] {
	return showAll(i.l.spaces.tenants)
}

// Namespace implements shown.Index.
func (i shownLeader) Namespace(name string) (shown.Versioned[api.Namespace], bool) {
	return i.l.spaces.namespaces[name].show()
}

// Namespaces implements shown.Index.
func (i shownLeader) Namespaces() iter.Seq[shown.Versioned[api.Namespace]] {
	return showAll(i.l.spaces.namespaces)
}

// Queue implements shown.Index.
func (i shownLeader) Queue(head int) (int, []shown.Queued) {
	var first []shown.Queued
	for _, key := range i.l.room.Order().Head(head) {
		r := &i.l.units[key.Path].record
		first = append(first, shown.Queued{Name: r.Namespace + "/" + r.Name, Priority: key.Priority, Members: r.Members})
	}
	return i.l.room.Order().Len(), first
}

// showResourceQuota makes the shown value of a quota.
func (l *Leader) showResourceQuota(q *resourceQuota, now time.Time) shown.ResourceQuota {
	percent := l.quotas.utilization(q)
	return shown.ResourceQuota{
		Versioned: shown.Versioned[api.ResourceQuota]{Object: q.object, Revision: q.rev},
		Hard:      q.hard, Soft: q.soft, Used: l.quotas.limits.Used(q.object.Metadata.Namespace, q.object.Metadata.Name),
		Utilization: percent, Trend: q.trend.Since(now, percent),
	}
}

// resourceQuotaObject shows a quota with what is used of it.
func (l *Leader) resourceQuotaObject(q *resourceQuota, now time.Time) *api.ResourceQuota {
	s := l.showResourceQuota(q, now)
	return s.Show()
}

// copy is the object for a caller. What it points to is never changed.
func (k *kept[T]) copy() *T {
	object := k.object
	return &object
}

// show makes the shown value of what is kept, if it is.
func (k *kept[T]) show() (shown.Versioned[T], bool) {
	if k == nil {
		return shown.Versioned[T]{}, false
	}
	return shown.Versioned[T]{Object: k.object, Revision: k.rev}, true
}

// showAll shows all objects of a kind, by name.
func showAll[T any](objects map[string]*kept[T]) iter.Seq[shown.Versioned[T]] {
	return func(yield func(shown.Versioned[T]) bool) {
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			if s, _ := objects[name].show(); !yield(s) {
				return
			}
		}
	}
}
