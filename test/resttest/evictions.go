package resttest

import (
	"context"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
)

// PreemptAllocation implements rest.Evictions. Here everything stops at once,
// and nothing goes back to the queue.
func (c *Cluster) PreemptAllocation(_ context.Context, namespace string, p api.PreemptionRequest) (*api.Preemption, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := namespace + "/" + p.TargetAllocation
	a := c.allocations[key]
	switch {
	case a == nil:
		return nil, notFound("allocation", key)
	case a.Status.Phase != api.Running:
		return nil, api.Errorf(http.StatusConflict, "%s is %s: nothing of it runs that could be evicted", key, a.Status.Phase)
	}
	freed := a.Status.AllocatedResources
	c.evict(key, a, p.Reason)
	return &api.Preemption{
		PreemptionID: a.Metadata.UID, TargetAllocation: p.TargetAllocation, Unit: key, Status: "Initiated",
		GracePeriodEnds: c.after(p.GracePeriodSeconds), ResourcesFreed: freed,
	}, nil
}

// DrainNode implements rest.Evictions.
func (c *Cluster) DrainNode(_ context.Context, name string, o api.DrainOptions) (*api.Drain, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.host(name)
	if err != nil {
		return nil, err
	}
	h.unschedulable = true
	d := &api.Drain{Status: "Drained"}
	for key, a := range c.allocations {
		if a.Status.Phase != api.Running || a.Status.NodeID != h.Name {
			continue
		}
		c.evict(key, a, o.Reason)
		d.Status, d.EstimatedCompletionTime = "Draining", c.after(o.GracePeriodSeconds)
		d.AllocationsToEvict++
		d.Progress.Evicted++
	}
	return d, nil
}

func (c *Cluster) evict(key string, a *api.Allocation, reason string) {
	c.stop(key, a, api.Preempted)
	a.Status = api.AllocationStatus{Phase: api.Preempted, Message: reason}
	c.schedule()
	c.touch()
}

// after is when a grace from now ends.
func (c *Cluster) after(grace *int64) string {
	seconds := int64(30)
	if grace != nil {
		seconds = *grace
	}
	return c.now().Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
}
