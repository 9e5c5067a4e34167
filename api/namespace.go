package api

import (
	"cmp"
	"maps"
	"slices"
	"time"

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
	// Status counts the objects of the namespace. It makes no event of a watch.
	Status NamespaceStatus `json:"status,omitzero" by:"server"`
}

// NamespaceSpec has the owner of a namespace and the rules for its work. A change
// counts for work that is submitted later; deviceLost and idle count for all work.
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
	// Absent: no ceiling but that of 1000 which each role of a tenant has.
	PriorityCeiling *int32 `json:"priorityCeiling,omitempty" example:"1000"`
	// RoleCeilings are the greatest priorities that callers may ask for by their role
	// editor, tenant-admin or admin, beside priorityCeiling: 0 to 1000000000. A caller of
	// several roles has the ceiling of the role that may do most. A role that is absent has
	// no ceiling of its own where priorityCeiling is set, and as a role of a tenant 1000
	// elsewhere.
	RoleCeilings map[string]int32 `json:"roleCeilings,omitempty" example:"{editor: 200}"`
	// DefaultQueue is the queue of work that names none; default: the queue default.
	DefaultQueue string `json:"defaultQueue,omitempty" example:"research"`
	// Limits bound the number and the size of the objects in the namespace. Work, and a
	// change of work, beyond a limit is refused with 429; objects beyond a limit that was
	// lowered stay.
	Limits *NamespaceCounts `json:"limits,omitempty"`
	// Idle is the treatment of jobs whose GPUs do nothing; absent: they go on. A change
	// counts for jobs that run, too.
	Idle *NamespaceIdle `json:"idle,omitempty"`
}

// NamespaceIdle is the treatment of jobs whose GPUs do nothing. A unit is idle once the
// measured use of its GPUs, all together, was below a percentage for a duration. GPUs that
// are not measured are never idle.
type NamespaceIdle struct {
	// Below is the use in percent below which the GPUs do nothing.
	Below *int32 `json:"below,omitempty" default:"5" range:"1..100" example:"10"`
	// For is the measured time without a minute of more use.
	For string `json:"for,omitempty" default:"1h" range:"1m..720h" format:"duration" example:"2h"`
	// Then is the treatment: warn sets the condition Idle of the allocations and of the
	// job. suspend also suspends the job once all of its units that run are idle, with
	// grace; its owner resumes it. end ends such a job, with grace: it is Failed with the
	// reason Idle.
	Then string `json:"then,omitempty" default:"warn" oneof:"warn,suspend,end"`
}

// The values of NamespaceIdle.Then.
const (
	IdleWarn    = "warn"
	IdleSuspend = "suspend"
	IdleEnd     = "end"
)

// Rule returns the rule with its defaults, of a valid document.
func (i NamespaceIdle) Rule() (below int32, length time.Duration, then string) {
	length, err := time.ParseDuration(i.For)
	if err != nil {
		length = time.Hour
	}
	below = 5
	if i.Below != nil {
		below = *i.Below
	}
	return below, length, cmp.Or(i.Then, IdleWarn)
}

// check refuses values outside of their range.
func (i *NamespaceIdle) check(faults *faults) {
	if b := i.Below; b != nil && (*b < 1 || *b > 100) {
		faults.add(invalid("spec.idle.below", "%d is outside 1..100", *b))
	}
	if status := checkDuration("spec.idle.for", i.For); status != nil {
		faults.add(status)
	} else if _, length, _ := i.Rule(); length < time.Minute || length > 720*time.Hour {
		faults.add(invalid("spec.idle.for", "%s is outside 1m..720h", clip(i.For)))
	}
	if !slices.Contains([]string{"", IdleWarn, IdleSuspend, IdleEnd}, i.Then) {
		faults.add(invalid("spec.idle.then", "%q: want warn, suspend or end", clip(i.Then)))
	}
}

// NamespaceCounts has the number and the size of the objects of a namespace: as
// limits the greatest values, where an absent value is no limit if it has no default.
type NamespaceCounts struct {
	// Allocations counts the allocations; each member of a job is an allocation. Limit:
	// 0 to 10000000, default: limits.allocationsPerNamespace of the coordinators'
	// configuration.
	Allocations *int64 `json:"allocations,omitempty" example:"500"`
	// Jobs counts the jobs. Limit: 0 to 10000000.
	Jobs *int64 `json:"jobs,omitempty" example:"100"`
	// WaitingUnits counts the units that have no place yet: allocations, gangs of jobs,
	// and members of jobs that start by themselves. New work waits until it has its place,
	// so a limit of 0 takes no new work. Limit: 0 to 10000000.
	WaitingUnits *int64 `json:"waitingUnits,omitempty" example:"200"`
	// AnnotationBytes is the size of the keys and values of all annotations of
	// allocations, jobs and templates of jobs. Limit: 0 to 1073741824.
	AnnotationBytes *int64 `json:"annotationBytes,omitempty" unit:"bytes" example:"1048576"`
	// DocumentBytes is the size of the stored documents of allocations and jobs. Limit: 0
	// to 1073741824, default: 67108864.
	DocumentBytes *int64 `json:"documentBytes,omitempty" unit:"bytes" example:"16777216"`
}

// NamespaceStatus is the part of a Namespace that the server adds.
type NamespaceStatus struct {
	// Used is the present number and size of the objects.
	Used *NamespaceCounts `json:"used,omitempty"`
	// Hard is the limits in force.
	Hard *NamespaceCounts `json:"hard,omitempty"`
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
		n.Status = NamespaceStatus{}
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
	for _, role := range slices.Sorted(maps.Keys(s.RoleCeilings)) {
		path := "spec.roleCeilings." + clip(role)
		if role != RoleEditor && role != RoleTenantAdmin && role != RoleAdmin {
			faults.add(invalid(path, "%q is no role that submits work: want editor, tenant-admin or admin", clip(role)))
		} else if c := s.RoleCeilings[role]; c < 0 || c > MaxPriority {
			faults.add(invalid(path, "%d is outside 0..%d", c, MaxPriority))
		}
	}
	if s.DefaultQueue != "" && !IsLabel(s.DefaultQueue) {
		faults.add(invalid("spec.defaultQueue", "%q is not the name of a queue: %s", clip(s.DefaultQueue), labelRule))
	}
	if s.Idle != nil {
		s.Idle.check(&faults)
	}
	if l := s.Limits; l != nil {
		for _, f := range []struct {
			name  string
			value *int64
			most  int64
		}{
			{"allocations", l.Allocations, maxCount}, {"jobs", l.Jobs, maxCount}, {"waitingUnits", l.WaitingUnits, maxCount},
			{"annotationBytes", l.AnnotationBytes, maxCountedBytes}, {"documentBytes", l.DocumentBytes, maxCountedBytes},
		} {
			if v := f.value; v != nil && (*v < 0 || *v > f.most) {
				faults.add(invalid("spec.limits."+f.name, "%d is outside 0..%d", *v, f.most))
			}
		}
	}
	return faults.status()
}

// The greatest limits of a namespace.
const (
	maxCount        = 10_000_000
	maxCountedBytes = 1 << 30
)
