package api

import (
	"fmt"
	"slices"

	"github.com/musterd/muster/resource"
)

// Matches reports whether a unit falls under the quota: every scope and every
// expression must match. class is its priority class as given, "" for none;
// terminating says that it has a deadline.
func (s *ResourceQuotaSpec) Matches(class string, terminating bool) bool {
	for _, scope := range s.Scopes {
		if (scope == ScopeTerminating) != terminating {
			return false
		}
	}
	if s.ScopeSelector == nil {
		return true
	}
	for _, e := range s.ScopeSelector.MatchExpressions {
		if !e.matches(class, terminating) {
			return false
		}
	}
	return true
}

// matches judges one valid expression. As in Kubernetes, a unit without a
// class is not In any and is NotIn every set.
func (e ScopeExpression) matches(class string, terminating bool) bool {
	switch {
	case e.ScopeName != ScopePriorityClass:
		return (e.ScopeName == ScopeTerminating) == terminating
	case e.Operator == "In":
		return slices.Contains(e.Values, class)
	case e.Operator == "NotIn":
		return !slices.Contains(e.Values, class)
	}
	return (e.Operator == "Exists") == (class != "")
}

// Limits returns the hard and the soft limits of a valid quota in base units:
// those that hold, of the resources that Muster hands out, of resource.Pods, and of
// names with a domain.
func (s *ResourceQuotaSpec) Limits() (hard, soft resource.Vector) {
	return held(s.Hard), held(s.Soft)
}

// UserLimits returns the limits for each user of a valid quota, as Limits does.
func (s *ResourceQuotaSpec) UserLimits() resource.Vector { return held(s.PerUser) }

func held(quantities map[resource.Name]string) resource.Vector {
	v := make(resource.Vector, len(quantities))
	for name, text := range quantities {
		if name != resource.Pods && foreign(name) && !IsForeignName(name) {
			continue
		}
		if amount, err := limit(name, text); err == nil {
			v[name] = amount
		}
	}
	return v
}

// WarnOfClasses returns a warning for each priority class of the scope selector that
// there is not, in document order. Work of the class falls under the scope once there is one.
func (q *ResourceQuota) WarnOfClasses(exists func(class string) bool) (warnings []string) {
	if q.Spec.ScopeSelector == nil {
		return nil
	}
	for i, e := range q.Spec.ScopeSelector.MatchExpressions {
		for j, class := range e.Values {
			if !exists(class) {
				warnings = append(warnings, fmt.Sprintf("spec.scopeSelector.matchExpressions[%d].values[%d]: there is no priority class %q now", i, j, clip(class)))
			}
		}
	}
	return warnings
}
