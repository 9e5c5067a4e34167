package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/agent/ledger"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
)

// Eviction asks for the end of an allocation with members on a node.
type Eviction struct {
	Node resource.NodeID
	// Allocation is "namespace/name", or a transaction.
	Allocation string
	// GraceSeconds is between notice and forced stop; 0 means the default.
	GraceSeconds int64
	Reason       string
}

// Evictions asks the authority that decides evictions. It may block until the
// decision is durable; it ends early with its context.
type Evictions interface {
	Evict(ctx context.Context, e Eviction) error
}

// Evict asks any coordinator, which asks the leader, and returns once EVICTING
// is durable. An error of a coordinator carries its status code: NotFound where
// the node has no such allocation, FailedPrecondition where it is refused.
func (c *Coordinators) Evict(ctx context.Context, e Eviction) error {
	request := &musterv1.EvictAllocationRequest{
		NodeId: string(e.Node), Allocation: e.Allocation, GraceSeconds: e.GraceSeconds, Reason: e.Reason,
	}
	if e.GraceSeconds == 0 {
		request.GraceSeconds = -1 // the default, on that side
	}
	return c.call(ctx, "evict "+e.Allocation, func(ctx context.Context, client musterv1.CoordinatorClient) error {
		_, err := client.Evict(ctx, request)
		return err
	})
}

// EvictAllocation passes the wish on to a coordinator: evictions are decided in
// the store, and an agent ends nothing by itself. accepted means that the
// eviction is durable: the grant is under notice, and so are the other members
// of its unit. A refusal is an answer with accepted false, an outcome that
// nobody knows an error.
func (n *nodeAgent) EvictAllocation(ctx context.Context, r *schedulerv1.EvictRequest) (*schedulerv1.EvictResponse, error) {
	e := Eviction{Allocation: r.GetAllocationId(), GraceSeconds: r.GetGracePeriodSeconds(), Reason: r.GetReason()}
	switch {
	case e.Allocation == "":
		return nil, statusOf(fmt.Errorf("allocation_id: empty: %w", ErrBadMessage))
	case e.GraceSeconds < 0 || e.GraceSeconds > maxMillis/1000:
		return nil, statusOf(fmt.Errorf("grace_period_seconds: %d is outside 0..%d: %w", e.GraceSeconds, maxMillis/1000, ErrBadMessage))
	case len(e.Reason) > ledger.MaxText:
		return nil, statusOf(fmt.Errorf("reason: %d bytes are more than %d: %w", len(e.Reason), ledger.MaxText, ErrBadMessage))
	}
	s, err := n.snapshots.Snapshot(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	e.Node = s.Node
	// Callers of this service know a grant by its transaction, its unit, or its
	// name; coordinators do not know units by their identifiers.
	if i := slices.IndexFunc(s.Grants, func(g GrantMember) bool { return string(g.Unit) == e.Allocation }); i >= 0 {
		e.Allocation = string(s.Grants[i].Tx)
	}
	return evictAnswer(e, n.evictions.Evict(ctx, e))
}

// evictAnswer distinguishes a refusal from an unknown outcome. Of the
// coordinators' answers the first one that is final counts.
func evictAnswer(e Eviction, err error) (*schedulerv1.EvictResponse, error) {
	if err == nil {
		return &schedulerv1.EvictResponse{Accepted: true}, nil
	}
	refused := func(why string) (*schedulerv1.EvictResponse, error) {
		return &schedulerv1.EvictResponse{ErrorMessage: fmt.Sprintf("evict %s: %s", e.Allocation, why)}, nil
	}
	s, code := answered(err)
	switch code {
	case codes.NotFound:
		return refused(fmt.Sprintf("not found, or not on %s: %s", e.Node, s))
	case codes.FailedPrecondition, codes.InvalidArgument, codes.PermissionDenied, codes.AlreadyExists:
		return refused("refused: " + s)
	case codes.Unimplemented:
		return refused("the coordinator is of an older version and evicts nothing for agents; use `muster preempt` or `muster delete`")
	}
	if errors.Is(err, ErrNoCoordinator) {
		code = codes.Unavailable
	}
	return nil, status.Errorf(code, "evict %s: no coordinator has answered, the eviction may or may not come; ask again: %v", e.Allocation, err)
}

// answered finds the status of the last coordinator that was asked: where it was
// final, no other one was.
func answered(err error) (message string, code codes.Code) {
	for list, is := err.(interface{ Unwrap() []error }); is; list, is = err.(interface{ Unwrap() []error }) {
		errs := list.Unwrap()
		if len(errs) == 0 {
			break
		}
		err = errs[len(errs)-1]
	}
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus().Message(), s.GRPCStatus().Code()
	}
	return err.Error(), codes.Unavailable
}
