package lead

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/mix"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
)

// Loaded is what the store has, all of one revision.
type Loaded struct {
	Nodes, Bans, Quotas, Jobs, Units, Orders, Txs, Ready, Requests []record.KV
	Configured                                                     []record.KV
	// Objects are the keys below edit.Prefixes that are not among Quotas.
	Objects []record.KV
	Cached  map[record.RequestDigest]record.Remembered // beside requests
	// Mix is the mix of work that the leader before has learned, of a snapshot; nil where
	// the new leader learns from the units alone.
	Mix *mix.State
	// Turn is the position at which the leader before looks for work that nothing has
	// woken, of a snapshot; zero for the beginning.
	Turn sched.Turn
	// Refused are the failed attempts of waiting units, of a snapshot.
	Refused []RefusedUnit
}

// Load rebuilds the leader's view from what the store has. It comes before all
// inputs; the transactions to go on with wait for resumes.
func (l *Leader) Load(now time.Time, in Loaded, out []post.Effect) ([]post.Effect, error) {
	var err error
	l.post.Elect(now)
	out = l.handle(now, out, func() {
		if l.recovered, err = l.restore(in); err == nil {
			l.config = append(l.configNamespaces(), l.configQuotas()...)
		}
	})
	return out, err
}

// restore rebuilds the leader's view, and returns the transactions to go on with.
func (l *Leader) restore(in Loaded) (live []recovered, err error) {
	for _, step := range []func() error{
		func() error { return l.loadNodes(in.Nodes) },
		func() error { return l.loadBans(in.Bans) },
		func() error { return l.loadQuotas(in.Quotas, l.post.Now()) },
		func() error { return l.loadObjects(in.Objects, in.Configured) },
		l.loadQueueRules,
		func() error { l.declareAll(); return nil },
		func() error { return l.loadJobs(in.Jobs) },
		func() error { return l.loadUnits(in.Units) },
		func() error { return l.loadOrder(in.Orders) },
		func() error { live, err = l.loadRecords(in.Txs); return err },
		l.loadHolds,
		func() error { return l.loadReady(in.Ready) },
		func() error { return l.loadRequests(in.Cached, in.Requests) },
		func() error { return l.chargeRecovered(live) },
		l.quotas.ApplyMode,
		func() error { l.resumeRefused(in.Refused); l.room.ResumeTurn(in.Turn); return l.resumeMix(in.Mix) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return live, nil
}

// resumeMix has the leader go on from a learned mix, where there is one.
func (v *view) resumeMix(learned *mix.State) error {
	if learned == nil {
		return nil
	}
	if err := v.learner.Resume(*learned); err != nil {
		return fmt.Errorf("mix: %w", err)
	}
	return nil
}

func (v *view) loadNodes(kvs []record.KV) error {
	for _, kv := range kvs {
		key, err := record.ParseNodeKey(kv.Key)
		if err != nil {
			return err
		}
		if key.Part == record.NodeIdentityPart {
			if err := v.loadFence(key.ID, kv); err != nil {
				return err
			}
		}
		if key.Part == record.NodeObservedPart {
			v.node(key.ID).observed.load(kv)
		}
		if key.Part == record.NodeLostPart {
			v.node(key.ID).lost.Load(kv)
		}
		if key.Part != record.NodeSpecPart {
			continue
		}
		spec, err := record.Decode[record.NodeSpec](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		n := v.node(key.ID)
		n.restoreSpec(spec, kv.ModRev)
	}
	return nil
}

func (v *view) loadJobs(kvs []record.KV) error {
	for _, kv := range kvs {
		rec, err := record.Decode[record.Job](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		doc, status := api.StoredJob(rec.Document)
		if status != nil {
			return fmt.Errorf("%s: document: %w", kv.Key, status)
		}
		doc.Spec.CompleteBy(rec.Admitted.Fill)
		_, _, gang := api.JobUnits(doc)
		j := work.NewJob(doc, gang, rec)
		j.SetStored(kv.ModRev)
		v.work.InsertJob(j)
	}
	return nil
}

func (v *view) loadUnits(kvs []record.KV) error {
	for _, kv := range kvs {
		if _, err := v.loadUnit(kv); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.work.Jobs)) {
		j := v.work.Jobs[name]
		if len(j.Units) == 0 {
			return fmt.Errorf("job %s/%s has no unit", j.Record.Namespace, j.Record.Name)
		}
	}
	return nil
}

func (v *view) loadUnit(kv record.KV) (*work.Unit, error) {
	rec, err := record.Decode[record.Unit](kv.Key, kv.Value)
	if err != nil {
		return nil, err
	}
	u, err := v.restoreUnit(rec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kv.Key, err)
	}
	u.Restore(kv.ModRev)
	v.insertUnit(u)
	if u.IsNeighbour() {
		v.state.Relate(rec.Namespace)
	}
	return u, nil
}

func (v *view) restoreUnit(rec record.Unit) (*work.Unit, error) {
	ns := Namespace{Tenant: rec.Tenant}
	if rec.Kind == record.JobUnit {
		j := v.work.Jobs[rec.Namespace+"/"+rec.Name]
		if j == nil {
			return nil, fmt.Errorf("its job is missing")
		}
		u, status := work.NewUnit(ns.Tenant, rec, j.Doc.Spec.Template.Spec, j.Doc, j.Record.Made.User())
		if status != nil {
			return nil, status
		}
		u.SetJob(j)
		j.RestoreUnit(u)
		return u, nil
	}
	doc, status := api.StoredAllocation(rec.Document)
	if status != nil {
		return nil, fmt.Errorf("document: %w", status)
	}
	doc.Spec.CompleteBy(rec.Admitted.Fill)
	u, status := work.NewUnit(ns.Tenant, rec, doc.Spec, nil, rec.Made.User())
	if status != nil {
		return nil, status
	}
	u.SetAllocation(doc)
	return u, nil
}

func (l *Leader) loadOrder(kvs []record.KV) error {
	for _, kv := range kvs {
		key, err := record.ParseOrderKey(kv.Key)
		if err != nil {
			return err
		}
		u := l.work.Units[key.Unit.String()]
		if u == nil {
			return fmt.Errorf("%s: its unit is missing", kv.Key)
		}
		order, err := record.Decode[record.Order](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		u.RestoreOrder()
		u.Wait.SetTold(work.Told{Waiting: order.Waiting, Revision: kv.ModRev})
		l.restoreFate(u)
		l.offer(u)
	}
	return nil
}

// loadRequests takes over the request ids: those that the cache has read, and
// kvs.
func (l *Leader) loadRequests(cached map[record.RequestDigest]record.Remembered, kvs []record.KV) error {
	for key, r := range cached {
		l.requests.Remember(key, r, post.InstantOf(l.post.Millis()))
	}
	for _, kv := range kvs {
		key, r, err := record.ReadRequest(kv)
		if err != nil {
			return err
		}
		l.requests.Remember(key, r, post.InstantOf(l.post.Millis()))
	}
	return nil
}
