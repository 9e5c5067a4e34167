package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
)

// evictor is a coordinator that decides evictions as its test wishes.
type evictor struct {
	musterv1.UnimplementedCoordinatorServer
	err  error
	last *musterv1.EvictAllocationRequest
}

func (e *evictor) Evict(_ context.Context, r *musterv1.EvictAllocationRequest) (*musterv1.EvictAllocationResponse, error) {
	e.last = r
	return &musterv1.EvictAllocationResponse{Tx: "tx", Revision: 9}, e.err
}

// serve serves coordinators in memory, by address, and returns a client of them
// in this order.
func serve(t *testing.T, coordinators ...musterv1.CoordinatorServer) *Coordinators {
	t.Helper()
	token, err := rpcauth.NewToken("0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	var addresses []string
	listeners := map[string]*bufconn.Listener{}
	for i, c := range coordinators {
		address := fmt.Sprintf("c%d", i)
		addresses, listeners[address] = append(addresses, address), bufconn.Listen(1<<16)
		server := grpc.NewServer(rpcauth.ServerOptions(token)...)
		musterv1.RegisterCoordinatorServer(server, c)
		go server.Serve(listeners[address])
		t.Cleanup(server.Stop)
	}
	calls := NewCoordinators(func() []string { return addresses }, token, func(ctx context.Context, address string) (net.Conn, error) {
		return listeners[address].DialContext(ctx)
	})
	t.Cleanup(func() { calls.Close() })
	return calls
}

func TestAnEvictionIsDecidedByACoordinator(t *testing.T) {
	for name, c := range map[string]struct {
		answers  []error // of one coordinator after the other
		accepted bool
		message  string
		code     codes.Code
	}{
		"accepted":                      {answers: []error{nil}, accepted: true},
		"the first one is away":         {answers: []error{status.Error(codes.Unavailable, "starting"), nil}, accepted: true},
		"nobody knows it":               {answers: []error{status.Error(codes.NotFound, "no such allocation")}, message: "evict a: not found, or not on n1: no such allocation"},
		"refused":                       {answers: []error{status.Error(codes.FailedPrecondition, "it is Terminating")}, message: "evict a: refused: it is Terminating"},
		"refused by the second":         {answers: []error{status.Error(codes.Unavailable, "starting"), status.Error(codes.FailedPrecondition, "no")}, message: "refused: no"},
		"of another node":               {answers: []error{status.Error(codes.PermissionDenied, "n1 is not n2")}, message: "refused: n1 is not n2"},
		"an older coordinator":          {answers: []error{status.Error(codes.Unimplemented, "unknown method")}, message: "muster delete"},
		"nobody is there":               {answers: []error{status.Error(codes.Unavailable, "no leader")}, code: codes.Unavailable},
		"nobody says whether it landed": {answers: []error{status.Error(codes.DeadlineExceeded, "the store is slow")}, code: codes.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			var coordinators []musterv1.CoordinatorServer
			for _, err := range c.answers {
				coordinators = append(coordinators, &evictor{err: err})
			}
			n := &nodeAgent{snapshots: snapshots{s: partitioned()}, evictions: serve(t, coordinators...)}
			r, err := n.EvictAllocation(t.Context(), &schedulerv1.EvictRequest{AllocationId: "a", Reason: "why"})
			if status.Code(err) != c.code || r.GetAccepted() != c.accepted || !strings.Contains(r.GetErrorMessage(), c.message) {
				t.Errorf("accepted %v, %q, %v", r.GetAccepted(), r.GetErrorMessage(), err)
			}
		})
	}
}

func TestAnEvictionSaysWhoseItIsAndHowLongItsGraceIs(t *testing.T) {
	for name, c := range map[string]struct {
		request    *schedulerv1.EvictRequest
		allocation string
		grace      int64
	}{
		"by name, with the default grace": {&schedulerv1.EvictRequest{AllocationId: "default/a", Reason: "why"}, "default/a", -1},
		"by unit":                         {&schedulerv1.EvictRequest{AllocationId: "u", GracePeriodSeconds: 30, Reason: "why"}, "tx", 30},
		"by transaction":                  {&schedulerv1.EvictRequest{AllocationId: "tx", GracePeriodSeconds: 1, Reason: "why"}, "tx", 1},
	} {
		t.Run(name, func(t *testing.T) {
			coordinator := &evictor{}
			n := &nodeAgent{snapshots: snapshots{s: partitioned()}, evictions: serve(t, coordinator)}
			if _, err := n.EvictAllocation(t.Context(), c.request); err != nil {
				t.Fatal(err)
			}
			got := coordinator.last
			if got.GetNodeId() != "n1" || got.GetAllocation() != c.allocation || got.GetGraceSeconds() != c.grace || got.GetReason() != "why" {
				t.Errorf("asked for %v", got)
			}
		})
	}
}

func TestBadEvictionsAreRefusedWithTheFieldAndTheValue(t *testing.T) {
	n := &nodeAgent{snapshots: snapshots{s: partitioned()}}
	for want, r := range map[string]*schedulerv1.EvictRequest{
		"allocation_id: empty":               {},
		"grace_period_seconds: -5 is outsid": {AllocationId: "a", GracePeriodSeconds: -5},
		"reason: 257 bytes":                  {AllocationId: "a", Reason: strings.Repeat("x", 257)},
	} {
		if _, err := n.EvictAllocation(t.Context(), r); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	n.snapshots = snapshots{err: errors.Join(errors.New("view"), ErrStopping)}
	if _, err := n.EvictAllocation(t.Context(), &schedulerv1.EvictRequest{AllocationId: "a"}); status.Code(err) != codes.Unavailable {
		t.Errorf("a stopping agent answers %v", err)
	}
}

func TestAnEvictionWithoutAnyCoordinatorIsUnavailable(t *testing.T) {
	n := &nodeAgent{snapshots: snapshots{s: partitioned()}, evictions: serve(t)}
	_, err := n.EvictAllocation(t.Context(), &schedulerv1.EvictRequest{AllocationId: "a"})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "no coordinator is known") {
		t.Errorf("got %v", err)
	}
}

func TestAQuarantineIsToldWithItsReason(t *testing.T) {
	for name, got := range map[string]string{
		"a change":    (Envelope{Body: HealthChange{Quarantine: "why"}}).message().GetHealth().GetQuarantine(),
		"the welcome": welcomeMessage(Welcome{Quarantine: "why"}).GetHello().GetQuarantine(),
	} {
		if got != "why" {
			t.Errorf("%s tells %q", name, got)
		}
	}
}
