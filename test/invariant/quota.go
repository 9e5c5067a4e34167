package invariant

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file is I2 for namespaces.

// group is where a record is charged.
type group struct{ tree, name string }

// limit is a resource quota. A quota that was lowered ends nothing and lets pass
// what was under way, so that a namespace is held to the highest. What was there
// before the quota is nobody's fault: a quota that is younger than the
// namespace's records is not checked.
type limit struct {
	highest resource.Vector
	late    bool
}

func (q Quota) apply(c *Checker) {
	if q.Hard == nil {
		return // what was admitted under it may still be on its way
	}
	if c.quotas[q.Namespace] == nil {
		c.quotas[q.Namespace] = map[string]*limit{}
	}
	l := c.quotas[q.Namespace][q.Name]
	if l == nil {
		l = &limit{resource.Vector{}, c.seen[q.Namespace]}
		c.quotas[q.Namespace][q.Name] = l
	}
	for name, amount := range q.Hard {
		if before, named := l.highest[name]; !named || amount > before {
			l.highest[name] = amount
		}
	}
}

// Limit says what a namespace was configured with. It does not change.
func (c *Checker) Limit(namespace string, hard resource.Vector) {
	c.limits[namespace] = maps.Clone(hard)
}

// Adopted says that an operator adopts a transaction that runs: it is charged
// whatever there is. What it is charged is not counted; all others still have to
// fit. A record that is COMMITTED in an epoch other than its own is known as
// adopted by that.
func (c *Checker) Adopted(tx resource.TxID) { c.adopted[tx] = true }

// admission is what a leader saw when it charged an attempt.
type admission struct {
	order int // among all admissions
	limit resource.Vector
}

// Admitted says that a leader charges an attempt from now on, and the limit of
// its namespace as the leader knows it. A second call for the same attempt
// replaces the first one: the first charge was given back, e.g. because the store
// refused the Txn of an adoption.
func (c *Checker) Admitted(tx resource.TxID, limit resource.Vector) {
	c.admissions++
	c.admitted[tx] = admission{c.admissions, maps.Clone(limit)}
}

// checkQuotas checks all charges together.
func (c *Checker) checkQuotas() {
	used := map[group]resource.Vector{}
	charged := map[string][]resource.TxID{} // by namespace
	for tx, r := range c.live() {
		for _, charge := range r.Charges {
			at := group{charge.Tree, charge.Group}
			if used[at] == nil {
				used[at] = resource.Vector{}
			}
			if !c.adopted[tx] {
				used[at].Add(charge.Request)
			}
			if charge.Tree == quota.Tree {
				c.seen[charge.Group] = true
				charged[charge.Group] = append(charged[charge.Group], tx)
			}
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(c.limits)) {
		c.compare(I2Configured, namespace, "the configured limit", used, c.limits[namespace])
	}
	for _, namespace := range slices.Sorted(maps.Keys(c.quotas)) {
		for _, name := range slices.Sorted(maps.Keys(c.quotas[namespace])) {
			if l := c.quotas[namespace][name]; !l.late {
				c.compare(I2Quotas, namespace, "resource quota "+name+" at its highest", used, l.highest)
			}
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(charged)) {
		c.checkAdmissions(namespace, charged[namespace])
	}
	for _, name := range slices.Sorted(maps.Keys(c.trees)) {
		c.trees[name].check(c, used)
	}
}

// compare holds what is charged to a namespace against a limit.
func (c *Checker) compare(rule Rule, namespace, what string, used map[group]resource.Vector, limit resource.Vector) {
	sum := used[group{quota.Tree, namespace}]
	for _, name := range slices.Sorted(maps.Keys(limit)) {
		if sum[name] > limit[name] {
			v := of(rule, namespace, string(name))
			v.Have, v.Bound = sum[name], limit[name]
			c.report(v, "namespace %s is charged %d of %s, %s is %d", namespace, sum[name], name, what, limit[name])
		}
	}
}

// checkAdmissions holds each attempt, with all that was admitted before it and
// lives, to the limit that it was admitted under: one that is lowered later ends
// nothing.
func (c *Checker) checkAdmissions(namespace string, txs []resource.TxID) {
	slices.SortFunc(txs, func(a, b resource.TxID) int { return cmp.Compare(c.admitted[a].order, c.admitted[b].order) })
	sum := resource.Vector{}
	for _, tx := range txs {
		for _, charge := range c.state.records[tx].Charges {
			if charge.Tree == quota.Tree && charge.Group == namespace {
				sum.Add(charge.Request)
			}
		}
		under, known := c.admitted[tx]
		if !known {
			c.report(of(I2Admissions, string(tx), namespace), "%s is charged to namespace %s, and no leader has admitted it", tx, namespace)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(under.limit)) {
			if sum[name] > under.limit[name] {
				v := of(I2Admissions, string(tx), namespace, string(name))
				v.Have, v.Bound = sum[name], under.limit[name]
				c.report(v, "namespace %s is charged %d of %s up to %s, which was admitted under %d", namespace, sum[name], name, tx, under.limit[name])
			}
		}
	}
}

// isCharged reports whether a live record is charged to a tree.
func (c *Checker) isCharged(name string) (resource.TxID, bool) {
	for tx, r := range c.live() {
		if slices.ContainsFunc(r.Charges, func(charge record.Charge) bool { return charge.Tree == name }) {
			return tx, true
		}
	}
	return "", false
}
