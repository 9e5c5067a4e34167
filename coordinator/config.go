package coordinator

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/era"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rendezvous"
	"github.com/musterd/muster/level"
)

// Config is the configuration of a coordinator. The zero value of an optional
// field means its default.
type Config struct {
	// Noted takes each change of a person that the store has, some of them more than
	// once; it must not block. nil = nobody needs them.
	Noted func(record.Audit)
	// Note writes an entry for the request of a context into the audit; nil writes none.
	Note func(context.Context) error
	// Era keeps this coordinator's knowledge of the store's past; may be nil.
	Era     *era.Keeper
	ID      string // unique among the coordinators of a cluster
	Cluster string
	// Address is the address of this coordinator for followers and agents.
	Address record.LeaderAddress
	// NewestLevel is the newest known feature level of a coordinator whose store is no
	// *store.Guarded; default level.Newest.
	NewestLevel level.Level
	// Namespaces by name. Their owners and rules become objects at the first start
	// whose configuration has namespaces, and the objects count from then on; their
	// limits and groups stay the configuration's. Namespaces without an object are
	// open: their tenant has the namespace's name, there is no limit, and they are
	// charged to the trees that a quota binding names.
	Namespaces map[string]lead.Namespace
	// RequireNamespaces: work in a namespace without an object is refused.
	RequireNamespaces bool
	// Quota changes how quota trees are charged; the zero value is the model as
	// it is documented.
	Quota quota.Options
	// NamespaceAllocations bounds the allocations that a namespace has stored;
	// default DefaultNamespaceAllocations.
	NamespaceAllocations int
	// Documents bounds the documents of all tenants together; default count.DefaultShare.
	Documents count.Share
	// LeaseTTL is how long a dead leader blocks the next one; default 5 s.
	LeaseTTL time.Duration
	// VoteBudget is how long votes are collected before an attempt is fenced;
	// default 2 s.
	VoteBudget time.Duration
	// ReservationTTL is how long an agent keeps a promise before it asks for
	// the outcome; default 10 s.
	ReservationTTL time.Duration
	// EvictionGrace is the time between notice and forced stop of units that
	// give way; default 30 s.
	EvictionGrace time.Duration
	// EvictOnDeviceLost: a unit that holds a lost device is evicted, and a job's
	// unit waits anew. Without it the unit keeps the device. The deviceLost of a
	// namespace wins.
	EvictOnDeviceLost bool
	// RejectUnsatisfiable: new work that can never run on the registered nodes and
	// within the quotas is refused. Without it the work waits, and its client gets a
	// warning. The unsatisfiable of a namespace wins, then that of its tenant.
	RejectUnsatisfiable bool
	// PlacementPolicy is the policy by which nodes are chosen, one of place.Policies; ""
	// for the default.
	PlacementPolicy string
	// PreemptionPolicy is the preemptionPolicy of work without a policy, own or by class;
	// default DefaultPreemptionPolicy. No record has the default.
	PreemptionPolicy string
	// StartsWork: the agents of the cluster start the commands of jobs. Without it a job
	// with a command is refused with 422.
	StartsWork bool
	// Ports are those at which the members of work meet; the zero value is the default.
	Ports rendezvous.Range
	// RecordRetention is how long terminal records are kept; default 10 min.
	RecordRetention time.Duration
	// Decisions takes the account of the leader's decisions; nil for none.
	Decisions lead.DecisionLog
	// CheckAgent decides whether an address that an agent has registered may be
	// dialled; nil allows every address.
	CheckAgent func(addr string) error
	// DialAgents holds the credentials for agents.
	DialAgents []grpc.DialOption
	Logger     *slog.Logger
	// observe sees each term before the term loads; tests set it.
	observe func(*term, lead.Beginning)
}

// withDefaults fills the fields that are not set and names the missing ones.
func (c Config) withDefaults() (Config, error) {
	if c.ID == "" || c.Cluster == "" {
		return c, fmt.Errorf("coordinator: ID %q and Cluster %q must be set", c.ID, c.Cluster)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.NewestLevel == 0 {
		c.NewestLevel = level.Newest
	}
	if c.NamespaceAllocations == 0 {
		c.NamespaceAllocations = DefaultNamespaceAllocations
	}
	if c.PreemptionPolicy == "" {
		c.PreemptionPolicy = DefaultPreemptionPolicy
	}
	if c.Documents == 0 {
		c.Documents = count.DefaultShare
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.LeaseTTL, 5 * time.Second},
		{&c.VoteBudget, 2 * time.Second},
		{&c.ReservationTTL, 10 * time.Second},
		{&c.EvictionGrace, lead.DefaultGrace * time.Second},
		{&c.RecordRetention, 10 * time.Minute},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return c, nil
}

// rules are the part of the configuration that the leader decides by.
func (c *Config) rules() lead.Rules {
	return lead.Rules{
		Id: c.ID, Namespaces: c.Namespaces, RequireNamespaces: c.RequireNamespaces, Quota: c.Quota, NamespaceAllocations: c.NamespaceAllocations, Documents: c.Documents, VoteBudget: c.VoteBudget,
		ReservationTTL: c.ReservationTTL, EvictionGrace: c.EvictionGrace, RecordRetention: c.RecordRetention, Decisions: c.Decisions,
		EvictOnDeviceLost: c.EvictOnDeviceLost, RejectUnsatisfiable: c.RejectUnsatisfiable, PlacementPolicy: c.PlacementPolicy, PreemptionPolicy: c.PreemptionPolicy, StartsWork: c.StartsWork, Ports: c.Ports,
	}
}

// DefaultPreemptionPolicy is the preemptionPolicy of work without a policy, in every
// program.
const DefaultPreemptionPolicy = api.PreemptLowerPriority

// DefaultNamespaceAllocations is the most allocations that a namespace may have
// stored, by default: the members of jobs count one by one, in every phase.
// 10,000 is Slurm's default MaxJobCount; a queued job takes about 20 KiB of
// memory, so a namespace takes about 200 MiB.
const DefaultNamespaceAllocations = 10_000
