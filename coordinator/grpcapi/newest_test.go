package grpcapi

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/test/resttest"
)

// A get that shows the newest state alone refuses a resource_version: to ignore it would
// answer with another state than the caller asked for.
func TestGetsOfTheNewestStateRefuseAVersion(t *testing.T) {
	conn, err := grpc.NewClient("passthrough:///"+door(t, resttest.New(time.Now), nil), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	for name, get := range map[string]func(context.Context, *apiv1.GetRequest) error{
		"AccessTokens.Get": func(ctx context.Context, r *apiv1.GetRequest) error {
			r.Namespace, r.Name = "", "at-5d1f09c2ab"
			_, err := apiv1.NewAccessTokensClient(conn).Get(ctx, r)
			return err
		},
		"Allocations.ExplainQuota": func(ctx context.Context, r *apiv1.GetRequest) error {
			_, err := apiv1.NewAllocationsClient(conn).ExplainQuota(ctx, r)
			return err
		},
		"Jobs.ExplainQuota": func(ctx context.Context, r *apiv1.GetRequest) error {
			_, err := apiv1.NewJobsClient(conn).ExplainQuota(ctx, r)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := get(bearing(t, "admin"), &apiv1.GetRequest{Namespace: "ml", Name: "x", ResourceVersion: "7"})
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `resource_version="7": this call shows the newest state alone`) {
				t.Errorf("%v, want InvalidArgument with the field", err)
			}
		})
	}
}
