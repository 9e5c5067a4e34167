package daemon_test

import (
	"context"
	"crypto/tls"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/pki"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/wire"
)

// storeCall is a call of the public API over gRPC.
type storeCall struct {
	name string
	// full is the code where the store has no space: 503, or a success.
	full int
	call func(context.Context, *grpc.ClientConn) error
}

func requirements() *apiv1.Requirements {
	return &apiv1.Requirements{Requests: map[string]string{"cpu": "1"}}
}

func storeCalls() []storeCall {
	named := &apiv1.GetRequest{Namespace: "default", Name: "a"}
	removed := func(name string) *apiv1.RemoveRequest {
		return &apiv1.RemoveRequest{Namespace: "default", Name: name}
	}
	return []storeCall{
		{"get an allocation", 200, func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewAllocationsClient(c).Get(ctx, named)
			return err
		}},
		{"create an allocation", 503, func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewAllocationsClient(c).Create(ctx, &apiv1.CreateAllocationRequest{Namespace: "default", Allocation: &apiv1.Allocation{
				Metadata: &apiv1.ObjectMeta{Name: "g"}, Spec: &apiv1.AllocationSpec{Resources: requirements()},
			}})
			return err
		}},
		{"delete an allocation", 200, func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewAllocationsClient(c).Delete(ctx, &apiv1.DeleteRequest{Namespace: "default", Name: "c"})
			return err
		}},
		{"cancel a job", 503, func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewJobsClient(c).Cancel(ctx, &apiv1.DeleteRequest{Namespace: "default", Name: "jc"})
			return err
		}},
		{"delete a job", 200, func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewJobsClient(c).Delete(ctx, &apiv1.DeleteRequest{Namespace: "default", Name: "jd"})
			return err
		}},
		{"cordon a node", 503, func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewNodesClient(c).Cordon(ctx, &apiv1.NodeRequest{Name: "n1"})
			return err
		}},
		{"create a tenant", 503, func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewTenantsClient(c).Create(ctx, &apiv1.Tenant{Metadata: &apiv1.ObjectMeta{Name: "t4"}})
			return err
		}},
		{"delete a quota", 200, func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewResourceQuotasClient(c).Delete(ctx, removed("qn3"))
			return err
		}},
		{"create a token", 503, func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewAccessTokensClient(c).Create(ctx, &apiv1.AccessToken{Spec: &apiv1.AccessTokenSpec{User: "bob", Role: "viewer"}})
			return err
		}},
		{"invite a host", 503, func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewBootstrapTokensClient(c).Create(ctx, &apiv1.BootstrapToken{Spec: &apiv1.BootstrapTokenSpec{Nodes: "n*"}})
			return err
		}},
		{"ban a node", 503, func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewNodeBansClient(c).Create(ctx, &apiv1.NodeBan{Metadata: &apiv1.ObjectMeta{Name: "n5"}, Spec: &apiv1.NodeBanSpec{Reason: "x"}})
			return err
		}},
	}
}

// judgeCalls makes all calls at the same time: each has the code and the details of REST.
func (s onStore) judgeCalls(t *testing.T, code func(storeCall) int, reason string) {
	t.Helper()
	token, err := rpcauth.NewToken(adminSecret)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(s.d.RESTAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(rpcauth.Credentials(token)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var wg sync.WaitGroup
	for _, c := range storeCalls() {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), answerLimit)
			defer cancel()
			got, want := &api.Status{Code: 200}, code(c)
			if err := c.call(ctx, conn); err != nil {
				got = wire.FromRefusal(err)
			}
			named := got.Reason == reason || reason == api.StoreNotAnswering && got.Reason == api.LeaderLost
			if got.Code != want || want == 503 && (!named || got.RetryAfterSeconds == 0) {
				t.Errorf("%s: %d %s %q, retry after %d s; want %d %s within %v", c.name, got.Code, got.Reason, got.Message, got.RetryAfterSeconds, want, reason, answerLimit)
			}
		})
	}
	wg.Wait()
}

// enrols asks for a certificate as a host does: the refusal is Unavailable, in time, with
// the fault.
func (s onStore) enrols(t *testing.T, invited api.BootstrapToken, says string) {
	t.Helper()
	key, err := pki.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	request, err := pki.NewRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(s.d.GRPCAddr(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+invited.Status.Token), answerLimit)
	defer cancel()
	_, err = musterv1.NewEnrollmentClient(conn).Enroll(ctx, &musterv1.EnrollRequest{Cluster: "test", NodeId: "n7", Csr: request})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), says) {
		t.Errorf("an enrolment: %v; want Unavailable within %v, with %q", err, answerLimit, says)
	}
}
