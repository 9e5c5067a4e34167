// Package resttest is a small rest.Service for tests of the API and its
// clients: a cluster in memory that really places, queues, waits and explains,
// by first fit over nodes that start at once and never fail, within quotas that
// it counts on a real quota.Manager. It decides nothing for production, has no
// order by priority and no preemption, tells no trend, and ends what is deleted
// at once whatever the grace.
//
// RunQuotas is the contract that every rest.Quotas keeps, whichever way it is
// reached.
package resttest

import (
	"strings"
	"sync"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/resource"
)

// Node describes one host of the cluster. Hosts of more than 8 CPUs have two
// NUMA nodes.
type Node struct {
	Name   resource.NodeID
	CPUs   int
	Memory resource.Bytes
	GPUs   int
	Labels map[string]string
}

// Cluster is the service. All methods are safe for concurrent use.
type Cluster struct {
	now func() time.Time

	mu          sync.Mutex
	changed     chan struct{} // closed and replaced at every change
	revision    int
	nodes       []*host
	allocations map[string]*api.Allocation // by namespace/name
	grants      map[string]placement       // of what runs
	jobs        map[string]*api.Job
	queue       []*unit           // oldest first
	requests    map[string]string // request id → namespace/name it made
	quota       quotas
}

var _ rest.Service = (*Cluster)(nil)

// unit waits to be placed all at once.
type unit struct {
	key      string // namespace/name of the job or allocation
	members  []string
	request  resource.Request
	selector map[string]string
	// What quotas need to know.
	consumer    quota.ConsumerSpec
	class       string
	terminating bool
}

// New builds a cluster; now stamps objects.
func New(now func() time.Time, nodes ...Node) *Cluster {
	c := &Cluster{
		now: now, changed: make(chan struct{}), allocations: map[string]*api.Allocation{},
		grants: map[string]placement{}, jobs: map[string]*api.Job{}, requests: map[string]string{},
		quota: newQuotas(),
	}
	for _, n := range nodes {
		h := &host{Node: n, memory: n.Memory}
		for range n.CPUs {
			h.cpu = append(h.cpu, resource.WholeCPU)
		}
		for range n.GPUs {
			h.gpu = append(h.gpu, resource.WholeDevice)
		}
		c.nodes = append(c.nodes, h)
	}
	return c
}

func (c *Cluster) stamp() string { return c.now().UTC().Format(time.RFC3339) }

// touch ends a change: it numbers it and wakes all waits.
func (c *Cluster) touch() {
	c.revision++
	close(c.changed)
	c.changed = make(chan struct{})
}

func split(key string) (namespace, name string) {
	namespace, name, _ = strings.Cut(key, "/")
	return namespace, name
}
