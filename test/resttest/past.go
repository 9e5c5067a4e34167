package resttest

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// EmptyPast is the history of a cluster in which nothing has happened yet.
type EmptyPast struct{ service.NoPast }

// PastAllocations implements service.Past.
func (EmptyPast) PastAllocations(context.Context, service.PastQuery) (*api.PastAllocationList, error) {
	return &api.PastAllocationList{Kind: api.KindPastAllocation + "List", Items: []api.PastAllocation{}}, nil
}

// PastPreemptions implements service.Past.
func (EmptyPast) PastPreemptions(context.Context, service.PastQuery) (*api.PastPreemptionList, error) {
	return &api.PastPreemptionList{Kind: api.KindPastPreemption + "List", Items: []api.PastPreemption{}}, nil
}

// PastEvents implements service.Past.
func (EmptyPast) PastEvents(context.Context, service.PastQuery) (*api.PastEventList, error) {
	return &api.PastEventList{Kind: api.KindPastEvent + "List", Items: []api.PastEvent{}}, nil
}
