package lead

import "github.com/musterd/muster/api"

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
