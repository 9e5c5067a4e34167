package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// Rules are the configuration that the leader decides by; Config says what each
// field means.
type Rules struct {
	Id                   string
	Namespaces           map[string]Namespace
	Quota                quota.Options
	NamespaceAllocations int
	VoteBudget           time.Duration
	ReservationTTL       time.Duration
	EvictionGrace        time.Duration
	RecordRetention      time.Duration
	Decisions            DecisionLog
	// EvictOnDeviceLost: a unit that holds a lost device is evicted.
	EvictOnDeviceLost bool
}

// Namespace maps a namespace to its tenant, its limit and its groups.
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
	// QueueAllocations: an allocation over quota waits instead of being refused
	// with 403, unless a quota binding says otherwise. Jobs always wait.
	QueueAllocations bool
}

// namespace returns the settings of a namespace, configured or not.
func (r *Rules) namespace(name string) Namespace {
	n := r.Namespaces[name]
	if n.Tenant == "" {
		n.Tenant = resource.TenantID(name)
	}
	return n
}
