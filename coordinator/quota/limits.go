package quota

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/resource"
)

// Tree names the tree that one-level limits belong to in a record's charges.
const Tree = "namespaces"

// Scope says which charges a limit counts: class is a unit's priority class,
// "" for none, terminating that it has a deadline. It is asked whenever the
// charge is, and always says the same.
type Scope interface {
	Matches(class string, terminating bool) bool
}

// Limit bounds what a group may hold altogether, beside its other limits.
type Limit struct {
	Group, Name string
	// Hard bounds the sum of charges per resource, in base units; what it does
	// not name is unlimited. Soft is only reported.
	Hard, Soft resource.Vector
	// PerUser bounds the sum of the charges of each user; it counts no charge
	// without a user.
	PerUser resource.Vector
	Scope   Scope // nil counts everything
}

// Charge is what one transaction costs one group.
type Charge struct {
	Group string
	// Request must not change while it is charged.
	Request resource.Vector
	// Members are counted as resource.Pods.
	Members     int64
	User        string // who has created the unit, "" where unknown
	Class       string // of priority, "" for none
	Terminating bool
}

// of is the charge's amount of a resource.
func (c *Charge) of(name resource.Name) int64 {
	if name == resource.Pods {
		return c.Members
	}
	return c.Request[name]
}

// Shortage is one limit that a charge does not fit.
type Shortage struct {
	Limit    string // its name
	Resource resource.Name
	// User is the user whose limit it is, "" for the limit of all.
	User string
	// Hard is the limit, Requested the charge, Used what is charged already.
	Hard, Requested, Used int64
}

// Reason returns the shortage as the constraint that users are shown: Want is
// the usage it would lead to, Have the limit.
func (s Shortage) Reason() resource.Reason {
	return resource.Reason{
		Code: resource.ReasonQuota, Resource: s.Resource, Want: resource.SaturatingAdd(s.Used, s.Requested), Have: s.Hard,
		Detail: s.sentence(),
	}
}

// sentence names the user too where the limit is one for each user.
func (s Shortage) sentence() string {
	if s.User == "" {
		return Sentence(s.Resource, s.Hard, s.Requested, s.Used)
	}
	return fmt.Sprintf("exceeded quota: %s limit %s per user, requested %s, used %s by %s", shortName(s.Resource),
		resource.FormatAmount(s.Resource, s.Hard), resource.FormatAmount(s.Resource, s.Requested), resource.FormatAmount(s.Resource, s.Used), s.User)
}

// Limits holds the groups' limits and what is charged to them. A usage is the
// sum over a set of transactions, never a counter that is added to and taken
// from, so a charge that ends twice changes nothing (PROTOCOL.md section 8,
// I2). The zero value is unusable; call New. One goroutine owns it.
//
// Invariant: used of a limit is, per resource, the sum over the live charges
// of its group that its scope matches; at has the position in live of each.
type Limits struct {
	limits map[string][]*limit // by group, ascending by name
	live   []*liveCharge       // in no order: a snapshot copies it
	at     map[resource.TxID]int
}

// liveCharge is the charge of a transaction. Immutable.
type liveCharge struct {
	tx resource.TxID
	Charge
}

// limit is a Limit and its usage of the resources that it names.
type limit struct {
	Limit
	names []resource.Name // ascending
	used  []int64
	users perUser
}

// New returns limits for no group: everything is admitted.
func New() *Limits {
	return &Limits{limits: map[string][]*limit{}, at: map[resource.TxID]int{}}
}

func (l *limit) counts(c *Charge) bool {
	return l.Scope == nil || l.Scope.Matches(c.Class, c.Terminating)
}

func (l *limit) add(c *Charge) {
	for i, name := range l.names {
		l.used[i] = resource.SaturatingAdd(l.used[i], c.of(name))
	}
	l.users.add(c)
}

func (l *Limits) find(group, name string) (at int, found bool) {
	return slices.BinarySearchFunc(l.limits[group], name, func(l *limit, name string) int { return cmp.Compare(l.Name, name) })
}

// SetLimit adds a limit or replaces the group's of the same name. Lowering a
// limit below the usage blocks new charges and ends none.
func (l *Limits) SetLimit(to Limit) {
	to.Hard, to.Soft, to.PerUser = to.Hard.Clone(), to.Soft.Clone(), to.PerUser.Clone()
	made := &limit{Limit: to, names: append(to.Hard.Names(), to.Soft.Names()...), users: newPerUser(to.PerUser)}
	slices.Sort(made.names)
	made.names = slices.Compact(made.names)
	made.used = make([]int64, len(made.names))
	for _, c := range l.live {
		if c.Group == to.Group && made.counts(&c.Charge) {
			made.add(&c.Charge)
		}
	}
	at, found := l.find(to.Group, to.Name)
	if found {
		l.limits[to.Group][at] = made
		return
	}
	l.limits[to.Group] = slices.Insert(l.limits[to.Group], at, made)
}

// RemoveLimit forgets a limit; one that is unknown changes nothing.
func (l *Limits) RemoveLimit(group, name string) {
	at, found := l.find(group, name)
	if !found {
		return
	}
	l.limits[group] = slices.Delete(l.limits[group], at, at+1)
	if len(l.limits[group]) == 0 {
		delete(l.limits, group)
	}
}

// Used returns the usage that a limit counts, of each resource that it names;
// nil where the limit is unknown.
func (l *Limits) Used(group, name string) resource.Vector {
	at, found := l.find(group, name)
	if !found {
		return nil
	}
	limit := l.limits[group][at]
	used := make(resource.Vector, len(limit.names))
	for i, name := range limit.names {
		used[name] = limit.used[i]
	}
	return used
}

// Admit reports whether c may be charged on top of the usage. A refusal names
// every resource that is short, by limit and resource. It allocates no memory
// where everything fits.
func (l *Limits) Admit(c *Charge) []Shortage {
	var short []Shortage
	for _, limit := range l.limits[c.Group] {
		short = limit.admit(short, c, limit.used)
		short = limit.admitUser(short, c, limit.users.of[c.User])
	}
	return short
}

// NeverAdmits is Admit for limits to which nothing is charged: their shortages
// remain whatever ends.
func (l *Limits) NeverAdmits(c *Charge) []Shortage {
	var short []Shortage
	for _, limit := range l.limits[c.Group] {
		short = limit.admit(short, c, make([]int64, len(limit.names)))
		short = limit.admitUser(short, c, nil)
	}
	return short
}

// admit appends the resources of which a limit is short, given the usage.
func (l *limit) admit(short []Shortage, c *Charge, used []int64) []Shortage {
	if !l.counts(c) {
		return short
	}
	for i, name := range l.names {
		hard, named := l.Hard[name]
		requested := c.of(name)
		if !named || requested == 0 {
			continue
		}
		if resource.SaturatingAdd(used[i], requested) > hard {
			short = append(short, Shortage{Limit: l.Name, Resource: name, Hard: hard, Requested: requested, Used: used[i]})
		}
	}
	return short
}

// admitUser appends the resources of which the limit of the charge's user is short.
func (l *limit) admitUser(short []Shortage, c *Charge, used []int64) []Shortage {
	if c.User == "" || !l.counts(c) {
		return short
	}
	for i, name := range l.users.names {
		requested, has := c.of(name), int64(0)
		if used != nil {
			has = used[i]
		}
		if hard := l.PerUser[name]; requested > 0 && resource.SaturatingAdd(has, requested) > hard {
			short = append(short, Shortage{Limit: l.Name, Resource: name, User: c.User, Hard: hard, Requested: requested, Used: has})
		}
	}
	return short
}

// Sentence is the documented wording of a quota refusal, e.g. "exceeded quota:
// gpu limit 100, requested 4, used 98".
func Sentence(name resource.Name, limit, requested, used int64) string {
	return fmt.Sprintf("exceeded quota: %s limit %s, requested %s, used %s", shortName(name),
		resource.FormatAmount(name, limit), resource.FormatAmount(name, requested), resource.FormatAmount(name, used))
}

// shortName is a resource in a sentence.
func shortName(name resource.Name) string {
	if name == resource.GPU {
		return "gpu"
	}
	return string(name)
}

// Charge counts a transaction from now on. Charging the same transaction again
// changes nothing. It does not check the limits: a record that exists is
// charged whatever they say.
func (l *Limits) Charge(tx resource.TxID, c Charge) {
	if _, dup := l.at[tx]; dup {
		return
	}
	l.at[tx] = len(l.live)
	l.live = append(l.live, &liveCharge{tx, c})
	for _, limit := range l.limits[c.Group] {
		if limit.counts(&c) {
			limit.add(&c)
		}
	}
}

// Discharge stops counting a transaction; an unknown one changes nothing.
func (l *Limits) Discharge(tx resource.TxID) {
	at, ok := l.at[tx]
	if !ok {
		return
	}
	c, last := &l.live[at].Charge, len(l.live)-1
	l.live[at] = l.live[last]
	l.at[l.live[at].tx] = at
	l.live[last], l.live = nil, l.live[:last]
	delete(l.at, tx)
	for _, limit := range l.limits[c.Group] {
		if !limit.counts(c) {
			continue
		}
		for i, name := range limit.names {
			limit.used[i] = resource.SaturatingSub(limit.used[i], c.of(name))
		}
		limit.users.remove(c)
	}
}
