// Package shown renders what clients are shown. Its types are plain values: a
// leader makes them of its own state, a follower of the store's keys, and both
// answer alike because one code makes objects of the API out of them. It decides
// nothing, reads no clock and keeps nothing.
//
// Values are made for one answer, or kept by a follower. They point to records
// and documents of their maker, and nothing here changes those; an object that
// is rendered shares nothing that its maker changes later.
package shown

import (
	"iter"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Index is where the objects of one moment are found. Positions are
// "namespace/name". Only what is stored is in it.
type Index interface {
	// Floor is a revision that no list is older than; Newest is the greatest one
	// known of a unit, or Floor.
	Floor() resource.Revision
	Newest() resource.Revision

	// Member returns an allocation, Members the positions of all in a namespace,
	// "" being every one, in any order.
	Member(position string) (Member, bool)
	Members(namespace string) iter.Seq[string]
	// MemberChanged returns a channel that closes when there is something new of
	// an allocation; nil where that is not told.
	MemberChanged(position string) <-chan struct{}
	// Job, Jobs and JobChanged are the same of jobs.
	Job(position string) (Job, bool)
	Jobs(namespace string) iter.Seq[string]
	JobChanged(position string) <-chan struct{}

	// Node returns a node, Nodes all of them by id.
	Node(id resource.NodeID) (Node, bool)
	Nodes() iter.Seq[Node]

	// ResourceQuota returns a quota, ResourceQuotas those of a namespace, "" being
	// every one, in any order.
	ResourceQuota(position string) (ResourceQuota, bool)
	ResourceQuotas(namespace string) iter.Seq[ResourceQuota]
	// Binding returns the quota binding of a namespace, Bindings all of them by
	// namespace.
	Binding(namespace string) (Versioned[api.QuotaBinding], bool)
	Bindings() iter.Seq[Versioned[api.QuotaBinding]]
	// Forest and Forests are the same of quota forests.
	Forest(name string) (Versioned[api.QuotaForest], bool)
	Forests() iter.Seq[Versioned[api.QuotaForest]]

	// Tenant returns a tenant, Tenants all of them by name.
	Tenant(name string) (Versioned[api.Tenant], bool)
	Tenants() iter.Seq[Versioned[api.Tenant]]
	// Namespace and Namespaces are the same of namespaces with an object.
	Namespace(name string) (Versioned[api.Namespace], bool)
	Namespaces() iter.Seq[Versioned[api.Namespace]]

	// Queue counts the units that wait, and returns the first of them, as many as
	// head.
	Queue(head int) (waiting int, first []Queued)
}

// Queued is a unit in the queue.
type Queued struct {
	Name     string // "namespace/name"
	Priority int32
	Members  int
}
