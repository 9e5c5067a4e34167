package service

import (
	"context"
	"net/http"

	"github.com/musterd/muster/api"
)

// Release asks for the end of several allocations of a namespace.
type Release struct {
	// Names are the allocations, ascending, without repetition. An allocation that
	// does not exist, or whose owner has asked for its end before, is passed over.
	Names   []string
	Options api.DeleteOptions
	// DryRun counts the allocations and ends none.
	DryRun bool
}

// Deletable returns the refusal of a deletion of an allocation that is a member of
// a job, nil for any other allocation.
func Deletable(a *api.Allocation) *api.Status {
	if a.Status.Job == "" {
		return nil
	}
	return api.Errorf(http.StatusConflict, "allocation %s is a member of job %s; cancel or delete the job", a.Metadata.Name, a.Status.Job).Because(api.FailedPrecondition)
}

// NamesOf returns the names of the allocations of a namespace that a selector
// selects, ascending.
func NamesOf(ctx context.Context, s Allocations, namespace string, labels LabelSelector) ([]string, error) {
	var names []string
	p := Page[api.Allocation]{Limit: MaxPage, Match: func(a *api.Allocation) bool { return labels.matches(a.Metadata.Labels) }}
	for {
		got, err := s.ListAllocations(ctx, namespace, p)
		if err != nil {
			return nil, err
		}
		for i := range got.Items {
			names = append(names, got.Items[i].Metadata.Name)
		}
		if p.After = got.Metadata.Continue; p.After == "" {
			return names, nil
		}
	}
}
