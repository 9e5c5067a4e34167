package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/ceiling"
)

// This file holds the refusals of new work by the rules of its namespace.

// Bounded is a request of a caller, whose roles and token bound the priority of new work.
type Bounded struct {
	Caller ceiling.Caller
	Request
}

// barredFrom is the reason why a namespace takes no new work of a priority from the
// caller that the leader acts for, nil where it does.
func (l *Leader) barredFrom(namespace string, priority int32) *api.Status {
	if l.rules.RequireNamespaces && !l.isKnown(namespace) {
		return api.Errorf(404, "namespace %s does not exist, and requireNamespaces is set: ask an admin to create it", namespace)
	}
	n, caller := l.namespace(namespace), l.post.Caller()
	return ceiling.Refuse(ceiling.Rules{Namespace: namespace, Owner: n.Tenant, All: n.PriorityCeiling, Roles: n.RoleCeilings}, caller, priority)
}
