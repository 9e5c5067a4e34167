package grpcapi_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/grpcapi"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/test/resttest"
)

func notLeading() error { return api.Errorf(503, "another one leads").Because(api.NotLeader) }

// post is where a coordinator sees the leader.
type post struct {
	hasty bool // it does not wait long for a leader: none comes

	mu      sync.Mutex
	leader  string // its address; "" for none
	own     bool
	reached []int64
}

func (p *post) lead(address string, own bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leader, p.own = address, own
}

func (p *post) Leader(ctx context.Context) (service.Leader, error) {
	for {
		p.mu.Lock()
		leader, own := p.leader, p.own
		p.mu.Unlock()
		if own || leader != "" {
			return service.Leader{ID: "l", GRPC: leader, Own: own}, nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return service.Leader{}, notLeading()
		}
	}
}

func (p *post) Reach(_ context.Context, revision int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached = append(p.reached, revision)
	return nil
}

func (p *post) Revision() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own {
		return 7
	}
	return 0
}

// evicting answers evictions.
type evicting struct {
	musterv1.UnimplementedCoordinatorServer
}

func (evicting) Evict(_ context.Context, r *musterv1.EvictAllocationRequest) (*musterv1.EvictAllocationResponse, error) {
	return &musterv1.EvictAllocationResponse{Tx: r.GetAllocation(), Revision: 7}, nil
}

// network connects coordinators by address.
type network map[string]*bufconn.Listener

func (n network) dial(ctx context.Context, address string) (net.Conn, error) {
	if l := n[address]; l != nil {
		return l.DialContext(ctx)
	}
	return nil, net.ErrClosed
}

// apiOf is the address of the API of a coordinator, whose own address is that of the
// agents' gRPC.
func apiOf(address string) string { return address + "-api" }

// coordinator starts one at an address.
func (n network) coordinator(t *testing.T, address string, p *post, cluster service.Service) {
	t.Helper()
	token, err := rpcauth.NewToken(clusterSecret)
	if err != nil {
		t.Fatal(err)
	}
	patience := 30 * time.Second
	if p.hasty {
		patience = 300 * time.Millisecond
	}
	relay := func(at func(service.Leader) string) *grpcapi.Relay {
		r := &grpcapi.Relay{
			Forward: service.NewForward(address, p, patience, nil), Revision: p.Revision, At: at,
			Dial: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(n.dial)},
		}
		t.Cleanup(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
		return r
	}
	agents := grpc.NewServer(append(rpcauth.ServerOptions(token), grpc.ChainUnaryInterceptor(relay(nil).Intercept))...)
	musterv1.RegisterCoordinatorServer(agents, evicting{})
	n[address] = listening(t, agents)
	public := &grpcapi.API{Service: cluster, Authenticator: people{}, Relay: relay(func(l service.Leader) string { return apiOf(l.GRPC) })}
	n[apiOf(address)] = listening(t, public.NewServer().Server)
}

func TestQuotasOverGRPCThroughAFollower(t *testing.T) {
	resttest.RunQuotas(t, func(t *testing.T) service.Quotas {
		n := network{}
		n.coordinator(t, "l", &post{own: true}, resttest.New(time.Now))
		n.coordinator(t, "f", &post{leader: "l"}, resttest.NotLeading{})
		return remote{dial(t, n[apiOf("f")], adminSecret)}
	})
}

func TestEvictionsArePassedOn(t *testing.T) {
	n := network{}
	n.coordinator(t, "l", &post{own: true}, resttest.NotLeading{})
	follower := &post{leader: "l"}
	n.coordinator(t, "f", follower, resttest.NotLeading{})
	agent := musterv1.NewCoordinatorClient(dial(t, n["f"], clusterSecret))
	got, err := agent.Evict(t.Context(), &musterv1.EvictAllocationRequest{Allocation: "default/a"})
	if err != nil || got.GetTx() != "default/a" {
		t.Fatalf("%v, %v", got, err)
	}
	if len(follower.reached) != 1 || follower.reached[0] != 7 {
		t.Errorf("reads have been brought to %v, want to 7", follower.reached)
	}
	if _, err := musterv1.NewCoordinatorClient(dial(t, n["f"], adminSecret)).Evict(t.Context(), &musterv1.EvictAllocationRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("who is no member: %v", err)
	}
}

func TestCallsWithoutALeader(t *testing.T) {
	n := network{}
	nobody, wrong, late := &post{hasty: true}, &post{hasty: true, leader: "gone"}, &post{leader: "gone"}
	n.coordinator(t, "nobody", nobody, resttest.NotLeading{})
	n.coordinator(t, "wrong", wrong, resttest.NotLeading{})
	n.coordinator(t, "late", late, resttest.NotLeading{})
	n.coordinator(t, "l", &post{own: true}, resttest.New(time.Now))
	// Both take the other one for the leader.
	n.coordinator(t, "a", &post{hasty: true, leader: "b"}, resttest.NotLeading{})
	n.coordinator(t, "b", &post{hasty: true, leader: "a"}, resttest.NotLeading{})
	time.AfterFunc(100*time.Millisecond, func() { late.lead("l", false) })
	for at, want := range map[string]codes.Code{"nobody": codes.Unavailable, "wrong": codes.Unavailable, "a": codes.Unavailable, "late": codes.OK} {
		_, err := apiv1.NewResourceQuotasClient(dial(t, n[apiOf(at)], adminSecret)).List(t.Context(), new(apiv1.ListRequest))
		if status.Code(err) != want {
			t.Errorf("%s: %v, want %v", at, err, want)
		}
	}
}
