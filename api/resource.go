package api

import (
	"math"
	"strings"

	"github.com/musterd/muster/api/internal/strict"
	"github.com/musterd/muster/resource"
)

// KindResource is the kind of a Resource document.
const KindResource = "Resource"

// Resource describes a resource that requests, quotas and nodes name: a resource that
// Muster has built in, that a registered node declares, or that an operator created.
type Resource struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" default:"Resource" oneof:"Resource"`
	// Metadata names the resource as quotas name it: an RFC 1123 subdomain, "/" and a
	// name of letters, digits, '-', '_' and '.', or such a name alone. A resource is in
	// no namespace. A resource that no operator has written has no uid and no
	// resourceVersion.
	Metadata ObjectMeta `json:"metadata"`
	// Spec describes the resource.
	Spec ResourceSpec `json:"spec"`
	// Status is the part that the cluster adds.
	Status ResourceStatus `json:"status,omitzero" by:"server"`
}

// ResourceSpec describes a resource. Of a resource that is built in or that a node
// declares, operators may change displayName, unit and rank.
type ResourceSpec struct {
	// DisplayName is the name that people read: at most 256 bytes.
	DisplayName string `json:"displayName,omitempty" example:"Simulation licence"`
	// Unit is the word for one of it in a quantity: at most 256 bytes.
	Unit string `json:"unit,omitempty" example:"seats"`
	// Kind is the way in which amounts are counted: count of whole things or thousandths
	// of them, bytes, or unique for things with names of their own. Default: that of a
	// built-in or declared name, else count.
	Kind string `json:"kind,omitempty" oneof:"count,bytes,unique"`
	// Scope is node where each node has an amount of its own, and cluster where the
	// cluster has one amount that is on no node. Default: that of a built-in or declared
	// name, else node.
	Scope string `json:"scope,omitempty" oneof:"node,cluster"`
	// Rank orders resources in lists, the smallest first; resources of one rank are in
	// the order of their names. Default: that of a built-in or declared name, else 100.
	Rank int32 `json:"rank,omitempty" example:"20"`
}

// ResourceStatus is the part of a Resource that the cluster adds.
type ResourceStatus struct {
	// Sources say where the name comes from: BuiltIn, Node where registered nodes
	// declare an amount, and Operator where somebody has written the object.
	Sources []string `json:"sources,omitempty" oneof:"BuiltIn,Node,Operator"`
	// Nodes counts the registered nodes that declare an amount. The number makes no
	// event of a watch.
	Nodes int `json:"nodes,omitempty" example:"12"`
}

// ResourceList is a list of resources, ordered by name.
type ResourceList struct {
	// Kind is ResourceList.
	Kind string `json:"kind" oneof:"ResourceList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the resources.
	Items []Resource `json:"items"`
}

// The sources of a resource.
const (
	SourceBuiltIn  = "BuiltIn"
	SourceNode     = "Node"
	SourceOperator = "Operator"
)

// The ways to count a resource, and its scopes.
const (
	ResourceCount   = "count"
	ResourceBytes   = "bytes"
	ResourceUnique  = "unique"
	ResourcePerNode = "node"
	ResourceCluster = "cluster"
)

const resourceNameRule = "want NAME or DOMAIN/NAME: a name of 1..63 letters, digits, '-', '_' and '.', behind a domain of at most 253 of a-z, 0-9, '-' and '.'"

// IsResourceName reports whether s can be the name of a resource.
func IsResourceName(s string) bool {
	domain, name, found := strings.Cut(s, "/")
	if !found {
		return IsTreeName(s)
	}
	return IsSubdomain(domain) && IsTreeName(name)
}

var resourceDecoder = strict.For[Resource]()

// DecodeResource reads and validates a resource as DecodeResourceQuota does a resource
// quota.
func DecodeResource(doc []byte) (*Resource, *Status) {
	return decodeValid(resourceDecoder, doc, func(r *Resource) *Status {
		status := r.Metadata.settable(&r.APIVersion, &r.Kind, KindResource)
		r.Status = ResourceStatus{}
		return allFaults(status, r.Validate())
	})
}

// Validate refuses a name that is none of a resource, texts that are too long or that
// a terminal would not print, and unknown words.
func (r *Resource) Validate() *Status {
	var faults faults
	switch name := r.Metadata.Name; {
	case name == "":
		faults.add(invalid("metadata.name", "required: %s", resourceNameRule))
	case !IsResourceName(name):
		faults.add(invalid("metadata.name", "%q is not the name of a resource: %s", clip(name), resourceNameRule))
	default:
		if _, _, err := resource.Name(name).HugepageSize(); err != nil {
			faults.add(invalid("metadata.name", "%v", err))
		} else if _, _, err := resource.Name(name).MIGProfile(); err != nil {
			faults.add(invalid("metadata.name", "%v", err))
		}
	}
	faults.add(checkCluster(r.Metadata))
	faults.add(checkLine("spec.displayName", r.Spec.DisplayName))
	faults.add(checkLine("spec.unit", r.Spec.Unit))
	if k := r.Spec.Kind; k != "" && k != ResourceCount && k != ResourceBytes && k != ResourceUnique {
		faults.add(invalid("spec.kind", "%q: want %s, %s or %s", clip(k), ResourceCount, ResourceBytes, ResourceUnique))
	}
	if s := r.Spec.Scope; s != "" && s != ResourcePerNode && s != ResourceCluster {
		faults.add(invalid("spec.scope", "%q: want %s or %s", clip(s), ResourcePerNode, ResourceCluster))
	}
	if r.Spec.Rank < 0 || r.Spec.Rank > math.MaxInt16 {
		faults.add(invalid("spec.rank", "%d is outside 0..%d", r.Spec.Rank, math.MaxInt16))
	}
	return faults.status()
}
