package coordinator

import (
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// shown is a follower's view and what of it is out of date. Every object in it
// is made anew from its own keys when one of them has changed, and never from
// what it was before: there is no history that could be followed wrongly.
type shown struct {
	view
	touched map[string]bool // keys that have changed
}

func newShown(o quota.Options, floor resource.Revision) shown {
	return shown{view: newView(o, floor, time.Now()), touched: map[string]bool{}}
}

// touch notes that a key has changed.
func (s *shown) touch(key string) {
	for _, prefix := range []string{store.UnitsPrefix, store.JobsPrefix, store.OrderPrefix, store.TxPrefix, store.NodesPrefix, store.BansPrefix, store.QuotaPrefix} {
		if strings.HasPrefix(key, prefix) {
			s.touched[key] = true
			return
		}
	}
}

// refresh makes what is out of date anew, from all keys as they are now.
func (s *shown) refresh(kvs map[string]store.KV) error {
	s.now = time.Now()
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
	case isBanKey(key):
		id, err := store.ParseBanKey(key)
		if err != nil {
			return err
		}
		nodes[id] = true
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
	a.committed = held.CreateRev
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
