package grpcapi

import (
	"context"
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// nodes implements muster.api.v1.Nodes.
type nodes struct {
	apiv1.UnimplementedNodesServer
	a *API
}

// options reads the options of a verb on a node, of which each may be left out.
func options[T any](ctx context.Context, a *API, verb service.Verb, name string, m proto.Message, decode func([]byte) (T, *api.Status)) (o T, refused *api.Status) {
	if refused = a.on(ctx, verb, service.KindNodes, "", name); refused != nil {
		return o, refused
	}
	o, _, refused = decoded(m, decode)
	return o, refused
}

// Get implements apiv1.NodesServer.
func (s nodes) Get(ctx context.Context, r *apiv1.GetRequest) (*apiv1.Node, error) {
	status := s.a.on(ctx, service.VerbGet, service.KindNodes, "", r.GetName())
	ctx, odd := reading(ctx, r)
	if status := first(status, odd); status != nil {
		return nil, status
	}
	got, err := s.a.Service.GetNode(ctx, r.GetName())
	return answered(service.TypedNode(got), err, new(apiv1.Node))
}

// List implements apiv1.NodesServer.
func (s nodes) List(ctx context.Context, r *apiv1.ListRequest) (*apiv1.NodeList, error) {
	items, meta, err := page(ctx, s.a, s.a.all(ctx, service.VerbList, service.KindNodes, r.GetNamespace()), service.ListedNodes, r,
		func(q *service.Selection) ([]api.Node, api.ListMeta, string, error) {
			got, err := s.a.Service.ListNodes(ctx)
			if err != nil {
				return nil, api.ListMeta{}, "", err
			}
			items, more := service.ListedNodes.Cut(got.Items, q)
			return items, got.Metadata, more, nil
		}, func() *apiv1.Node { return new(apiv1.Node) })
	if err != nil {
		return nil, err
	}
	return &apiv1.NodeList{Kind: "NodeList", Metadata: meta, Items: items}, nil
}

// Create implements apiv1.NodesServer.
func (s nodes) Create(ctx context.Context, r *apiv1.Node) (*apiv1.Node, error) {
	if status := s.a.may(ctx, service.VerbCreate, service.KindNodes, ""); status != nil {
		return nil, status
	}
	n, _, status := decoded(r, api.DecodeNodeCreate)
	if status != nil {
		return nil, status
	}
	got, err := service.CreateNode(ctx, s.a.Service, s.a.Identity, n, caller(ctx).Name)
	if err == nil {
		warn(ctx, n.RecordedOnly())
	}
	return answered(service.TypedNode(got), err, new(apiv1.Node))
}

// PatchStatus implements apiv1.NodesServer.
func (s nodes) PatchStatus(ctx context.Context, r *apiv1.PatchRequest) (*apiv1.Node, error) {
	if status := s.a.on(ctx, service.VerbPatch, service.KindNodes, "", r.GetName()); status != nil {
		return nil, status
	}
	patch, status := patchOf(r.GetPatch())
	if status != nil {
		return nil, status
	}
	p, status := api.DecodeNodeStatusPatch(r.GetName(), patch)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.PatchNodeStatus(ctx, r.GetName(), p)
	service.WarnIgnored(ctx, p)
	return answered(service.TypedNode(got), err, new(apiv1.Node))
}

// patch changes the fields of a node that operators set.
func (s nodes) patch(ctx context.Context, name string, patch []byte) (*apiv1.Node, error) {
	return s.patched(ctx, name, patch, api.DecodeNodePatch)
}

func (s nodes) patched(ctx context.Context, name string, patch []byte, decode func(string, []byte) (api.NodePatch, *api.Status)) (*apiv1.Node, error) {
	p, status := decode(name, patch)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.PatchNode(ctx, name, p)
	return answered(service.TypedNode(got), err, new(apiv1.Node))
}

// Patch implements apiv1.NodesServer.
func (s nodes) Patch(ctx context.Context, r *apiv1.PatchRequest) (*apiv1.Node, error) {
	if status := s.a.on(ctx, service.VerbPatch, service.KindNodes, "", r.GetName()); status != nil {
		return nil, status
	}
	patch, status := patchOf(r.GetPatch())
	if status != nil {
		return nil, status
	}
	if r.GetStrategic() {
		return s.patched(ctx, r.GetName(), patch, api.DecodeNodeStrategicPatch)
	}
	return s.patch(ctx, r.GetName(), patch)
}

// Cordon implements apiv1.NodesServer.
func (s nodes) Cordon(ctx context.Context, r *apiv1.NodeRequest) (*apiv1.Node, error) {
	if status := s.a.on(ctx, service.VerbPatch, service.KindNodes, "", r.GetName()); status != nil {
		return nil, status
	}
	return s.patch(ctx, r.GetName(), json.RawMessage(`{"spec":{"unschedulable":true}}`))
}

// Uncordon implements apiv1.NodesServer.
func (s nodes) Uncordon(ctx context.Context, r *apiv1.NodeRequest) (*apiv1.Node, error) {
	if status := s.a.on(ctx, service.VerbPatch, service.KindNodes, "", r.GetName()); status != nil {
		return nil, status
	}
	return s.patch(ctx, r.GetName(), json.RawMessage(`{"spec":{"unschedulable":false}}`))
}

// Drain implements apiv1.NodesServer.
func (s nodes) Drain(ctx context.Context, r *apiv1.DrainRequest) (*apiv1.Drain, error) {
	o, status := options(ctx, s.a, service.VerbDrain, r.GetName(), r.GetOptions(), api.DecodeDrainOptions)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.DrainNode(ctx, r.GetName(), o)
	return answered(got, err, new(apiv1.Drain))
}

// Approve implements apiv1.NodesServer.
func (s nodes) Approve(ctx context.Context, r *apiv1.ApproveRequest) (*apiv1.Node, error) {
	o, status := options(ctx, s.a, service.VerbApprove, r.GetName(), r.GetOptions(), api.DecodeApproveOptions)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.ApproveNode(ctx, r.GetName(), o)
	return answered(service.TypedNode(got), err, new(apiv1.Node))
}

// Fence implements apiv1.NodesServer.
func (s nodes) Fence(ctx context.Context, r *apiv1.FenceRequest) (*apiv1.Node, error) {
	o, status := options(ctx, s.a, service.VerbFence, r.GetName(), r.GetOptions(), api.DecodeFenceOptions)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.FenceNode(ctx, r.GetName(), o)
	return answered(service.TypedNode(got), err, new(apiv1.Node))
}

// Reconcile implements apiv1.NodesServer.
func (s nodes) Reconcile(ctx context.Context, r *apiv1.ReconcileRequest) (*apiv1.Reconciliation, error) {
	o, status := options(ctx, s.a, service.VerbReconcile, r.GetName(), r.GetOptions(), api.DecodeReconcileOptions)
	if status != nil {
		return nil, status
	}
	got, err := s.a.Service.ReconcileNode(ctx, r.GetName(), o)
	return answered(got, err, new(apiv1.Reconciliation))
}

// Delete implements apiv1.NodesServer.
func (s nodes) Delete(ctx context.Context, r *apiv1.RemoveNodeRequest) (*apiv1.Node, error) {
	if status := s.a.on(ctx, service.VerbDelete, service.KindNodes, "", r.GetName()); status != nil {
		return nil, status
	}
	got, err := s.a.Service.DeleteNode(ctx, r.GetName(), required(r.GetPreconditions()))
	return answered(service.TypedNode(got), err, new(apiv1.Node))
}

// coordinators implements muster.api.v1.Coordinators.
type coordinators struct {
	apiv1.UnimplementedCoordinatorsServer
	a *API
}

// List implements apiv1.CoordinatorsServer.
func (s coordinators) List(ctx context.Context, _ *apiv1.ListCoordinatorsRequest) (*apiv1.CoordinatorList, error) {
	if status := s.a.may(ctx, service.VerbList, service.KindCoordinators, ""); status != nil {
		return nil, status
	}
	return answered(service.RollCall(ctx, s.a.Roster, s.a.Ask), nil, new(apiv1.CoordinatorList))
}
