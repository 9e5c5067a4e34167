package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// shown is a follower's view and what of it is out of date. Every object in it
// is made anew from its own keys when one of them has changed, and never from
// what it was before: there is no history that could be followed wrongly.
type shown struct {
	view
	touched map[string]bool // keys that have changed
}

func newShown(o quota.Options, floor resource.Revision) shown {
	return shown{view: newView(o, floor), touched: map[string]bool{}}
}

// touch notes that a key has changed.
func (s *shown) touch(key string) {
	for _, prefix := range []string{store.UnitsPrefix, store.JobsPrefix, store.OrderPrefix, store.TxPrefix, store.NodesPrefix, store.QuotaPrefix} {
		if strings.HasPrefix(key, prefix) {
			s.touched[key] = true
			return
		}
	}
}

// refresh makes what is out of date anew, from all keys as they are now.
func (s *shown) refresh(kvs map[string]store.KV) error {
	if len(s.touched) == 0 {
		return nil
	}
	nodes, jobs, units := map[resource.NodeID]bool{}, map[string]bool{}, map[string]bool{}
	for key := range s.touched {
		if err := s.concerns(key, kvs, nodes, jobs, units); err != nil {
			return err
		}
	}
	clear(s.touched)
	for id := range nodes {
		if err := s.remakeNode(id, kvs); err != nil {
			return err
		}
	}
	for key := range jobs {
		if err := s.remakeJob(key, kvs, units); err != nil {
			return err
		}
	}
	for path := range units {
		if err := s.remakeUnit(path, kvs); err != nil {
			return err
		}
	}
	return nil
}

// concerns finds out which objects a key is a part of. A quota's key is one by
// itself.
func (s *shown) concerns(key string, kvs map[string]store.KV, nodes map[resource.NodeID]bool, jobs, units map[string]bool) error {
	switch {
	case strings.HasPrefix(key, store.UnitsPrefix):
		path, err := store.ParseUnitKey(key)
		units[path.String()] = true
		return err
	case strings.HasPrefix(key, store.OrderPrefix):
		order, err := store.ParseOrderKey(key)
		units[order.Unit.String()] = true
		return err
	case strings.HasPrefix(key, store.JobsPrefix):
		jobs[key] = true
	case strings.HasPrefix(key, store.NodesPrefix):
		node, err := store.ParseNodeKey(key)
		if node.Part != store.NodeTxPart {
			nodes[node.ID] = true
		}
		return err
	case strings.HasPrefix(key, store.TxPrefix):
		return s.concernsTx(key, kvs, units)
	case strings.HasPrefix(key, store.QuotaPrefix):
		return s.remakeQuota(key, kvs)
	}
	return nil
}

// concernsTx adds the unit that a record is about, and the one that it was.
func (s *shown) concernsTx(key string, kvs map[string]store.KV, units map[string]bool) error {
	tx, err := store.ParseTxKey(key)
	if err != nil {
		return err
	}
	if a := s.attempts[tx]; a != nil {
		units[a.unit.path] = true
	}
	kv, found := kvs[key]
	if !found {
		return nil
	}
	record, err := store.Decode[store.TxRecord](key, kv.Value)
	if err == nil && !record.State.Terminal() {
		units[record.Unit.String()] = true
	}
	return err
}

// remakeUnit makes a unit from its own key, its place in the order and its
// transaction's record.
func (s *shown) remakeUnit(path string, kvs map[string]store.KV) error {
	if u := s.units[path]; u != nil {
		s.dropUnit(u)
	}
	parsed, err := store.ParseUnitPath(path)
	if err != nil {
		return err
	}
	kv, found := kvs[parsed.Key()]
	if !found {
		return nil
	}
	u, err := s.loadUnit(kv)
	if err != nil {
		return err
	}
	if _, queued := kvs[u.record.Order().Key()]; queued {
		u.queued, u.failed = true, 1
		s.queue.Push(u.key)
	}
	key := store.TxKey(u.record.TxID)
	held, found := kvs[key]
	if u.record.TxID == "" || !found {
		return nil
	}
	record, err := store.Decode[store.TxRecord](key, held.Value)
	if err != nil || record.State.Terminal() {
		return err
	}
	a := s.restoreAttempt(u.record.TxID, u, record, held.ModRev).attempt
	a.held = nil // the agents tell the leader alone
	for _, c := range a.charges {
		if c.Tree == quota.Tree {
			s.quotas.limits.Charge(u.record.TxID, quota.Charge{
				Group: c.Group, Request: c.Request, Members: u.charge.Members, Class: u.charge.Class, Terminating: u.charge.Terminating,
			})
		}
	}
	return nil
}

// dropUnit takes a unit out with all that it holds.
func (s *shown) dropUnit(u *unit) {
	delete(s.units, u.path)
	s.queue.Remove(u.key)
	for i := range u.record.Members {
		if name := u.record.Namespace + "/" + u.memberName(i); s.members[name] != nil && s.members[name].unit == u {
			delete(s.members, name)
		}
	}
	if j := u.job; j != nil {
		j.units = slices.DeleteFunc(j.units, func(other *unit) bool { return other == u })
	}
	if a := u.attempt; a != nil {
		tx := a.machine.ID()
		delete(s.attempts, tx)
		s.quotas.limits.Discharge(tx)
		for _, id := range a.machine.Nodes() {
			if n := s.nodes[id]; n != nil { // else it was deleted since
				delete(n.held, tx)
			}
		}
	}
}

// remakeJob makes a job from its key, and has its units made anew.
func (s *shown) remakeJob(key string, kvs map[string]store.KV, units map[string]bool) error {
	namespace, name, err := store.ParseJobKey(key)
	if err != nil {
		return err
	}
	if before := s.jobs[namespace+"/"+name]; before != nil {
		for _, u := range slices.Clone(before.units) {
			units[u.path] = true
			s.dropUnit(u)
		}
		delete(s.jobs, namespace+"/"+name)
	}
	kv, found := kvs[key]
	if !found {
		return nil
	}
	if err := s.loadJobs([]store.KV{kv}); err != nil {
		return err
	}
	for _, path := range s.jobs[namespace+"/"+name].record.Units {
		units[path.String()] = true
	}
	return nil
}

// remakeQuota makes what bounds tenants. Trees are not made: where units are
// counted on them only the leader knows.
func (s *shown) remakeQuota(key string, kvs map[string]store.KV) error {
	parsed, err := store.ParseQuotaKey(key)
	if err != nil {
		return err
	}
	kv, found := kvs[key]
	switch parsed.Kind {
	case store.QuotaTrees, store.QuotaLimits:
		return nil
	case store.QuotaResources:
		if !found {
			s.quotas.removeResourceQuota(parsed.Namespace, parsed.Name)
		}
	case store.QuotaForests:
		delete(s.quotas.forests, parsed.Name)
	case store.QuotaNamespaces:
		delete(s.quotas.bindings, parsed.Name)
	}
	if !found {
		return nil
	}
	return s.loadQuotas([]store.KV{kv})
}

// storedNode is what a follower knows of a node beyond its specification.
type storedNode struct {
	conditions []store.Condition
	numa       map[int]bitset.Set // the CPUs of each NUMA node, by its id
}

// remakeNode makes a node from its keys. What it holds stays: that is its
// units'.
func (s *shown) remakeNode(id resource.NodeID, kvs map[string]store.KV) error {
	_, registered := kvs[store.NodeIdentityKey(id)]
	_, specified := kvs[store.NodeSpecKey(id)]
	if !registered && !specified { // it was deleted
		s.removeNode(id)
		return nil
	}
	n := s.node(id)
	stored := &storedNode{}
	n.stored, n.spec, n.specRev, n.revision, n.incarnation = stored, store.NodeSpec{}, 0, 0, resource.Incarnation{}
	_, heard := kvs[store.NodeLeaseKey(id)]
	n.fence, n.unheard = nil, !heard
	if kv, found := kvs[store.NodeSpecKey(id)]; found {
		if err := s.loadNodes([]store.KV{kv}); err != nil {
			return err
		}
		n.view.Labels = storedLabels(n)
		if err := stored.layOut(kv.Key, n.spec.Topology); err != nil {
			return err
		}
	}
	if kv, found := kvs[store.NodeIdentityKey(id)]; found {
		identity, err := store.Decode[store.NodeIdentity](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		n.incarnation, n.fence = identity.Incarnation, fenceOf(identity, kv.ModRev)
		n.revision = kv.ModRev
	}
	if kv, found := kvs[store.NodeStatusKey(id)]; found {
		status, err := store.Decode[store.NodeStatus](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		stored.conditions = status.Conditions
	}
	return nil
}

// layOut takes the host's shape over.
func (n *storedNode) layOut(key string, t store.TopologySummary) error {
	n.numa = map[int]bitset.Set{}
	for id, list := range t.NUMACPUs {
		cpus, err := bitset.Parse(list)
		if err != nil {
			return fmt.Errorf("%s: numaCPUs of node %d: %w", key, id, err)
		}
		n.numa[id] = cpus
	}
	return nil
}

// storedLabels is labelsOf as far as the store tells.
func storedLabels(n *node) map[string]string {
	labels := map[string]string{"kubernetes.io/hostname": n.spec.Hostname, "muster.dev/node": string(n.view.ID)}
	if t := n.spec.Topology; t.GPUs > 0 && len(t.GPUModels) > 0 {
		labels["nvidia.com/gpu.product"] = labelValue(n.model(0))
		labels["nvidia.com/gpu.count"] = fmt.Sprint(t.GPUs)
	}
	maps.Copy(labels, n.spec.Labels)
	return labels
}

// show adds what the store tells of a node: whether it is heard, and what is
// not granted of it.
func (n *storedNode) show(of *node, s *api.NodeStatus) {
	ready := api.Condition{Type: "Ready", Status: "True", Reason: "AgentHeard", Message: "its agent is heard; its devices and its usage are the leader's to show"}
	s.Phase = "Ready"
	switch {
	case of.showFence(s, &ready):
	case showQuarantine(n.quarantine(), s, &ready):
	case of.revision == 0:
		s.Phase, ready.Status, ready.Reason, ready.Message = "Unregistered", "False", "Unregistered", "the agent has not registered yet"
	case of.unheard:
		of.leaseExpired(s, &ready)
	}
	for _, c := range n.conditions {
		if c.Type == "Ready" && c.Status == "False" && s.Phase == "Ready" {
			s.Phase, ready.Status, ready.Reason, ready.Message = "NotReady", "False", cmp.Or(c.Reason, "AgentNotReady"), c.Message
		}
	}
	s.Conditions = append([]api.Condition{ready}, s.Conditions...)
	free := maps.Clone(of.spec.Allocatable)
	for _, h := range of.held {
		for _, m := range h.members {
			for name, amount := range m.Assignment.Vector() {
				if left, known := free[name]; known {
					free[name] = max(0, left-amount)
				}
			}
		}
	}
	s.Available = api.Amounts(free)
}
