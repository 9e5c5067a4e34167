package coordinator

import (
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
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
	for _, prefix := range []string{record.UnitsPrefix, record.JobsPrefix, record.OrderPrefix, record.TxPrefix, record.NodesPrefix, record.BansPrefix, record.QuotaPrefix} {
		if strings.HasPrefix(key, prefix) {
			s.touched[key] = true
			return
		}
	}
}

// refresh makes what is out of date anew, from all keys as they are now.
func (s *shown) refresh(kvs map[string]record.KV) error {
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
func (s *shown) concerns(key string, kvs map[string]record.KV, nodes map[resource.NodeID]bool, jobs, units map[string]bool) error {
	switch {
	case strings.HasPrefix(key, record.UnitsPrefix):
		path, err := record.ParseUnitKey(key)
		units[path.String()] = true
		return err
	case strings.HasPrefix(key, record.OrderPrefix):
		order, err := record.ParseOrderKey(key)
		units[order.Unit.String()] = true
		return err
	case strings.HasPrefix(key, record.JobsPrefix):
		jobs[key] = true
	case isBanKey(key):
		id, err := record.ParseBanKey(key)
		if err != nil {
			return err
		}
		nodes[id] = true
	case strings.HasPrefix(key, record.NodesPrefix):
		node, err := record.ParseNodeKey(key)
		if node.Part != record.NodeTxPart {
			nodes[node.ID] = true
		}
		return err
	case strings.HasPrefix(key, record.TxPrefix):
		return s.concernsTx(key, kvs, units)
	case strings.HasPrefix(key, record.QuotaPrefix):
		return s.remakeQuota(key, kvs)
	}
	return nil
}

// concernsTx adds the unit that a record is about, and the one that it was.
func (s *shown) concernsTx(key string, kvs map[string]record.KV, units map[string]bool) error {
	tx, err := record.ParseTxKey(key)
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
	rec, err := record.Decode[record.Tx](key, kv.Value)
	if err == nil && !rec.State.Terminal() {
		units[rec.Unit.String()] = true
	}
	return err
}

// remakeUnit makes a unit from its own key, its place in the order and its
// transaction's record.
func (s *shown) remakeUnit(path string, kvs map[string]record.KV) error {
	if u := s.units[path]; u != nil {
		s.dropUnit(u)
	}
	parsed, err := record.ParseUnitPath(path)
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
		u.restoreOrder()
		s.queue.Push(u.key)
	}
	key := record.TxKey(u.record.TxID)
	held, found := kvs[key]
	if u.record.TxID == "" || !found {
		return nil
	}
	rec, err := record.Decode[record.Tx](key, held.Value)
	if err != nil || rec.State.Terminal() {
		return err
	}
	a := s.restoreAttempt(u.record.TxID, u, rec, held.ModRev).attempt
	a.forgetHeld() // the agents tell the leader alone
	a.setCommitted(held.CreateRev)
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
		j.removeUnit(u)
	}
	if a := u.attempt; a != nil {
		tx := a.machine.ID()
		delete(s.attempts, tx)
		s.quotas.limits.Discharge(tx)
		for _, id := range a.machine.Nodes() {
			if n := s.nodes[id]; n != nil { // else it was deleted since
				n.removeHold(tx)
			}
		}
	}
}

// remakeJob makes a job from its key, and has its units made anew.
func (s *shown) remakeJob(key string, kvs map[string]record.KV, units map[string]bool) error {
	namespace, name, err := record.ParseJobKey(key)
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
	if err := s.loadJobs([]record.KV{kv}); err != nil {
		return err
	}
	for _, path := range s.jobs[namespace+"/"+name].record.Units {
		units[path.String()] = true
	}
	return nil
}

// remakeQuota makes what bounds tenants. Trees are not made: where units are
// counted on them only the leader knows.
func (s *shown) remakeQuota(key string, kvs map[string]record.KV) error {
	parsed, err := record.ParseQuotaKey(key)
	if err != nil {
		return err
	}
	kv, found := kvs[key]
	switch parsed.Kind {
	case record.QuotaTrees, record.QuotaLimits:
		return nil
	case record.QuotaResources:
		if !found {
			s.quotas.removeResourceQuota(parsed.Namespace, parsed.Name)
		}
	case record.QuotaForests:
		delete(s.quotas.forests, parsed.Name)
	case record.QuotaNamespaces:
		delete(s.quotas.bindings, parsed.Name)
	}
	if !found {
		return nil
	}
	return s.loadQuotas([]record.KV{kv})
}
