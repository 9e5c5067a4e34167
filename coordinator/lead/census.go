package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/resource"
)

// used is the use of a namespace.
func (l *Leader) used(namespace string) count.Use {
	l.census.Begin(l.work.Units)
	return l.census.Of[namespace]
}

// usedByTenant is the use of all namespaces of a tenant.
func (l *Leader) usedByTenant(tenant resource.TenantID) (all count.Use) {
	for namespace, use := range l.census.Of {
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
		more = more.Plus(work.CountedUse(u))
	}
	return l.hasRoomFor(s.units[0].Record.Namespace, more)
}

// hasRoomFor is hasRoom of a request that adds a use to a namespace.
func (l *Leader) hasRoomFor(namespace string, more count.Use) *api.Status {
	rules := l.namespace(namespace)
	if status := count.LimitsOf(rules.Limits, l.rules.NamespaceAllocations).Refuse(namespace, l.used(namespace), more); status != nil {
		return status
	}
	shares := count.Shares{Documents: l.rules.Documents, Waiting: count.WaitingOf(rules.Limits, l.rules.NamespaceAllocations)}
	return shares.Refuse(rules.Tenant, l.usedByTenant, l.census.All, more)
}

// growthOf is the use that a change of a job adds to the namespace.
func (l *Leader) growthOf(change *jobChange) count.Use {
	j := change.job
	more := count.OfJob(&change.rec, change.doc).Minus(count.OfJob(&j.Record, j.Doc))
	for _, u := range change.added {
		more = more.Plus(work.CountedUse(u))
	}
	return more
}
