package grpcapi_test

import (
	"context"
	"log/slog"
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
	musterv1 "github.com/musterd/muster/proto/muster/v1"
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

// serve starts a server over quotas, beside which the cluster's own service
// would stand.
func serve(t *testing.T, quotas service.Quotas, guards ...rpcauth.Guard) *bufconn.Listener {
	t.Helper()
	token, err := rpcauth.NewToken(clusterSecret)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(rpcauth.ServerOptions(token, guards...)...)
	musterv1.RegisterQuotasServer(server, &grpcapi.Server{Quotas: quotas, Logger: slog.New(slog.DiscardHandler)})
	musterv1.RegisterCoordinatorServer(server, musterv1.UnimplementedCoordinatorServer{})
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
		l := serve(t, resttest.New(time.Now), grpcapi.Guard(people{}))
		return remote{musterv1.NewQuotasClient(dial(t, l, adminSecret))}
	})
}

func TestWhoMayCallWhat(t *testing.T) {
	cluster := resttest.New(time.Now)
	if _, err := cluster.PutQuotaTree(t.Context(), &api.QuotaTree{Kind: api.KindQuotaTree, Metadata: api.ObjectMeta{Name: "Lab"}, Spec: []byte(`{"nodes":{"all":{"quota":{"cpu":1}}}}`)}, true); err != nil {
		t.Fatal(err)
	}
	l := serve(t, cluster, grpcapi.Guard(people{}))
	call := func(secret string, f func(context.Context, musterv1.QuotasClient) error) codes.Code {
		return status.Code(f(t.Context(), musterv1.NewQuotasClient(dial(t, l, secret))))
	}
	key := func(namespace, name string) *musterv1.QuotaKey {
		return &musterv1.QuotaKey{Namespace: namespace, Name: name}
	}
	for name, c := range map[string]struct {
		call                   func(context.Context, musterv1.QuotasClient) error
		admin, tenant, cluster codes.Code
	}{
		"trees are seen by all": {func(ctx context.Context, c musterv1.QuotasClient) error {
			_, err := c.ListQuotaTrees(ctx, &musterv1.ListQuotaTreesRequest{})
			return err
		}, codes.OK, codes.OK, codes.Unauthenticated},
		"trees are changed by admins": {func(ctx context.Context, c musterv1.QuotasClient) error {
			_, err := c.DeleteQuotaTree(ctx, key("", "T"))
			return err
		}, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated},
		"trees are reclaimed by admins": {func(ctx context.Context, c musterv1.QuotasClient) error {
			_, err := c.ReclaimQuota(ctx, &musterv1.ReclaimQuotaRequest{Tree: "T", DryRun: true})
			return err
		}, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated},
		"limits are set by admins": {func(ctx context.Context, c musterv1.QuotasClient) error {
			_, err := c.UpdateResourceQuota(ctx, &musterv1.ResourceQuota{Metadata: &musterv1.ObjectMeta{Name: "q", Namespace: "ml-team"}})
			return err
		}, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated},
		"the own namespace is seen": {func(ctx context.Context, c musterv1.QuotasClient) error {
			_, err := c.ListResourceQuotas(ctx, &musterv1.ListResourceQuotasRequest{Namespace: "ml-team"})
			return err
		}, codes.OK, codes.OK, codes.Unauthenticated},
		"another's is not": {func(ctx context.Context, c musterv1.QuotasClient) error {
			_, err := c.GetQuotaBinding(ctx, key("", "other"))
			return err
		}, codes.NotFound, codes.NotFound, codes.Unauthenticated},
		"all namespaces are for admins": {func(ctx context.Context, c musterv1.QuotasClient) error {
			_, err := c.ListResourceQuotas(ctx, &musterv1.ListResourceQuotasRequest{})
			return err
		}, codes.OK, codes.PermissionDenied, codes.Unauthenticated},
		"a dry run is free": {func(ctx context.Context, c musterv1.QuotasClient) error {
			_, err := c.TryQuota(ctx, &musterv1.TryQuotaRequest{Consumer: []byte(`{"kind":"Consumer","spec":{"id":"x","trees":[{"treeName":"Lab","groupID":"all","request":{"cpu":1}}]}}`)})
			return err
		}, codes.OK, codes.OK, codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b, n := call(adminSecret, c.call), call(tenantSecret, c.call), call(clusterSecret, c.call); a != c.admin || b != c.tenant || n != c.cluster {
				t.Errorf("an admin gets %s, a tenant %s, an agent %s; want %s, %s and %s", a, b, n, c.admin, c.tenant, c.cluster)
			}
		})
	}
	_, err := musterv1.NewCoordinatorClient(dial(t, l, adminSecret)).Resolve(t.Context(), &musterv1.ResolveRequest{})
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("an admin's token with the agents' service: %v, want it refused", err)
	}
}

func TestWithoutAGuardNobodyIsLetIn(t *testing.T) {
	l := serve(t, resttest.New(time.Now))
	_, err := musterv1.NewQuotasClient(dial(t, l, clusterSecret)).ListQuotaTrees(t.Context(), &musterv1.ListQuotaTreesRequest{})
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("got %v", err)
	}
}

// broken fails in ways that a service should not.
type broken struct {
	service.Quotas
	err error
}

func (b broken) ListQuotaTrees(context.Context) (*api.QuotaTreeList, error) { return nil, b.err }

func TestRefusalsByTheirCode(t *testing.T) {
	for code, want := range map[int]codes.Code{
		400: codes.InvalidArgument, 401: codes.Unauthenticated, 403: codes.PermissionDenied, 404: codes.NotFound, 409: codes.Aborted,
		413: codes.ResourceExhausted, 422: codes.InvalidArgument, 429: codes.ResourceExhausted, 500: codes.Internal, 503: codes.Unavailable, 418: codes.Internal,
	} {
		refused := api.Errorf(code, "because of %d", code)
		l := serve(t, broken{err: refused}, grpcapi.Guard(people{}))
		_, err := musterv1.NewQuotasClient(dial(t, l, adminSecret)).ListQuotaTrees(t.Context(), &musterv1.ListQuotaTreesRequest{})
		s := status.Convert(err)
		if s.Code() != want || s.Message() != refused.Message || wire.FromRefusal(err).Code != code {
			t.Errorf("%d: got %v %v, want %s", code, err, s.Details(), want)
		}
	}
	l := serve(t, broken{err: context.DeadlineExceeded}, grpcapi.Guard(people{}))
	_, err := musterv1.NewQuotasClient(dial(t, l, adminSecret)).ListQuotaTrees(t.Context(), &musterv1.ListQuotaTreesRequest{})
	if want := "ListQuotaTrees failed inside the coordinator; its log says why"; status.Code(err) != codes.Internal || status.Convert(err).Message() != want {
		t.Errorf("a fault: got %v, want %s", err, want)
	}
}

func TestWhatIsWrongIsRefusedByItsField(t *testing.T) {
	l := serve(t, resttest.New(time.Now), grpcapi.Guard(people{}))
	client := musterv1.NewQuotasClient(dial(t, l, adminSecret))
	ctx := t.Context()
	for name, c := range map[string]struct {
		call func() error
		want string
	}{
		"a limit in words": {func() error {
			_, err := client.CreateResourceQuota(ctx, &musterv1.ResourceQuota{Metadata: &musterv1.ObjectMeta{Name: "q", Namespace: "a"}, Hard: map[string]string{"cpu": "all"}})
			return err
		}, `spec.hard.cpu: quantity "all": not a number`},
		"no namespace": {func() error {
			_, err := client.CreateResourceQuota(ctx, &musterv1.ResourceQuota{Metadata: &musterv1.ObjectMeta{Name: "q"}})
			return err
		}, `namespace: "" is not an RFC 1123 label`},
		"no message at all": {func() error {
			_, err := client.PutQuotaTree(ctx, &musterv1.PutQuotaTreeRequest{})
			return err
		}, "metadata.name: required"},
		"a spec that is no JSON": {func() error {
			_, err := client.PutQuotaTree(ctx, &musterv1.PutQuotaTreeRequest{Tree: &musterv1.QuotaTree{Metadata: &musterv1.ObjectMeta{Name: "T"}, Spec: []byte(`{"nodes"`)}})
			return err
		}, "spec: "},
		"a field twice": {func() error {
			_, err := client.PutQuotaTree(ctx, &musterv1.PutQuotaTreeRequest{Tree: &musterv1.QuotaTree{Metadata: &musterv1.ObjectMeta{Name: "T"}, Spec: []byte(`{"nodes":{},"nodes":{}}`)}})
			return err
		}, "spec.nodes: the key is given twice"},
		"a tree's name": {func() error {
			_, err := client.GetQuotaTree(ctx, &musterv1.QuotaKey{Name: "a/b"})
			return err
		}, `name: "a/b" is not one of a quota tree or forest`},
		"an object's name": {func() error {
			_, err := client.GetResourceQuota(ctx, &musterv1.QuotaKey{Namespace: "a", Name: "../b"})
			return err
		}, `name: "../b" is not an RFC 1123 subdomain`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.call(); status.Code(err) != codes.InvalidArgument || !strings.Contains(status.Convert(err).Message(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
