package service

import (
	"context"

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
