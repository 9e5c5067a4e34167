// Package quota decides whether a group may be charged for a request. It holds
// limits and the set of live charges; it does not store them, place anything
// or know who asks.
//
// For now a tree has one level: a group is a namespace with one hard limit per
// resource. A usage is the sum over a set of transactions, never a counter
// that is added to and taken from, so a charge that ends twice changes nothing
// (PROTOCOL.md section 8, I2).
package quota

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/resource"
)

// Tree names the tree that one-level limits belong to in a record's charges.
const Tree = "namespaces"

// Charge is what one transaction costs one group.
type Charge struct {
	Group   string
	Request resource.Vector
}

// Limits holds the groups' limits and what is charged to them. The zero value
// is unusable; call New. One goroutine owns it.
//
// Invariant: used[g] is the sum of Request over live charges of group g.
type Limits struct {
	hard map[string]resource.Vector
	used map[string]resource.Vector
	live map[resource.TxID]Charge
}

// New returns limits for no group: everything is admitted and counted.
func New() *Limits {
	return &Limits{hard: map[string]resource.Vector{}, used: map[string]resource.Vector{}, live: map[resource.TxID]Charge{}}
}

// SetLimit replaces a group's limit. Resources that hard does not name are
// unlimited; nil removes the limit. Lowering a limit below the usage blocks new
// charges and ends none.
func (l *Limits) SetLimit(group string, hard resource.Vector) {
	if hard == nil {
		delete(l.hard, group)
		return
	}
	l.hard[group] = hard.Clone()
}

// Limit returns a copy of the group's limit, nil where there is none.
func (l *Limits) Limit(group string) resource.Vector { return l.hard[group].Clone() }

// Limited returns the groups that have a limit, in ascending order.
func (l *Limits) Limited() []string {
	groups := make([]string, 0, len(l.hard))
	for g := range l.hard {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, cmp.Compare)
	return groups
}

// Used returns a copy of the group's usage.
func (l *Limits) Used(group string) resource.Vector { return l.used[group].Clone() }

// Admit reports whether the group may be charged with request on top of its
// usage. A refusal names every resource that is short, in name order: Want is
// the usage it would lead to, Have the limit.
func (l *Limits) Admit(group string, request resource.Vector) []resource.Reason {
	hard, limited := l.hard[group]
	if !limited {
		return nil
	}
	var reasons []resource.Reason
	for _, name := range request.Names() {
		limit, named := hard[name]
		if !named || request[name] == 0 {
			continue
		}
		if want := resource.SaturatingAdd(l.used[group][name], request[name]); want > limit {
			reasons = append(reasons, resource.Reason{
				Code: resource.ReasonQuota, Resource: name, Want: want, Have: limit,
				Detail: Sentence(name, limit, request[name], l.used[group][name]),
			})
		}
	}
	return reasons
}

// Sentence is the documented wording of a quota refusal, e.g. "exceeded quota:
// gpu limit 100, requested 4, used 98".
func Sentence(name resource.Name, limit, requested, used int64) string {
	short := string(name)
	if name == resource.GPU {
		short = "gpu"
	}
	return fmt.Sprintf("exceeded quota: %s limit %s, requested %s, used %s", short,
		resource.FormatAmount(name, limit), resource.FormatAmount(name, requested), resource.FormatAmount(name, used))
}

// Charge counts a transaction from now on. Charging the same transaction again
// changes nothing. It does not check the limit: a record that exists is
// charged whatever the limit says.
func (l *Limits) Charge(tx resource.TxID, c Charge) {
	if _, dup := l.live[tx]; dup {
		return
	}
	l.live[tx] = Charge{Group: c.Group, Request: c.Request.Clone()}
	used := l.used[c.Group]
	if used == nil {
		used = resource.Vector{}
		l.used[c.Group] = used
	}
	used.Add(c.Request)
}

// Discharge stops counting a transaction; an unknown one changes nothing.
func (l *Limits) Discharge(tx resource.TxID) {
	c, ok := l.live[tx]
	if !ok {
		return
	}
	delete(l.live, tx)
	l.used[c.Group].Sub(c.Request)
}

// Check recomputes every usage from the live charges and names the first group
// that differs.
func (l *Limits) Check() error {
	sums := map[string]resource.Vector{}
	for _, c := range l.live {
		if sums[c.Group] == nil {
			sums[c.Group] = resource.Vector{}
		}
		sums[c.Group].Add(c.Request)
	}
	groups := make([]string, 0, len(l.used))
	for g := range l.used {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, cmp.Compare)
	for _, g := range groups {
		for _, name := range l.used[g].Names() {
			if got, want := l.used[g][name], sums[g][name]; got != want {
				return fmt.Errorf("quota: group %s uses %d of %s, its charges sum to %d", g, got, name, want)
			}
		}
	}
	return nil
}
