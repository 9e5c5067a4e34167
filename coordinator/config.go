package coordinator

import (
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Config is what a coordinator is told. The zero value of an optional field
// means its default.
type Config struct {
	ID      string // unique among the coordinators of a cluster
	Cluster string
	// Address is what followers and agents are told about this coordinator.
	Address record.LeaderAddress
	// Namespaces by name. Namespaces that are not listed are open: their tenant
	// has the namespace's name, there is no limit, and they are charged to the
	// trees that a quota binding names.
	Namespaces map[string]Namespace
	// Quota changes how quota trees are charged; the zero value is the model as
	// it is documented.
	Quota quota.Options
	// NamespaceAllocations bounds the allocations that a namespace has stored;
	// default DefaultNamespaceAllocations.
	NamespaceAllocations int
	// LeaseTTL is how long a dead leader blocks the next one; default 5 s.
	LeaseTTL time.Duration
	// VoteBudget is how long votes are collected before an attempt is fenced;
	// default 2 s.
	VoteBudget time.Duration
	// ReservationTTL is how long an agent keeps a promise before it asks for
	// the outcome; default 10 s.
	ReservationTTL time.Duration
	// EvictionGrace is what units that give way are granted between notice and
	// forced stop; default 30 s.
	EvictionGrace time.Duration
	// RecordRetention is how long terminal records are kept; default 10 min.
	RecordRetention time.Duration
	// Decisions takes the account of what the leader decides; nil for none.
	Decisions DecisionLog
	// CheckAgent says whether an address that an agent has registered may be
	// dialled; nil allows every address.
	CheckAgent func(addr string) error
	// DialAgents holds the credentials for agents.
	DialAgents []grpc.DialOption
	Logger     *slog.Logger
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

// withDefaults fills what is not set and names what is missing.
func (c Config) withDefaults() (Config, error) {
	if c.ID == "" || c.Cluster == "" {
		return c, fmt.Errorf("coordinator: ID %q and Cluster %q must be set", c.ID, c.Cluster)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.NamespaceAllocations == 0 {
		c.NamespaceAllocations = DefaultNamespaceAllocations
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.LeaseTTL, 5 * time.Second},
		{&c.VoteBudget, 2 * time.Second},
		{&c.ReservationTTL, 10 * time.Second},
		{&c.EvictionGrace, defaultGrace * time.Second},
		{&c.RecordRetention, 10 * time.Minute},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return c, nil
}

// namespace returns the settings of a namespace, configured or not.
func (c *Config) namespace(name string) Namespace {
	n := c.Namespaces[name]
	if n.Tenant == "" {
		n.Tenant = resource.TenantID(name)
	}
	return n
}
