package grpcapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/test/resttest"
)

// Warnings come from the leader, through a follower too, and a client may keep a
// misspelt name.
func TestNamesOfResourcesOverGRPC(t *testing.T) {
	n := network{}
	n.coordinator(t, "l", &post{own: true}, resttest.New(time.Now))
	n.coordinator(t, "f", &post{leader: "l"}, resttest.NotLeading{})
	for name, c := range map[string]struct {
		at, resource string
		keep         bool
		code         codes.Code
		want         []string
	}{
		"a name of nothing":               {"l", "services", false, codes.OK, []string{"spec.hard.services: no node hands it out, so the amount in use is always 0"}},
		"a name of nothing by a follower": {"f", "services", false, codes.OK, []string{"spec.hard.services: no node hands it out, so the amount in use is always 0"}},
		"a typo":                          {"l", "cpus", false, codes.InvalidArgument, nil},
		"a typo by a follower":            {"f", "cpus", false, codes.InvalidArgument, nil},
		"a typo that a follower's call keeps": {"f", "cpus", true, codes.OK, []string{
			`spec.hard.cpus: no node hands it out, so the amount in use is always 0; is "cpu" meant?`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			client := apiv1.NewResourceQuotasClient(dial(t, n[apiOf(c.at)], adminSecret))
			ctx := t.Context()
			if c.keep {
				ctx = metadata.AppendToOutgoingContext(ctx, "muster-allow-unknown-resources", "true")
			}
			var header metadata.MD
			quota := &apiv1.ResourceQuota{
				Metadata: &apiv1.ObjectMeta{Name: fmt.Sprintf("q-%s-%s-%v", c.at, c.resource, c.keep), Namespace: "ml-team"},
				Spec:     &apiv1.ResourceQuotaSpec{Hard: map[string]string{c.resource: "1"}},
			}
			_, err := client.Create(ctx, quota, grpc.Header(&header))
			if status.Code(err) != c.code {
				t.Fatalf("got %v, want %v", err, c.code)
			}
			if diff := cmp.Diff(c.want, header.Get("muster-warning")); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
