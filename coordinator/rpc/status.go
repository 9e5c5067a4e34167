package rpc

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/pace"
	"github.com/musterd/muster/coordinator/record"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire/limits"
)

// conditions are the last conditions that one stream's node reported, and its kubelet's
// pool. They are written to the node's status when they change, with what the host has measured; no
// decision depends on them but for lost devices.
type conditions struct {
	written []record.Condition
	kubelet *record.KubeletReport // likewise
	heard   time.Time             // the time of the last report that was written
	known   bool                  // written are the conditions in the store
}

// Bounds of the writes of reports whose conditions have not changed: one in
// reportEvery for a node, one in workEvery for a node on which members run that are
// measured, and reportRate for all nodes of this coordinator. With
// 10,000 nodes that is one in 11 minutes for each at a single coordinator.
const (
	reportEvery = time.Minute
	workEvery   = 15 * time.Second
)

var reportRate = pace.Rate{Every: time.Second / 15, Burst: 15}

// reports paces the reports of all nodes. The zero value is ready; any goroutine may
// use it.
type reports struct {
	mu     sync.Mutex
	bucket pace.Bucket
}

// take reports whether a report may be written now that has no other news.
func (r *reports) take(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bucket.Take(now, reportRate)
}

// take records a heartbeat's conditions and reports whether they have changed.
// A condition that kept its status keeps its time.
func (c *conditions) take(said []*schedulerv1.NodeCondition, now time.Time) ([]record.Condition, bool) {
	var next []record.Condition
	for _, s := range said {
		if slices.ContainsFunc(next, func(c record.Condition) bool { return c.Type == s.GetType() }) {
			continue // a type has one condition
		}
		condition := record.Condition{
			Type: s.GetType(), Status: cmp.Or(s.GetStatus(), "Unknown"), Reason: s.GetReason(), Message: limits.Plain(s.GetMessage(), limits.MaxReason),
			LastTransition: now.UTC().Format(time.RFC3339),
		}
		for _, was := range c.written {
			if was.Type == condition.Type && was.Status == condition.Status {
				condition.LastTransition = was.LastTransition
			}
		}
		next = append(next, condition)
	}
	return next, !slices.Equal(next, c.written)
}

// report writes the node's status if a heartbeat changed the conditions, and otherwise
// at a coarse step. The conditions from an earlier stream are read first, so that its
// conditions keep their times. A node without an identity has no status.
func (h *Heartbeats) report(ctx context.Context, node resource.NodeID, c *conditions, beat *schedulerv1.HeartbeatRequest, m measured) error {
	if !c.known {
		if err := h.recall(ctx, node, c); err != nil {
			return err
		}
	}
	now := time.Now()
	next, news := c.take(beat.GetConditions(), now)
	kubelet := kubeletReport(beat.GetKubelet())
	if !news && kubelet.Equal(c.kubelet) && (now.Sub(c.heard) < m.every() || !h.reports.take(now)) {
		return nil
	}
	if ok, tell := h.spent.allow(node, Conditions, now); !ok { // a later heartbeat tries again
		if tell {
			h.Logger.Warn("node_over_budget", "node", node, "budget", Conditions.Name, "at_once", Conditions.Burst, "a_second", float64(Conditions.Second))
		}
		return nil
	}
	value, err := record.Encode(record.NodeStatus{Conditions: next, HeardAt: now.UTC().Format(time.RFC3339), Usage: m.usage, Devices: m.devices, Kubelet: kubelet, Work: m.work})
	if err != nil {
		return err
	}
	identity, found, _, err := h.Store.Get(ctx, record.NodeIdentityKey(node))
	if err != nil || !found {
		return err
	}
	result, err := h.Store.Txn(ctx, record.Txn{
		If:   []record.Compare{record.ModRevIs(identity.Key, identity.ModRev)},
		Then: []record.Op{record.Put(record.NodeStatusKey(node), value)},
	})
	if err != nil {
		return err
	}
	if result.Succeeded { // else it registered in between; the next heartbeat tries again
		c.written, c.kubelet, c.heard = next, kubelet, now
	}
	return nil
}

// every is the time between two reports without other news.
func (m *measured) every() time.Duration {
	if len(m.work) > 0 {
		return workEvery
	}
	return reportEvery
}

// recall reads a node's conditions from the store.
func (h *Heartbeats) recall(ctx context.Context, node resource.NodeID, c *conditions) error {
	kv, found, _, err := h.Store.Get(ctx, record.NodeStatusKey(node))
	if err != nil {
		return err
	}
	if found {
		status, err := record.Decode[record.NodeStatus](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		c.written, c.kubelet = status.Conditions, status.Kubelet
		c.heard, _ = time.Parse(time.RFC3339, status.HeardAt) // zero where an older version wrote it
	}
	c.known = true
	return nil
}
