package api

import (
	"github.com/musterd/muster/api/internal/strict"
)

// KindNamespace is the kind of a Namespace document.
const KindNamespace = "Namespace"

// Namespace has the owner of a namespace and the rules for its work. A namespace
// without such an object belongs to the tenant of its own name, and each rule has
// its default.
type Namespace struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" default:"Namespace" oneof:"Namespace"`
	// Metadata names the namespace. A namespace is in no other namespace.
	Metadata ObjectMeta `json:"metadata"`
	// Spec has the owner and the rules.
	Spec NamespaceSpec `json:"spec"`
}

// NamespaceSpec has the owner of a namespace and the rules for its work. A change
// counts for work that is submitted later; deviceLost counts for all work.
type NamespaceSpec struct {
	// Tenant is the owner; default: the tenant of the namespace's own name. Any other
	// tenant has to exist. The tenant stays while work is in the namespace.
	Tenant string `json:"tenant,omitempty" example:"vision"`
	// Admission is the treatment of an allocation over quota: reject answers 403,
	// queue lets the allocation wait. Jobs always wait. The admission of a quota
	// binding replaces it.
	Admission string `json:"admission,omitempty" default:"reject" oneof:"reject,queue"`
	// Unsatisfiable is the treatment of work that can never run on the nodes
	// registered now and within the quota as it is: wait lets the work wait for
	// nodes, reject answers 422. Default: unsatisfiable of the tenant, else of the
	// coordinators' configuration.
	Unsatisfiable string `json:"unsatisfiable,omitempty" oneof:"wait,reject"`
	// DeviceLost is the treatment of a unit that holds a lost device: keep leaves the
	// unit as it is, evict ends it, and a job's unit waits anew. Default: deviceLost
	// of the coordinators' configuration.
	DeviceLost string `json:"deviceLost,omitempty" oneof:"keep,evict"`
	// PriorityCeiling is the greatest priority that work may ask for, 0 to 1000000000.
	// Absent: no ceiling.
	PriorityCeiling *int32 `json:"priorityCeiling,omitempty" example:"1000"`
	// DefaultQueue is the queue of work that names none; default: the queue default.
	DefaultQueue string `json:"defaultQueue,omitempty" example:"research"`
}

// NamespaceList is a list of namespaces, ordered by name.
type NamespaceList struct {
	// Kind is NamespaceList.
	Kind string `json:"kind" oneof:"NamespaceList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the namespaces.
	Items []Namespace `json:"items"`
}

var namespaceDecoder = strict.For[Namespace]()

// DecodeNamespace reads and validates a namespace as DecodeResourceQuota does a
// resource quota.
func DecodeNamespace(doc []byte) (*Namespace, *Status) {
	return decodeValid(namespaceDecoder, doc, func(n *Namespace) *Status {
		status := n.Metadata.settable(&n.APIVersion, &n.Kind, KindNamespace)
		return allFaults(status, n.Validate())
	})
}

// Validate refuses names that are no labels, and values outside of their range.
// Whether the tenant exists is for the server to see.
func (n *Namespace) Validate() *Status {
	var faults faults
	faults.add(checkLabelName(n.Metadata, "namespace"))
	s := &n.Spec
	if s.Tenant != "" && !IsLabel(s.Tenant) {
		faults.add(invalid("spec.tenant", "%q is not the name of a tenant: %s", clip(s.Tenant), labelRule))
	}
	for _, f := range []struct{ path, value, one, other string }{
		{"spec.admission", s.Admission, "reject", "queue"},
		{"spec.unsatisfiable", s.Unsatisfiable, "wait", "reject"},
		{"spec.deviceLost", s.DeviceLost, "keep", "evict"},
	} {
		if f.value != "" && f.value != f.one && f.value != f.other {
			faults.add(invalid(f.path, "%q: want %s or %s", clip(f.value), f.one, f.other))
		}
	}
	if c := s.PriorityCeiling; c != nil && (*c < 0 || *c > MaxPriority) {
		faults.add(invalid("spec.priorityCeiling", "%d is outside 0..%d", *c, MaxPriority))
	}
	if s.DefaultQueue != "" && !IsLabel(s.DefaultQueue) {
		faults.add(invalid("spec.defaultQueue", "%q is not the name of a queue: %s", clip(s.DefaultQueue), labelRule))
	}
	return faults.status()
}
