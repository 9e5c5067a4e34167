package rig

import (
	"context"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// followRecord is called with mu held.
func (a *audit) followRecord(revision resource.Revision, e record.Event) {
	before := a.records[e.KV.Key]
	if e.Type == record.EventDelete {
		if !before.State.Terminal() {
			a.t.Errorf("revision %d deletes %s, which is %q", revision, e.KV.Key, before.State)
		}
		delete(a.records, e.KV.Key)
		return
	}
	rec, err := record.Decode[record.Tx](e.KV.Key, e.KV.Value)
	if err != nil {
		a.t.Error(err)
		return
	}
	tx, err := record.ParseTxKey(e.KV.Key)
	if err != nil {
		a.t.Error(err)
		return
	}
	if !before.State.MayBecome(rec.State) {
		a.t.Errorf("I11: revision %d takes %s from %q to %s", revision, e.KV.Key, before.State, rec.State)
	}
	a.records[e.KV.Key] = rec
	switch {
	case rec.State == grant.RecordAborted:
		a.aborted++
	case before.State == grant.RecordAbsent && rec.State == grant.RecordCommitted:
		a.checkIncarnations(revision, tx, rec)
	case rec.State == grant.RecordEvicting:
		a.checkVictim(revision, tx, rec)
	case rec.State == grant.RecordReleasing:
		for _, m := range rec.Members {
			a.notices.revoke(notice{m.Node, tx})
		}
	case rec.State == grant.RecordReleased:
		a.checkFreed(revision, tx, rec)
	}
}

// checkIncarnations: what is committed counts on the memory of each member's
// agent as it is registered now, and on no node that is fenced (I3). mu is held.
func (a *audit) checkIncarnations(revision resource.Revision, tx resource.TxID, r record.Tx) {
	for _, m := range r.Members {
		if now := a.nodes[m.Node]; now.Incarnation != m.Incarnation || now.Fenced {
			a.t.Errorf("I3: revision %d commits %s on %s as %s, which is registered as %s, fenced %t", revision, tx, m.Node, m.Incarnation, now.Incarnation, now.Fenced)
		}
	}
}

// check is called with mu held.
func (a *audit) check(revision resource.Revision) {
	used := map[group]resource.Vector{}
	units := map[resource.UnitUID]string{}
	taken := map[string]string{}
	for key, r := range a.records {
		if !r.State.Charged() {
			continue
		}
		for _, c := range r.Charges {
			at := group{c.Tree, c.Group}
			if used[at] == nil {
				used[at] = resource.Vector{}
			}
			used[at].Add(c.Request)
		}
		if other := units[r.UnitUID]; other != "" {
			a.t.Errorf("I6: at revision %d unit %s is live in %s and in %s", revision, r.UnitUID, key, other)
		}
		units[r.UnitUID] = key
		if r.State != grant.RecordCommitted {
			continue // its agent may have freed it already
		}
		for _, m := range r.Members {
			for _, g := range m.Assignment.MIG {
				if other := taken[g.UUID]; other != "" {
					a.t.Errorf("I1: at revision %d MIG instance %s belongs to %s and to %s", revision, g.UUID, key, other)
				}
				taken[g.UUID] = key
			}
			for _, g := range m.Assignment.GPUs {
				if g.Milli != resource.WholeDevice {
					continue
				}
				if other := taken[g.UUID]; other != "" {
					a.t.Errorf("I1: at revision %d device %s belongs to %s and to %s", revision, g.UUID, key, other)
				}
				taken[g.UUID] = key
			}
		}
	}
	for namespace, limits := range a.limits {
		sum := used[group{quota.Tree, namespace}]
		for name, limit := range limits.Hard {
			if sum[name] > limit && !a.overQuota {
				a.t.Errorf("I2: at revision %d namespace %s is charged %d of %s, its limit is %d", revision, namespace, sum[name], name, limit)
			}
		}
	}
	for _, t := range a.trees {
		for _, problem := range t.check(used) {
			a.t.Errorf("I2: at revision %d %s", revision, problem)
		}
	}
}

// Records returns the records by transaction, as of some recent revision.
func (c *Cluster) Records() map[resource.TxID]record.Tx {
	kvs, _, err := c.Store.Range(context.Background(), record.TxPrefix, store.RangeOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	records := map[resource.TxID]record.Tx{}
	for _, kv := range kvs {
		tx, err := record.ParseTxKey(kv.Key)
		if err != nil {
			c.t.Fatal(err)
		}
		if records[tx], err = record.Decode[record.Tx](kv.Key, kv.Value); err != nil {
			c.t.Fatal(err)
		}
	}
	return records
}

// Aborted counts the ABORTED records ever written.
func (c *Cluster) Aborted() int {
	c.audit.mu.Lock()
	defer c.audit.mu.Unlock()
	return c.audit.aborted
}
