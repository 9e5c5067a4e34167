package lead

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/rendezvous"
	"github.com/musterd/muster/resource"
)

// Rules are the configuration that the leader decides by; Config says what each
// field means.
type Rules struct {
	Id         string
	Namespaces map[string]Namespace
	// RequireNamespaces: work in a namespace without an object is refused.
	RequireNamespaces    bool
	Quota                quota.Options
	NamespaceAllocations int
	// Documents bounds the documents of all tenants together; 0 is no bound.
	Documents       count.Share
	VoteBudget      time.Duration
	ReservationTTL  time.Duration
	EvictionGrace   time.Duration
	RecordRetention time.Duration
	Decisions       DecisionLog
	// EvictOnDeviceLost: a unit that holds a lost device is evicted, where its
	// namespace has no rule of its own.
	EvictOnDeviceLost bool
	// RejectUnsatisfiable: new work that can never run is refused, where neither its
	// namespace nor its tenant has a rule of its own.
	RejectUnsatisfiable bool
	// PlacementPolicy is a name of place.Policies; "" for the default.
	PlacementPolicy string
	// PreemptionPolicy is the policy of work without a policy of its own or of its class.
	PreemptionPolicy string
	// StartsWork: agents start the commands of jobs. Without it a job with a command is
	// refused.
	StartsWork bool
	// Ports are those at which the members of work meet; the zero value is the default.
	Ports rendezvous.Range `json:",omitzero"`
}

// Namespace is the owner of a namespace and the rules for its work: those of its
// object, or of the configuration. Hard and Groups are the configuration's alone.
type Namespace struct {
	Tenant resource.TenantID
	// Hard is the limit per resource in base units; nil = unlimited. It is kept
	// as the namespace's resource quota "config".
	Hard resource.Vector
	// Groups say to which group of a quota tree the namespace's units are
	// charged, by tree. A quota binding replaces them tree by tree, a unit's
	// own specification replaces both. Units wait while the tree or the group
	// does not exist.
	Groups map[string]string
	// Admission is "queue" where an allocation over quota waits instead of being
	// refused with 403, unless a quota binding says otherwise. Jobs always wait.
	Admission string
	// Unsatisfiable is "wait" or "reject" for work that can never run; "" for the rule
	// of the tenant, else of the configuration.
	Unsatisfiable string
	// DeviceLost is "keep" or "evict"; "" for the rule of the configuration.
	DeviceLost string
	// PriorityCeiling is the greatest priority of new work; nil = any.
	PriorityCeiling *int32
	// DefaultQueue is the queue of work that names none; "" = api.DefaultQueue.
	DefaultQueue string
	// RoleCeilings are the greatest priorities of new work by the role of its submitter.
	RoleCeilings map[string]int32
	// Limits are the count quotas of its object; nil where it has none.
	Limits *api.NamespaceCounts
	// Idle is the treatment of jobs whose GPUs do nothing; nil: they go on.
	Idle *api.NamespaceIdle `json:",omitempty"`
}

// ruleOf are the owner and the rules in a namespace's object.
func ruleOf(spec *api.NamespaceSpec) Namespace {
	return Namespace{
		Tenant: resource.TenantID(spec.Tenant), Admission: spec.Admission, Unsatisfiable: spec.Unsatisfiable, DeviceLost: spec.DeviceLost,
		PriorityCeiling: spec.PriorityCeiling, DefaultQueue: spec.DefaultQueue, RoleCeilings: spec.RoleCeilings, Limits: spec.Limits, Idle: spec.Idle,
	}
}

// graceSeconds is the grace of victims, in whole seconds.
func (l *Leader) graceSeconds() int64 {
	return int64((l.rules.EvictionGrace + time.Second - 1) / time.Second)
}

// mayLog reports whether one more line about a node may be written now.
func (l *Leader) mayLog(n *node) bool { return n.logs.Take(l.post.Now(), logRate) }
