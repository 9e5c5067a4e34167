package rpc

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/api"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
	"github.com/musterd/muster/wire/limits"
)

// Eviction is an agent's request: the end, under notice, of an allocation with
// members on its node.
type Eviction struct {
	Node resource.NodeID
	// Namespace and Name are as clients see them; or Tx is the transaction.
	Namespace, Name string
	Tx              resource.TxID
	GraceSeconds    *int64 // nil is the default
	Reason          string
}

// Evictor decides evictions. It returns once EVICTING is durable; its refusals
// are *api.Status.
type Evictor func(context.Context, Eviction) (resource.TxID, resource.Revision, error)

// Evict passes an eviction to the leader. A coordinator that does not lead
// refuses with the reason api.NotLeader among the details.
func (s *Server) Evict(ctx context.Context, r *musterv1.EvictAllocationRequest) (*musterv1.EvictAllocationResponse, error) {
	if err := checkNode(r.GetNodeId()); err != nil {
		return nil, err
	}
	if s.Evictor == nil {
		return nil, status.Error(codes.Unimplemented, "this coordinator evicts nothing for agents")
	}
	e := Eviction{Node: resource.NodeID(r.GetNodeId()), Reason: r.GetReason()}
	switch grace := r.GetGraceSeconds(); {
	case grace > api.MaxGracePeriodSeconds:
		return nil, status.Errorf(codes.InvalidArgument, "grace_seconds: %d is more than %d", grace, api.MaxGracePeriodSeconds)
	case len(e.Reason) > limits.MaxReason:
		return nil, status.Errorf(codes.InvalidArgument, "reason: %d bytes are more than %d", len(e.Reason), limits.MaxReason)
	case grace >= 0:
		e.GraceSeconds = &grace
	}
	if namespace, name, named := strings.Cut(r.GetAllocation(), "/"); named && namespace != "" && name != "" {
		e.Namespace, e.Name = namespace, name
	} else {
		e.Tx = resource.TxID(r.GetAllocation())
		if _, _, _, err := e.Tx.Attempt(); err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "allocation %q: want NAMESPACE/NAME or a transaction", r.GetAllocation())
		}
	}
	if err := s.spend(e.Node, Evictions); err != nil {
		return nil, err
	}
	tx, revision, err := s.Evictor(ctx, e)
	if err != nil {
		return nil, evictionStatus(err)
	}
	return &musterv1.EvictAllocationResponse{Tx: string(tx), Revision: int64(revision)}, nil
}

func evictionStatus(err error) error {
	var refused *api.Status
	if !errors.As(err, &refused) {
		return status.FromContextError(err).Err()
	}
	return wire.ToRefusal(refused)
}
