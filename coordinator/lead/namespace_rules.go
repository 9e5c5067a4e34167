package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/why"
)

// This file holds the refusals of new work by the rules of its namespace.

// barredFrom is the reason why a namespace takes no new work of a priority, nil where
// it does.
func (l *Leader) barredFrom(namespace string, priority int32) *api.Status {
	if l.rules.RequireNamespaces && !l.isKnown(namespace) {
		return api.Errorf(404, "namespace %s does not exist, and requireNamespaces is set: ask an operator to create it", namespace)
	}
	if ceiling := l.namespace(namespace).PriorityCeiling; ceiling != nil && priority > *ceiling {
		return api.Errorf(403, "spec.priority: %d is above the priority ceiling %d of namespace %s: ask for %d or less, or ask an operator to raise spec.priorityCeiling",
			priority, *ceiling, namespace, *ceiling)
	}
	return nil
}

// unsatisfiable refuses a unit that can never run, where its namespace rejects such
// work. Otherwise the unit waits: a node or a quota may come.
func (l *Leader) unsatisfiable(u *unit) *api.Status {
	namespace := u.record.Namespace
	if l.namespace(namespace).Unsatisfiable != "reject" {
		return nil
	}
	never := l.snapshot().World().Never(l.asked(u))
	if len(never) == 0 {
		return nil
	}
	l.removeConsumer(u)
	outlook := why.OutlookOf(never, false)
	status := api.Errorf(422, "%s Namespace %s rejects work that can never run (spec.unsatisfiable)", outlook.Message, namespace)
	status.Details = append(status.Details, *outlook.Reason)
	return status
}
