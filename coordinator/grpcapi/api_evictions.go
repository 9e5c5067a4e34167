package grpcapi

import (
	"context"
	"net/http"

	"google.golang.org/grpc"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// evictionsOn refuses a caller that may not see the notices on a node, and a node
// that does not exist.
func (a *API) evictionsOn(ctx context.Context, verb service.Verb, node string) error {
	if status := a.may(ctx, verb, service.KindEvictions, ""); status != nil {
		return status
	}
	if status := service.CheckName(service.KindNodes, node); status != nil {
		return status
	}
	_, err := a.Service.GetNode(ctx, node)
	return err
}

// evictedOn selects the allocations that are evicted from a node.
func evictedOn(node string) func(*api.Allocation) bool {
	return func(a *api.Allocation) bool {
		_, is := api.EvictionOn(node, a)
		return is
	}
}

// ListEvictions implements apiv1.NodesServer.
func (s nodes) ListEvictions(ctx context.Context, r *apiv1.NodeRequest) (*apiv1.EvictionNoticeList, error) {
	if err := s.a.evictionsOn(ctx, service.VerbList, r.GetName()); err != nil {
		return nil, err
	}
	got, err := s.a.Service.ListAllocations(ctx, "", service.Page[api.Allocation]{Match: evictedOn(r.GetName())})
	if err != nil {
		return nil, err
	}
	list := api.EvictionNoticeList{Kind: "EvictionNoticeList", Metadata: got.Metadata}
	for i := range got.Items {
		notice, _ := api.EvictionOn(r.GetName(), &got.Items[i])
		list.Items = append(list.Items, notice)
	}
	return answered(&list, nil, new(apiv1.EvictionNoticeList))
}

// WatchEvictions implements apiv1.NodesServer.
func (s nodes) WatchEvictions(r *apiv1.WatchEvictionsRequest, out grpc.ServerStreamingServer[apiv1.EvictionWatchEvent]) error {
	if err := s.a.evictionsOn(out.Context(), service.VerbWatch, r.GetName()); err != nil {
		return err
	}
	o, status := place(objects.Allocations, &apiv1.WatchRequest{After: r.GetAfter()})
	if status != nil {
		return status
	}
	evicted := evictedOn(r.GetName())
	return s.a.follow(out.Context(), o, func(e *objects.Event) (any, error) {
		of, object := objects.Selected(e, func(o any) bool { return evicted(o.(*api.Allocation)) })
		if of != objects.Added {
			return nil, nil
		}
		notice, _ := api.EvictionOn(r.GetName(), object.(*api.Allocation))
		if e.ID.Revision > 0 {
			notice.ResourceVersion = e.ID.String()
		}
		m, err := toMessage(notice, new(apiv1.EvictionNotice))
		return &apiv1.EvictionWatchEvent{Type: apiv1.WatchEventType_ADDED, Id: watchID(e.ID), Object: m}, err
	}, func(id *apiv1.WatchID) any {
		return &apiv1.EvictionWatchEvent{Type: apiv1.WatchEventType_BOOKMARK, Id: id}
	}, out.SendMsg)
}

// BulkRelease implements apiv1.AllocationsServer.
func (s allocations) BulkRelease(ctx context.Context, r *apiv1.BulkReleaseRequest) (*apiv1.BulkRelease, error) {
	if r.GetNamespace() == "" {
		return nil, api.Errorf(http.StatusBadRequest, "namespace: required")
	}
	if status := s.a.may(ctx, service.VerbDelete, service.KindAllocations, r.GetNamespace()); status != nil {
		return nil, status
	}
	o, _, status := decoded(r.GetOptions(), api.DecodeBulkRelease)
	if status != nil {
		return nil, status
	}
	var selected service.Selection
	if err := selected.Select("labelSelector", o.LabelSelector); err != nil {
		return nil, api.Errorf(http.StatusBadRequest, "labelSelector %q: %v", service.Clip(o.LabelSelector), err)
	}
	names, err := service.NamesOf(ctx, s.a.Service, r.GetNamespace(), selected.Labels)
	if err != nil {
		return nil, err
	}
	got, err := s.a.Service.ReleaseAllocations(ctx, r.GetNamespace(), service.Release{
		Names: names, DryRun: o.DryRun, Options: api.DeleteOptions{GracePeriodSeconds: o.GracePeriodSeconds, Reason: o.Reason},
	})
	return answered(got, err, new(apiv1.BulkRelease))
}
