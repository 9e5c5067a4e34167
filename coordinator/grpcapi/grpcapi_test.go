package grpcapi_test

import (
	"context"
	"net"
	"net/http"
	"strings"
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
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/test/resttest"
	"github.com/musterd/muster/wire"
)

const (
	clusterSecret = "0123456789abcdef0123456789abcdef"
	adminSecret   = "fedcba9876543210fedcba9876543210"
	tenantSecret  = "abcdefabcdefabcdefabcdefabcdefab"
)

// people knows an admin and the tenant ml-team.
type people struct{}

func (people) Authenticate(_ context.Context, token string) (service.Principal, error) {
	switch token {
	case adminSecret:
		return service.Principal{Name: "root", Admin: true}, nil
	case tenantSecret:
		return service.Principal{Name: "someone", Tenant: "ml-team"}, nil
	case "out of order":
		return service.Principal{}, api.Errorf(http.StatusServiceUnavailable, "ask again")
	}
	return service.Principal{}, context.Canceled
}

// serve starts the API of a cluster.
func serve(t *testing.T, cluster service.Service) *bufconn.Listener {
	t.Helper()
	return listening(t, (&grpcapi.API{Service: cluster, Authenticator: people{}}).NewServer().Server)
}

// listening starts a server for one test.
func listening(t *testing.T, server *grpc.Server) *bufconn.Listener {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { server.Stop(); <-done })
	return listener
}

func dial(t *testing.T, l *bufconn.Listener, secret string) *grpc.ClientConn {
	t.Helper()
	token, err := rpcauth.NewToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///test",
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(rpcauth.Credentials(token)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestQuotasOverGRPC(t *testing.T) {
	resttest.RunQuotas(t, func(t *testing.T) service.Quotas {
		return remote{dial(t, serve(t, resttest.New(time.Now)), adminSecret)}
	})
}

// broken fails in ways that a service should not.
type broken struct {
	service.Service
	err error
}

func (b broken) ListQuotaTrees(context.Context) (*api.QuotaTreeList, error) { return nil, b.err }

func TestRefusalsByTheirCode(t *testing.T) {
	for code, want := range map[int]codes.Code{
		400: codes.InvalidArgument, 401: codes.Unauthenticated, 403: codes.PermissionDenied, 404: codes.NotFound, 409: codes.Aborted,
		413: codes.ResourceExhausted, 422: codes.InvalidArgument, 429: codes.ResourceExhausted, 500: codes.Internal, 503: codes.Unavailable, 418: codes.Internal,
	} {
		refused := api.Errorf(code, "because of %d", code)
		l := serve(t, broken{err: refused})
		_, err := apiv1.NewQuotaTreesClient(dial(t, l, adminSecret)).List(t.Context(), &apiv1.ListRequest{})
		s := status.Convert(err)
		if s.Code() != want || s.Message() != refused.Message || wire.FromRefusal(err).Code != code {
			t.Errorf("%d: got %v %v, want %s", code, err, s.Details(), want)
		}
	}
	l := serve(t, broken{err: context.DeadlineExceeded})
	_, err := apiv1.NewQuotaTreesClient(dial(t, l, adminSecret)).List(t.Context(), &apiv1.ListRequest{})
	if want := "/muster.api.v1.QuotaTrees/List failed inside the coordinator; its log says why"; status.Code(err) != codes.Internal || status.Convert(err).Message() != want {
		t.Errorf("a fault: got %v, want %s", err, want)
	}
}

func TestWhatIsWrongIsRefusedByItsField(t *testing.T) {
	l := serve(t, resttest.New(time.Now))
	conn := dial(t, l, adminSecret)
	quotas, trees, ctx := apiv1.NewResourceQuotasClient(conn), apiv1.NewQuotaTreesClient(conn), t.Context()
	for name, c := range map[string]struct {
		call func() error
		want string
	}{
		"a limit in words": {func() error {
			_, err := quotas.Create(ctx, &apiv1.ResourceQuota{
				Metadata: &apiv1.ObjectMeta{Name: "q", Namespace: "a"}, Spec: &apiv1.ResourceQuotaSpec{Hard: map[string]string{"cpu": "all"}},
			})
			return err
		}, `spec.hard.cpu: quantity "all": not a number`},
		"no namespace": {func() error {
			_, err := quotas.Create(ctx, &apiv1.ResourceQuota{Metadata: &apiv1.ObjectMeta{Name: "q"}})
			return err
		}, "namespace: required"},
		"no message at all": {func() error {
			_, err := trees.Create(ctx, new(apiv1.QuotaTree))
			return err
		}, "metadata.name: required"},
		"a tree's name": {func() error {
			_, err := trees.Get(ctx, &apiv1.GetRequest{Name: "a/b"})
			return err
		}, `"a/b" is not one of a quota tree or forest`},
		"an object's name": {func() error {
			_, err := quotas.Get(ctx, &apiv1.GetRequest{Namespace: "a", Name: "../b"})
			return err
		}, `"../b" is not an RFC 1123 subdomain`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.call(); status.Code(err) != codes.InvalidArgument || !strings.Contains(status.Convert(err).Message(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
