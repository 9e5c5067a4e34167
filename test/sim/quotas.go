package sim

import (
	"encoding/json"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file is what bounds the clients: limits of namespaces, and a tree in which
// group a borrows and group b does not.

const limitName = "hard"

// planClaims draws whether quota is short, so that it is claimed back, and how.
// In most of these runs a unit may not be evicted by a claim for some time.
func (s *Sim) planClaims(o Options) {
	rng, drawn := o.draw(Claims, 1, 2)
	if s.claims = drawn && s.evictions; s.claims {
		s.quota.MinRunTime = []time.Duration{0, 3 * time.Second, 20 * time.Second}[rng.IntN(3)]
		s.quota.FewestVictims = rng.IntN(2) == 0
	}
}

// setQuotas writes what is there from the beginning.
func (s *Sim) setQuotas() {
	tree := encoded(s.treeOf(10, 5, 5))
	ops := []record.Op{record.Put(record.QuotaKey{Kind: record.QuotaTrees, Name: treeName}.Key(), record.MustEncode(record.Quota{UID: "tree", Name: treeName, Document: tree}))}
	for _, namespace := range limited {
		q := s.limitOf(namespace, s.gpus(highLimit))
		ops = append(ops, record.Put(limitKey(namespace), record.MustEncode(record.Quota{
			UID: "limit-" + namespace, Namespace: namespace, Name: limitName, Document: encoded(q),
		})))
	}
	s.store.commit(nil, append(ops, s.linesAtFirst()...))
}

func limitKey(namespace string) string {
	return record.QuotaKey{Kind: record.QuotaResources, Namespace: namespace, Name: limitName}.Key()
}

func amountOf(amount int64) string { return resource.FormatAmount(resource.GPU, amount) }

func encoded(v any) json.RawMessage {
	b, err := json.Marshal(v)
	must(err)
	return b
}

// limitOf is the limit of a namespace as an operator writes it.
func (s *Sim) limitOf(namespace string, amount int64) *api.ResourceQuota {
	q := &api.ResourceQuota{
		APIVersion: api.APIVersion, Kind: api.KindResourceQuota, Metadata: api.ObjectMeta{Name: limitName, Namespace: namespace},
		Spec: api.ResourceQuotaSpec{Hard: map[resource.Name]string{resource.GPU: amountOf(amount)}},
	}
	if s.perUser > 0 {
		q.Spec.PerUser = map[resource.Name]string{resource.GPU: amountOf(min(s.perUser, amount))}
	}
	return q
}

// limitIn is the limit of a namespace in a store.
func limitIn(s *kvStore, namespace string) int64 {
	kept, _ := value[record.Quota](s, limitKey(namespace))
	var q api.ResourceQuota
	must(json.Unmarshal(kept.Document, &q))
	amount, err := api.ParseAmount(resource.GPU, q.Spec.Hard[resource.GPU])
	must(err)
	return amount
}

// actLimit has an operator raise or lower a limit.
func (s *Sim) actLimit() bool {
	return s.withTerm(nil, func(t *term) {
		namespace := pick(s, limited)
		if t.changing[namespace] {
			return
		}
		amount := s.gpus(highLimit)
		if t.limitNow[namespace] == amount {
			amount = s.gpus(lowLimit)
		}
		t.changing[namespace] = true
		s.logf("%s: an operator sets the limit of %s to %s", t.name, namespace, amountOf(amount))
		t.ask("the limit of "+namespace, lead.PutResourceQuota{Object: s.limitOf(namespace, amount)}, func(e effect) {
			t.changing[namespace] = false
			if e.Status == nil {
				t.limitNow[namespace] = amount
			}
		})
	})
}

// actMode has an operator change the mode of the quota trees.
func (s *Sim) actMode() bool {
	return s.withTerm(nil, func(t *term) {
		mode := pick(s, []string{api.ModeNormal, api.ModeNormal, api.ModeMaintenance})
		s.logf("%s: an operator sets the mode of the quota trees to %s", t.name, mode)
		t.ask("the mode "+mode, lead.PatchQuotaMode{Patch: api.QuotaModePatch{Mode: mode}, By: "operator"}, func(e effect) {
			if e.Status == nil {
				s.stats["modes"]++
			}
		})
	})
}
