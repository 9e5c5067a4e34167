package rpc_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store/mem"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

func TestEvictPassesOnWhatIsAsked(t *testing.T) {
	tx := newTx()
	grace := int64(0)
	for name, c := range map[string]struct {
		request *musterv1.EvictAllocationRequest
		want    rpc.Eviction
	}{
		"a name":        {&musterv1.EvictAllocationRequest{NodeId: "n1", Allocation: "ns/a", GraceSeconds: -1}, rpc.Eviction{Node: "n1", Namespace: "ns", Name: "a"}},
		"a transaction": {&musterv1.EvictAllocationRequest{NodeId: "n1", Allocation: string(tx), GraceSeconds: -1, Reason: "r"}, rpc.Eviction{Node: "n1", Tx: tx, Reason: "r"}},
		"no grace":      {&musterv1.EvictAllocationRequest{NodeId: "n1", Allocation: "ns/a"}, rpc.Eviction{Node: "n1", Namespace: "ns", Name: "a", GraceSeconds: &grace}},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := open(t, mem.Options{})
			var got rpc.Eviction
			server.Evictor = func(_ context.Context, e rpc.Eviction) (resource.TxID, resource.Revision, error) {
				got = e
				return "tx", 7, nil
			}
			r, err := server.Evict(t.Context(), c.request)
			if err != nil || r.GetTx() != "tx" || r.GetRevision() != 7 {
				t.Fatalf("%v, %v", r, err)
			}
			sameGrace := (got.GraceSeconds == nil) == (c.want.GraceSeconds == nil) && (got.GraceSeconds == nil || *got.GraceSeconds == *c.want.GraceSeconds)
			got.GraceSeconds, c.want.GraceSeconds = nil, nil
			if got != c.want || !sameGrace {
				t.Errorf("asked for %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestEvictRefuses(t *testing.T) {
	valid := func(change func(*musterv1.EvictAllocationRequest)) *musterv1.EvictAllocationRequest {
		r := &musterv1.EvictAllocationRequest{NodeId: "n1", Allocation: "ns/a"}
		change(r)
		return r
	}
	for name, r := range map[string]*musterv1.EvictAllocationRequest{
		"no node":                      valid(func(r *musterv1.EvictAllocationRequest) { r.NodeId = "" }),
		"no allocation":                valid(func(r *musterv1.EvictAllocationRequest) { r.Allocation = "" }),
		"a name without a namespace":   valid(func(r *musterv1.EvictAllocationRequest) { r.Allocation = "/a" }),
		"neither name nor transaction": valid(func(r *musterv1.EvictAllocationRequest) { r.Allocation = "a" }),
		"a grace of two days":          valid(func(r *musterv1.EvictAllocationRequest) { r.GraceSeconds = 172_800 }),
		"a book as reason":             valid(func(r *musterv1.EvictAllocationRequest) { r.Reason = strings.Repeat("r", 1025) }),
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := open(t, mem.Options{})
			server.Evictor = func(context.Context, rpc.Eviction) (resource.TxID, resource.Revision, error) {
				t.Error("it was passed on")
				return "", 0, nil
			}
			if _, err := server.Evict(t.Context(), r); status.Code(err) != codes.InvalidArgument {
				t.Errorf("error %v, want InvalidArgument", err)
			}
		})
	}
	server, _ := open(t, mem.Options{})
	if _, err := server.Evict(t.Context(), valid(func(*musterv1.EvictAllocationRequest) {})); status.Code(err) != codes.Unimplemented {
		t.Errorf("nobody evicts: error %v", err)
	}
}

func TestEvictTellsTheRefusal(t *testing.T) {
	notLeader := api.Errorf(503, "c2 leads")
	notLeader.Reason = api.NotLeader
	for name, c := range map[string]struct {
		err  error
		code codes.Code
	}{
		"not found":   {api.Errorf(404, "no such allocation"), codes.NotFound},
		"not running": {api.Errorf(409, "it is Pending").Because(api.FailedPrecondition), codes.FailedPrecondition},
		"outrun":      {api.Errorf(409, "another change was faster"), codes.Aborted},
		"not leading": {notLeader, codes.Unavailable},
		"given up":    {context.Canceled, codes.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := open(t, mem.Options{})
			server.Evictor = func(context.Context, rpc.Eviction) (resource.TxID, resource.Revision, error) { return "", 0, c.err }
			_, err := server.Evict(t.Context(), &musterv1.EvictAllocationRequest{NodeId: "n1", Allocation: "ns/a"})
			if status.Code(err) != c.code || !strings.Contains(err.Error(), c.err.Error()) {
				t.Errorf("error %v, want %s", err, c.code)
			}
			var refused *api.Status
			if got := wire.FromRefusal(err); errors.As(c.err, &refused) && (got.Code != refused.Code || got.Reason != refused.Reason) {
				t.Errorf("it is read as %+v, want %+v", got, refused)
			}
		})
	}
}
