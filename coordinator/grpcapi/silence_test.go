package grpcapi_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/api"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/test/resttest"
)

// deaf makes addresses that take connections and swallow each byte.
func (n network) deaf(t *testing.T, address string) {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	n[address], n[apiOf(address)] = l, l
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
}

// stopped is a coordinator that takes calls and answers none.
type stopped struct {
	musterv1.UnimplementedCoordinatorServer
	apiv1.UnimplementedResourceQuotasServer
}

func (stopped) Evict(ctx context.Context, _ *musterv1.EvictAllocationRequest) (*musterv1.EvictAllocationResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (stopped) List(ctx context.Context, _ *apiv1.ListRequest) (*apiv1.ResourceQuotaList, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// stopped makes the addresses of such a coordinator.
func (n network) stopped(t *testing.T, address string) {
	t.Helper()
	server := grpc.NewServer()
	musterv1.RegisterCoordinatorServer(server, stopped{})
	apiv1.RegisterResourceQuotasServer(server, stopped{})
	l := bufconn.Listen(1 << 16)
	n[address], n[apiOf(address)] = l, l
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
}

// TestNoCallThroughAFollowerThatIsCutOffWaitsForLong: an answer comes after 2 s
// and tells the truth about the leader, which still leads.
func TestNoCallThroughAFollowerThatIsCutOffWaitsForLong(t *testing.T) {
	for name, c := range map[string]struct {
		leader func(network, *testing.T, string)
		evict  bool
		want   time.Duration
		reason string
	}{
		"a read that is swallowed":               {network.deaf, false, 2 * time.Second, api.NotLeader},
		"an eviction that is swallowed":          {network.deaf, true, 2 * time.Second, api.NotLeader},
		"a read that a stopped leader takes":     {network.stopped, false, 2 * time.Second, api.NotLeader},
		"an eviction that a stopped leader took": {network.stopped, true, 2 * time.Second, api.LeaderUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := network{}
				c.leader(n, t, "l")
				n.coordinator(t, "f", &post{leader: "l"}, resttest.NotLeading{})
				var err error
				at := " at l "
				began := time.Now()
				if c.evict {
					_, err = musterv1.NewCoordinatorClient(dial(t, n["f"], clusterSecret)).Evict(t.Context(), &musterv1.EvictAllocationRequest{Allocation: "default/a"})
				} else {
					at = " at l-api "
					_, err = apiv1.NewResourceQuotasClient(dial(t, n[apiOf("f")], adminSecret)).List(t.Context(), new(apiv1.ListRequest))
				}
				if took := time.Since(began); took < c.want || took > c.want+100*time.Millisecond { // of the bubble's clock
					t.Errorf("answered after %s, want %s", took, c.want)
				}
				if status.Code(err) != codes.Unavailable || reasonOf(err) != c.reason || !strings.Contains(err.Error(), at) || strings.Contains(err.Error(), "lost") {
					t.Errorf("reason %q: %v", reasonOf(err), err)
				}
				time.Sleep(5 * time.Second) // until what was dropped is closed
			})
		})
	}
}

func reasonOf(err error) string {
	for _, d := range status.Convert(err).Details() {
		if r, ok := d.(*musterv1.Refusal); ok {
			return r.GetReason()
		}
	}
	return ""
}
