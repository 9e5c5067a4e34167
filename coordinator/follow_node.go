package coordinator

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// storedNode is what a follower knows of a node beyond its specification.
type storedNode struct {
	conditions []record.Condition
	numa       map[int]bitset.Set // the CPUs of each NUMA node, by its id
}

// remakeNode makes a node from its keys. What it holds stays: that is its
// units'.
func (s *shown) remakeNode(id resource.NodeID, kvs map[string]record.KV) error {
	_, registered := kvs[record.NodeIdentityKey(id)]
	_, specified := kvs[record.NodeSpecKey(id)]
	if !registered && !specified { // it was deleted
		s.removeNode(id)
		return nil
	}
	n := s.node(id)
	stored := &storedNode{}
	_, heard := kvs[record.NodeLeaseKey(id)]
	n.resetStored(stored, !heard, banOf(kvs[record.BanKey(id)]))
	if kv, found := kvs[record.NodeSpecKey(id)]; found {
		if err := s.loadNodes([]record.KV{kv}); err != nil {
			return err
		}
		if err := stored.layOut(kv.Key, n.spec.Topology); err != nil {
			return err
		}
	}
	if kv, found := kvs[record.NodeIdentityKey(id)]; found {
		identity, err := record.Decode[record.NodeIdentity](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		n.setRegistration(identity.Incarnation, kv.ModRev)
		n.setFence(fenceOf(identity, kv.ModRev))
	}
	if kv, found := kvs[record.NodeStatusKey(id)]; found {
		status, err := record.Decode[record.NodeStatus](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		stored.conditions = status.Conditions
	}
	return nil
}

// layOut takes the host's shape over.
func (n *storedNode) layOut(key string, t record.TopologySummary) error {
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

// show adds what the store tells of a node: whether it is heard, and what is
// not granted of it.
func (n *storedNode) show(of *node, s *api.NodeStatus) {
	ready := api.Condition{Type: "Ready", Status: "True", Reason: "AgentHeard", Message: "its agent is heard; its devices and its usage are the leader's to show"}
	s.Phase = "Ready"
	switch {
	case of.showBan(s, &ready):
	case of.showFence(s, &ready):
	case of.showViolation(s, &ready):
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
