package api

import (
	"strings"

	"github.com/musterd/muster/api/internal/strict"
)

// KindPriorityClass is the kind of a PriorityClass document.
const KindPriorityClass = "PriorityClass"

// SystemPrefix begins the names of priority classes that Muster keeps for itself.
const SystemPrefix = "system-"

// The preemption policies of work.
const (
	PreemptLowerPriority = "PreemptLowerPriority"
	PreemptOwnQuota      = "OwnQuota"
	PreemptNever         = "Never"
)

// PriorityClass names a priority. Work has the value that its class had when the work was
// submitted: a change of a class counts for later work alone. Some classes are built in:
// they are there without an object, and their values are fixed.
type PriorityClass struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" default:"PriorityClass" oneof:"PriorityClass"`
	// Metadata names the class as the work does: an RFC 1123 subdomain. A class is in no
	// namespace. Names that begin with system- are Muster's own. A class that no operator
	// has written has no uid and no resourceVersion.
	Metadata ObjectMeta `json:"metadata"`
	// Spec has the priority.
	Spec PriorityClassSpec `json:"spec"`
}

// PriorityClassSpec is the priority that a class gives to work.
type PriorityClassSpec struct {
	// Value is the priority of work that names the class and no number of its own: greater
	// numbers come first. That of a class that is built in is fixed.
	Value int32 `json:"value" range:"0..1000000000" example:"500"`
	// PreemptionPolicy is that of work of the class which has none of its own:
	// PreemptLowerPriority evicts units of a lower priority, OwnQuota takes back quota of
	// its own and evicts nobody else, Never evicts none. Left out, it is that of the
	// coordinators' configuration.
	PreemptionPolicy string `json:"preemptionPolicy,omitempty" oneof:"PreemptLowerPriority,OwnQuota,Never"`
	// GlobalDefault says whether new work that names no class is of this one. At most one
	// class has it.
	GlobalDefault bool `json:"globalDefault,omitempty" example:"true"`
	// Description says in one line when the class is to be used.
	Description string `json:"description,omitempty" example:"training that blocks a release"`
}

// PriorityClassList is a list of priority classes, ordered by name.
type PriorityClassList struct {
	// Kind is PriorityClassList.
	Kind string `json:"kind" oneof:"PriorityClassList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the classes.
	Items []PriorityClass `json:"items"`
}

var priorityClassDecoder = strict.For[PriorityClass]()

// DecodePriorityClass reads and validates a class as DecodeResourceQuota does a resource
// quota.
func DecodePriorityClass(doc []byte) (*PriorityClass, *Status) {
	return decodeValid(priorityClassDecoder, doc, func(c *PriorityClass) *Status {
		status := c.Metadata.settable(&c.APIVersion, &c.Kind, KindPriorityClass)
		return allFaults(status, c.Validate())
	})
}

// Validate refuses a name that is no subdomain or is kept for Muster, a value outside of
// 0..MaxPriority, and a value that differs from the built-in value of the name.
func (c *PriorityClass) Validate() *Status {
	var faults faults
	name, s := c.Metadata.Name, &c.Spec
	faults.add(checkSubdomainName(c.Metadata, "priority class"))
	value, builtIn := BuiltInPriority(name)
	switch {
	case s.Value < 0 || s.Value > MaxPriority:
		faults.add(invalid("spec.value", "%d is outside 0..%d", s.Value, MaxPriority))
	case builtIn && s.Value != value:
		faults.add(invalid("spec.value", "%d: the class %s is built in with the value %d; create a class of another name", s.Value, name, value))
	case !builtIn && strings.HasPrefix(name, SystemPrefix):
		faults.add(invalid("metadata.name", "%q: names that begin with %s are Muster's own; choose another name", clip(name), SystemPrefix))
	}
	faults.add(checkWord("spec.preemptionPolicy", s.PreemptionPolicy, PreemptLowerPriority, PreemptOwnQuota, PreemptNever))
	faults.add(checkLine("spec.description", s.Description))
	return faults.status()
}

// checkSubdomainName refuses metadata without a name that is a subdomain.
func checkSubdomainName(m ObjectMeta, what string) *Status {
	var faults faults
	switch {
	case m.Name == "":
		faults.add(invalid("metadata.name", "required: "+subdomainRule, 253))
	case !IsSubdomain(m.Name):
		faults.add(invalid("metadata.name", "%q is not the name of a %s: "+subdomainRule, clip(m.Name), what, 253))
	}
	faults.add(checkCluster(m))
	return faults.status()
}
