package grpcapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/grpcapi"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/test/resttest"
)

// rateLimited checks the refusal of a call beyond the rate of a tenant.
func rateLimited(t *testing.T, err error, header metadata.MD) {
	t.Helper()
	refused := status.Convert(err)
	var retry *errdetails.RetryInfo
	for _, d := range refused.Details() {
		if r, is := d.(*errdetails.RetryInfo); is {
			retry = r
		}
	}
	if refused.Code() != codes.ResourceExhausted || refused.Message() != "Rate limit exceeded. Tenant 'ml-team' limited to 2 req/min." || retry == nil || retry.GetRetryDelay().AsDuration() < 25*time.Second {
		t.Errorf("got %v, retry after %v", err, retry)
	}
	if got := header.Get("x-ratelimit-limit"); len(got) != 1 || got[0] != "2" {
		t.Errorf("the metadata is %v", header)
	}
}

// listen serves a gRPC server for one test and returns a connection to it.
func listen(t *testing.T, server *grpc.Server, secret string) *grpc.ClientConn {
	t.Helper()
	return dial(t, listening(t, server), secret)
}

// Calls over gRPC spend the limit that requests over REST spend, streams as well.
func TestCallsBeyondTheRateAreRefused(t *testing.T) {
	few := func() *gate.Gate { return gate.New(&gate.Rates{Requests: 2}) }
	t.Run("calls and streams", func(t *testing.T) {
		public := &grpcapi.API{Service: resttest.New(time.Now), Authenticator: people{}, Gate: few()}
		conn := listen(t, public.NewServer().Server, tenantSecret)
		client := apiv1.NewNodesClient(conn)
		for range 2 {
			if _, err := client.List(t.Context(), &apiv1.ListRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		var header metadata.MD
		_, err := client.List(t.Context(), &apiv1.ListRequest{}, grpc.Header(&header))
		rateLimited(t, err, header)
		stream, err := client.Watch(t.Context(), &apiv1.WatchRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		header, _ = stream.Header()
		rateLimited(t, err, header)
	})
	t.Run("a call that another coordinator has counted", func(t *testing.T) {
		forward := service.NewForward("c-1", &post{own: true}, 0, nil).ProveBy("the admin's")
		public := &grpcapi.API{Service: resttest.New(time.Now), Authenticator: people{}, Gate: few(), Relay: &grpcapi.Relay{Forward: forward, Revision: func() int64 { return 1 }}}
		client := apiv1.NewQuotaTreesClient(listen(t, public.NewServer().Server, tenantSecret))
		list := func(ctx context.Context, o ...grpc.CallOption) error {
			_, err := client.List(ctx, new(apiv1.ListRequest), o...)
			return err
		}
		for range 2 {
			if err := list(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var header metadata.MD
		err := list(t.Context(), grpc.Header(&header))
		rateLimited(t, err, header)
		forged := metadata.AppendToOutgoingContext(t.Context(), "muster-forwarded-by", "c-2", "muster-forward-proof", forward.HopProof(service.Hop{Authorization: "Bearer " + tenantSecret}))
		if err := list(forged); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("the proof of c-1 in the name of c-2: %v", err)
		}
		proven := metadata.AppendToOutgoingContext(t.Context(), "muster-forwarded-by", "c-1", "muster-forward-proof", forward.HopProof(service.Hop{Authorization: "Bearer " + tenantSecret}))
		if err := list(proven); err != nil {
			t.Errorf("a call that a coordinator has counted: %v", err)
		}
	})
}

// Members cost units over gRPC, too.
func TestMembersCostUnitsOverGRPC(t *testing.T) {
	public := &grpcapi.API{Service: resttest.New(time.Now), Authenticator: people{}, Gate: gate.New(&gate.Rates{Requests: gate.DefaultRequests})}
	client := apiv1.NewJobsClient(listen(t, public.NewServer().Server, tenantSecret))
	members := int32(4000)
	for i := range 20 {
		job := &apiv1.Job{Metadata: &apiv1.ObjectMeta{Name: fmt.Sprint("j", i)}, Spec: &apiv1.JobSpec{Parallelism: &members, Template: &apiv1.Template{Spec: &apiv1.AllocationSpec{
			Resources: &apiv1.Requirements{Requests: map[string]string{"cpu": "1"}},
		}}}}
		_, err := client.Create(t.Context(), &apiv1.CreateJobRequest{Namespace: "ml-team", Job: job})
		if status.Code(err) == codes.ResourceExhausted {
			if i < 2 || i > 5 || !strings.Contains(err.Error(), "share of work") {
				t.Errorf("job %d of 4,000 members: %v", i, err)
			}
			return
		}
	}
	t.Error("20 jobs of 4,000 members are let in")
}
