package edit

import (
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// View is the state by which a change is judged.
type View struct {
	Objects *Objects
	Cluster Cluster
	// Stamp is the present time, RFC 3339.
	Stamp string
	// UID draws the identity of a new object; kind is its beginning.
	UID func(kind string) string
}

// Cluster is the part of the leader's state that objects are judged by.
type Cluster interface {
	Spaces
	Names
	Lines
}

// Lines are the contents of queues.
type Lines interface {
	// Members counts the members of a queue that wait, and those that run.
	Members(queue string) (waiting, running int)
}

// Names are the uses of the names of resources.
type Names interface {
	// DeclaredBy is the first node by id that declares an amount of a resource; "" for
	// none.
	DeclaredBy(name resource.Name) resource.NodeID
	// Describe is the entry of a name without the operators' object: built in, declared by
	// nodes, or neither.
	Describe(name resource.Name) registry.Entry
	// UserOf names an object that limits or requests a resource: "resource quota q of
	// namespace n"; "" for none.
	UserOf(name resource.Name) string
}

// Spaces are the contents of namespaces, and the trees that they are bound to.
type Spaces interface {
	// Contents counts the objects of a namespace.
	Contents(namespace string) Contents
	// Owner is the tenant of a namespace now, with an object or without.
	Owner(namespace string) resource.TenantID
	// Tree returns the nodes of a quota tree; false where there is no such tree.
	Tree(name string) (Tree, bool)
}

// Contents are the numbers of the objects in a namespace. The members of a job count
// with the job.
type Contents struct{ Allocations, Jobs, ResourceQuotas int }

// Tree is a quota tree.
type Tree interface {
	// Has reports whether the specification has a node of the name.
	Has(node string) bool
	// Leaf reports whether the node takes units.
	Leaf(node string) bool
}
