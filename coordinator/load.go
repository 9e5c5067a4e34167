package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// errStoreAway ends a term that could not begin.
var errStoreAway = errors.New("the store does not answer, or has another leader")

// loaded is what the store has, all of one revision.
type loaded struct {
	nodes, bans, quotas, jobs, units, orders, txs, requests []record.KV
	cached                                                  map[requestKey]remembered // beside requests
}

// load has the leader rebuild its view from what is read at one revision that is
// not older than its election, and returns that. It runs before the loop.
func (t *term) load(ctx context.Context, from ranger) (resource.Revision, error) {
	read := &reader{store: from}
	in := loaded{
		nodes: read.prefix(ctx, record.NodesPrefix), bans: read.prefix(ctx, record.BansPrefix), quotas: read.prefix(ctx, record.QuotaPrefix),
		jobs: read.prefix(ctx, record.JobsPrefix), units: read.prefix(ctx, record.UnitsPrefix), orders: read.prefix(ctx, record.OrderPrefix),
		txs: read.prefix(ctx, record.TxPrefix), requests: read.prefix(ctx, record.RequestsPrefix),
	}
	if warm, is := from.(snapshot); is {
		in.cached = warm.requests
	}
	if read.err != nil {
		return 0, fmt.Errorf("load the state: %w: %w", errStoreAway, read.err)
	}
	var err error
	t.effects, err = t.leader.load(time.Now(), in, t.effects[:0])
	t.carryOut(t.effects)
	if err != nil {
		return 0, fmt.Errorf("load the state at revision %d: %w", read.revision, err)
	}
	return read.revision, nil
}

// load rebuilds the leader's view from what the store has. It comes before all
// inputs; the transactions to go on with wait for resumes.
func (l *leader) load(now time.Time, in loaded, out []effect) ([]effect, error) {
	var err error
	out = l.handle(now, out, func() { l.recovered, err = l.restore(in) })
	return out, err
}

// restore rebuilds the leader's view, and returns the transactions to go on with.
func (l *leader) restore(in loaded) (live []recovered, err error) {
	for _, step := range []func() error{
		func() error { return l.loadNodes(in.nodes) },
		func() error { return l.loadBans(in.bans) },
		func() error { return l.loadQuotas(in.quotas) },
		func() error { return l.loadJobs(in.jobs) },
		func() error { return l.loadUnits(in.units) },
		func() error { return l.loadOrder(in.orders) },
		func() error { live, err = l.loadRecords(in.txs); return err },
		func() error { return l.loadRequests(in.cached, in.requests) },
		func() error { return l.chargeRecovered(live) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return live, nil
}

// ranger is what can be loaded from: the store, or a snapshot of it.
type ranger interface {
	Range(ctx context.Context, prefix string, o store.RangeOptions) ([]record.KV, resource.Revision, error)
}

// reader reads several prefixes at the revision of the first.
type reader struct {
	store    ranger
	revision resource.Revision
	err      error
}

func (r *reader) prefix(ctx context.Context, prefix string) []record.KV {
	if r.err != nil {
		return nil
	}
	var kvs []record.KV
	var revision resource.Revision
	kvs, revision, r.err = r.store.Range(ctx, prefix, store.RangeOptions{AtRevision: r.revision})
	if r.revision == 0 {
		r.revision = revision
	}
	return kvs
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
		_, _, gang := api.JobUnits(doc)
		v.jobs[rec.Namespace+"/"+rec.Name] = &job{record: rec, stored: kv.ModRev, doc: doc, gang: gang}
	}
	return nil
}

func (v *view) loadUnits(kvs []record.KV) error {
	for _, kv := range kvs {
		if _, err := v.loadUnit(kv); err != nil {
			return err
		}
	}
	for _, j := range v.jobs {
		if len(j.units) == 0 {
			return fmt.Errorf("job %s/%s has no unit", j.record.Namespace, j.record.Name)
		}
	}
	return nil
}

func (v *view) loadUnit(kv record.KV) (*unit, error) {
	rec, err := record.Decode[record.Unit](kv.Key, kv.Value)
	if err != nil {
		return nil, err
	}
	u, err := v.restoreUnit(rec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kv.Key, err)
	}
	u.restore(kv.ModRev)
	v.units[u.path] = u
	for i := range rec.Members {
		v.members[rec.Namespace+"/"+u.memberName(i)] = &member{unit: u, index: i}
	}
	return u, nil
}

func (v *view) restoreUnit(rec record.Unit) (*unit, error) {
	ns := Namespace{Tenant: rec.Tenant}
	if rec.Kind == record.JobUnit {
		j := v.jobs[rec.Namespace+"/"+rec.Name]
		if j == nil {
			return nil, fmt.Errorf("its job is missing")
		}
		u, status := newUnit(ns, rec, j.doc.Spec.Template.Spec, j.doc)
		if status != nil {
			return nil, status
		}
		u.setJob(j)
		j.restoreUnit(u)
		return u, nil
	}
	doc, status := api.StoredAllocation(rec.Document)
	if status != nil {
		return nil, fmt.Errorf("document: %w", status)
	}
	u, status := newUnit(ns, rec, doc.Spec, nil)
	if status != nil {
		return nil, status
	}
	u.setAllocation(doc)
	return u, nil
}

func (v *view) loadOrder(kvs []record.KV) error {
	for _, kv := range kvs {
		key, err := record.ParseOrderKey(kv.Key)
		if err != nil {
			return err
		}
		u := v.units[key.Unit.String()]
		if u == nil {
			return fmt.Errorf("%s: its unit is missing", kv.Key)
		}
		u.restoreOrder()
		v.queue.Push(u.key)
	}
	return nil
}

// loadRequests takes over the request ids: those that the cache has read, and
// kvs.
func (l *leader) loadRequests(cached map[requestKey]remembered, kvs []record.KV) error {
	for key, r := range cached {
		l.requests.remember(key, r, l.now)
	}
	for _, kv := range kvs {
		key, r, err := readRequest(kv)
		if err != nil {
			return err
		}
		l.requests.remember(key, r, l.now)
	}
	return nil
}

// readRequest reads a key below record.RequestsPrefix.
func readRequest(kv record.KV) (requestKey, remembered, error) {
	tenant, id, err := record.ParseRequestKey(kv.Key)
	if err != nil {
		return requestKey{}, remembered{}, err
	}
	rec, err := record.Decode[record.Request](kv.Key, kv.Value)
	return requestKeyOf(tenant, id), newRequest(rec), err
}
