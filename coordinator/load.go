package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// errStoreAway ends a term that could not begin.
var errStoreAway = errors.New("the store does not answer, or has another leader")

// load rebuilds the leader's view from the store at one revision that is not
// older than its election, and returns the transactions to go on with. It runs
// before the loop.
func (l *leader) load(ctx context.Context) ([]recovered, error) {
	read := &reader{store: l.store}
	nodes := read.prefix(ctx, store.NodesPrefix)
	quotas := read.prefix(ctx, store.QuotaPrefix)
	jobs := read.prefix(ctx, store.JobsPrefix)
	units := read.prefix(ctx, store.UnitsPrefix)
	orders := read.prefix(ctx, store.OrderPrefix)
	txs := read.prefix(ctx, store.TxPrefix)
	requests := read.prefix(ctx, store.RequestsPrefix)
	if read.err != nil {
		return nil, fmt.Errorf("load the state: %w: %w", errStoreAway, read.err)
	}
	for _, step := range []func() error{
		func() error { return l.loadNodes(nodes) },
		func() error { return l.loadQuotas(quotas) },
		func() error { return l.loadJobs(jobs) },
		func() error { return l.loadUnits(units) },
		func() error { return l.loadOrder(orders) },
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("load the state at revision %d: %w", read.revision, err)
		}
	}
	live, err := l.loadRecords(txs)
	if err != nil {
		return nil, fmt.Errorf("load the state at revision %d: %w", read.revision, err)
	}
	if err := l.loadRequests(requests); err != nil {
		return nil, fmt.Errorf("load the state at revision %d: %w", read.revision, err)
	}
	if err := l.chargeRecovered(live); err != nil {
		return nil, fmt.Errorf("load the state at revision %d: %w", read.revision, err)
	}
	return live, nil
}

// reader reads several prefixes at the revision of the first.
type reader struct {
	store    store.KVStore
	revision resource.Revision
	err      error
}

func (r *reader) prefix(ctx context.Context, prefix string) []store.KV {
	if r.err != nil {
		return nil
	}
	var kvs []store.KV
	var revision resource.Revision
	kvs, revision, r.err = r.store.Range(ctx, prefix, store.RangeOptions{AtRevision: r.revision})
	if r.revision == 0 {
		r.revision = revision
	}
	return kvs
}

func (l *leader) loadNodes(kvs []store.KV) error {
	for _, kv := range kvs {
		key, err := store.ParseNodeKey(kv.Key)
		if err != nil {
			return err
		}
		if key.Part != store.NodeSpecPart {
			continue
		}
		spec, err := store.Decode[store.NodeSpec](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		n := l.node(key.ID)
		n.spec, n.specRev = spec, kv.ModRev
		n.view.Labels = maps.Clone(spec.Labels)
		n.setTaints()
	}
	return nil
}

func (l *leader) loadJobs(kvs []store.KV) error {
	for _, kv := range kvs {
		record, err := store.Decode[store.JobRecord](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		doc, status := api.DecodeJob(record.Document)
		if status != nil {
			return fmt.Errorf("%s: document: %w", kv.Key, status)
		}
		_, _, gang := api.JobUnits(doc)
		l.jobs[record.Namespace+"/"+record.Name] = &job{record: record, stored: kv.ModRev, doc: doc, gang: gang, changed: make(chan struct{})}
	}
	return nil
}

func (l *leader) loadUnits(kvs []store.KV) error {
	for _, kv := range kvs {
		record, err := store.Decode[store.UnitRecord](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		u, err := l.restoreUnit(record)
		if err != nil {
			return fmt.Errorf("%s: %w", kv.Key, err)
		}
		u.stored = kv.ModRev
		u.key = queue.Key{Priority: record.Priority, Epoch: record.Sequence.Epoch, Counter: record.Sequence.Counter, Path: u.path}
		l.units[u.path] = u
		for i := range record.Members {
			l.members[record.Namespace+"/"+u.memberName(i)] = &member{unit: u, index: i}
		}
	}
	for _, j := range l.jobs {
		slices.SortFunc(j.units, func(a, b *unit) int { return cmp.Compare(a.record.N, b.record.N) })
		if len(j.units) == 0 {
			return fmt.Errorf("job %s/%s has no unit", j.record.Namespace, j.record.Name)
		}
	}
	return nil
}

func (l *leader) restoreUnit(record store.UnitRecord) (*unit, error) {
	ns := Namespace{Tenant: record.Tenant}
	if record.Kind == store.JobUnit {
		j := l.jobs[record.Namespace+"/"+record.Name]
		if j == nil {
			return nil, fmt.Errorf("its job is missing")
		}
		u, err := newUnit(ns, record, j.doc.Spec.Template.Spec, j.doc)
		if err != nil {
			return nil, err
		}
		u.job = j
		j.units = append(j.units, u)
		return u, nil
	}
	doc, status := api.DecodeAllocation(record.Document)
	if status != nil {
		return nil, fmt.Errorf("document: %w", status)
	}
	u, err := newUnit(ns, record, doc.Spec, nil)
	if err != nil {
		return nil, err
	}
	u.allocation = doc
	return u, nil
}

func (l *leader) loadOrder(kvs []store.KV) error {
	for _, kv := range kvs {
		key, err := store.ParseOrderKey(kv.Key)
		if err != nil {
			return err
		}
		u := l.units[key.Unit.String()]
		if u == nil {
			return fmt.Errorf("%s: its unit is missing", kv.Key)
		}
		u.queued = true
		u.failed = 1
		l.queue.Push(u.key)
	}
	return nil
}

// recovered is a live transaction found in the store, and what to tell agents.
type recovered struct {
	attempt   *attempt
	effects   []txn.Effect
	committed resource.Revision
}

// loadRecords rebuilds the charges and the machines of live transactions.
func (l *leader) loadRecords(kvs []store.KV) ([]recovered, error) {
	var live []recovered
	for _, kv := range kvs {
		id, err := store.ParseTxKey(kv.Key)
		if err != nil {
			return nil, err
		}
		record, err := store.Decode[store.TxRecord](kv.Key, kv.Value)
		if err != nil {
			return nil, err
		}
		if record.State.Terminal() {
			l.terminal = append(l.terminal, terminalRecord{id, time.Now()})
			continue
		}
		u := l.units[record.Unit.String()]
		if u == nil || u.record.TxID != id {
			return nil, fmt.Errorf("%s: is %s, but its unit %s does not name it", kv.Key, record.State, record.Unit)
		}
		r := l.restoreAttempt(id, u, record, kv.ModRev)
		r.committed = kv.CreateRev // a record's first state is COMMITTED
		live = append(live, r)
	}
	return live, nil
}

func (l *leader) restoreAttempt(id resource.TxID, u *unit, record store.TxRecord, rev resource.Revision) recovered {
	votes := map[resource.NodeID]txn.Vote{}
	for _, m := range record.Members {
		v := votes[m.Node]
		v.Incarnation = m.Incarnation
		v.Members = append(v.Members, txn.Member{Index: m.Member, Assignment: m.Assignment})
		votes[m.Node] = v
		n := l.node(m.Node)
		h := n.held[id]
		if h == nil {
			h = &hold{}
			n.held[id] = h
		}
		h.members = append(h.members, agents.Member{Index: m.Member, Assignment: m.Assignment})
	}
	var releasing *txn.ReleaseAsked
	if record.State == store.TxReleasing {
		releasing = &txn.ReleaseAsked{GraceSeconds: record.GraceSeconds, Reason: record.Reason}
		u.ending = releasing
	}
	a := &attempt{unit: u, charges: record.Charges, held: map[resource.NodeID]bool{}, budget: time.NewTimer(time.Hour)}
	a.budget.Stop()
	var effects []txn.Effect
	a.machine, effects = txn.Recover(id, rev, votes, releasing)
	u.attempt = a
	l.attempts[id] = a
	return recovered{attempt: a, effects: effects}
}

func (l *leader) loadRequests(kvs []store.KV) error {
	for _, kv := range kvs {
		tenant, id, err := store.ParseRequestKey(kv.Key)
		if err != nil {
			return err
		}
		record, err := store.Decode[store.RequestRecord](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		l.requests[string(tenant)+"/"+id] = request{unit: l.unitOfObject(record), hash: record.DocumentHash, when: time.Now()}
	}
	return nil
}

// unitOfObject finds the first unit of what a request made; nil if that is
// gone, even if another object has its name now.
func (l *leader) unitOfObject(r store.RequestRecord) *unit {
	if path, err := store.ParseUnitKey(r.Object); err == nil {
		if u := l.units[path.String()]; u != nil && string(u.record.UID) == r.UID {
			return u
		}
	}
	if namespace, name, err := store.ParseJobKey(r.Object); err == nil {
		if j := l.jobs[namespace+"/"+name]; j != nil && j.record.UID == r.UID {
			return j.units[0]
		}
	}
	return nil
}
