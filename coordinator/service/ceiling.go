package service

import (
	"net/http"

	"github.com/musterd/muster/api"
)

// CheckPriority returns the 403 of work whose priority is above the ceiling of the
// caller's token, nil for all other work. number and class are those of the document,
// which was checked before. The ceiling of the namespace is the leader's to check.
func (p Principal) CheckPriority(number *int32, class string) *api.Status {
	if p.Ceiling == nil {
		return nil
	}
	priority, status := api.PriorityOf(number, class)
	if status != nil {
		return status
	}
	if priority > *p.Ceiling {
		return api.Errorf(http.StatusForbidden, "spec.priority: %d is above the priority ceiling %d of the token of %q: ask for %d or less, or use a token with a higher ceiling",
			priority, *p.Ceiling, p.Name, *p.Ceiling)
	}
	return nil
}
