package service

import (
	"cmp"
	"context"

	"github.com/musterd/muster/api"
)

// TypedAllocation names version and kind, which a service may leave out. nil
// stays nil.
func TypedAllocation(a *api.Allocation) *api.Allocation {
	if a != nil {
		a.APIVersion, a.Kind = cmp.Or(a.APIVersion, api.APIVersion), cmp.Or(a.Kind, api.KindAllocation)
	}
	return a
}

// TypedJob is as TypedAllocation.
func TypedJob(j *api.Job) *api.Job {
	if j != nil {
		j.APIVersion, j.Kind = cmp.Or(j.APIVersion, api.APIVersion), cmp.Or(j.Kind, api.KindJob)
	}
	return j
}

// TypedNode is as TypedAllocation.
func TypedNode(n *api.Node) *api.Node {
	if n != nil {
		n.APIVersion, n.Kind = cmp.Or(n.APIVersion, api.APIVersion), cmp.Or(n.Kind, api.KindNode)
	}
	return n
}

// TypedExplanation is as TypedAllocation.
func TypedExplanation(e *api.Explanation) *api.Explanation {
	if e != nil {
		e.Kind = "Explanation"
	}
	return e
}

// ListAllocations makes a page of the allocations of a namespace, with "" of all;
// more is the position to go on after, "" at the end.
func ListAllocations(ctx context.Context, s Allocations, namespace string, q *Selection) (items []api.Allocation, meta api.ListMeta, more string, err error) {
	got, err := s.ListAllocations(ctx, namespace, ListedAllocations.PageOf(q))
	if err != nil {
		return nil, meta, "", err
	}
	return got.Items, got.Metadata, got.Metadata.Continue, nil
}

// ListJobs is as ListAllocations.
func ListJobs(ctx context.Context, s Jobs, namespace string, q *Selection) (items []api.Job, meta api.ListMeta, more string, err error) {
	got, err := s.ListJobs(ctx, namespace, ListedJobs.PageOf(q))
	if err != nil {
		return nil, meta, "", err
	}
	return got.Items, got.Metadata, got.Metadata.Continue, nil
}
