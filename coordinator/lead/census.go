package lead

import (
	"fmt"
	"maps"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/resource"
)

// census counts the objects of each namespace. The zero value has not counted yet.
//
// Invariant: once counted, the use of a namespace is the sum of counted over its units, and
// all is the sum over the namespaces.
type census struct {
	of  map[string]count.Use
	all count.Use
}

// set replaces the part of a unit in the use of its namespace.
func (c *census) set(u *unit, use count.Use) {
	if c.of == nil || use == u.counted {
		return
	}
	namespace, more := u.record.Namespace, use.Minus(u.counted)
	c.all = c.all.Plus(more)
	c.of[namespace] = c.of[namespace].Plus(more)
	u.setCounted(use)
	if c.of[namespace] == (count.Use{}) {
		delete(c.of, namespace)
	}
}

// note counts a unit as it is now.
func (c *census) note(u *unit) {
	if c.of != nil {
		c.set(u, countedUse(u))
	}
}

// begin counts all units, unless they are counted.
func (c *census) begin(units map[string]*unit) {
	if c.of != nil {
		return
	}
	c.of = map[string]count.Use{}
	for _, u := range units {
		c.note(u)
	}
}

// check verifies the invariant over all units. A document that is being written counts
// already.
func (c *census) check(units map[string]*unit) error {
	if c.of == nil {
		return nil
	}
	sums := census{of: map[string]count.Use{}}
	for _, u := range units {
		is := countedUse(u)
		if is.Annotations, is.Documents = u.counted.Annotations, u.counted.Documents; is != u.counted {
			return fmt.Errorf("%s is counted as %+v, is %+v", u.path, u.counted, is)
		}
		sums.of[u.record.Namespace] = sums.of[u.record.Namespace].Plus(is)
		sums.all = sums.all.Plus(is)
	}
	if !maps.Equal(sums.of, c.of) || sums.all != c.all {
		return fmt.Errorf("the namespaces are counted as %+v, the units are %+v", *c, sums)
	}
	return nil
}

// countedUse is the part of a unit in the use of its namespace. A job counts with its first
// unit.
func countedUse(u *unit) count.Use {
	if u.life.Gone() {
		return count.Use{}
	}
	use := count.OfUnit(&u.record, u.allocation)
	if u.job != nil && u.record.N == 0 {
		use = use.Plus(count.OfJob(&u.job.record, u.job.doc))
	}
	return use
}

// used is the use of a namespace.
func (l *Leader) used(namespace string) count.Use {
	l.census.begin(l.work.units)
	return l.census.of[namespace]
}

// usedByTenant is the use of all namespaces of a tenant.
func (l *Leader) usedByTenant(tenant resource.TenantID) (all count.Use) {
	for namespace, use := range l.census.of {
		if l.namespace(namespace).Tenant == tenant {
			all = all.Plus(use)
		}
	}
	return all
}

// hasRoom refuses a submission with 429 where its namespace has too much stored
// already.
func (l *Leader) hasRoom(s *submission) *api.Status {
	var more count.Use
	for _, u := range s.units {
		more = more.Plus(countedUse(u))
	}
	return l.hasRoomFor(s.units[0].record.Namespace, more)
}

// hasRoomFor is hasRoom of a request that adds a use to a namespace.
func (l *Leader) hasRoomFor(namespace string, more count.Use) *api.Status {
	rules := l.namespace(namespace)
	if status := count.LimitsOf(rules.Limits, l.rules.NamespaceAllocations).Refuse(namespace, l.used(namespace), more); status != nil {
		return status
	}
	shares := count.Shares{Documents: l.rules.Documents, Waiting: count.WaitingOf(rules.Limits, l.rules.NamespaceAllocations)}
	return shares.Refuse(rules.Tenant, l.usedByTenant, l.census.all, more)
}

// growthOf is the use that a change of a job adds to the namespace.
func (l *Leader) growthOf(change *jobChange) count.Use {
	j := change.job
	more := count.OfJob(&change.rec, change.doc).Minus(count.OfJob(&j.record, j.doc))
	for _, u := range change.added {
		more = more.Plus(countedUse(u))
	}
	return more
}
