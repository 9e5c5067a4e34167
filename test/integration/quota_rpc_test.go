package integration

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// spec is JSON as a field of a message has it.
func spec(t *testing.T, text string) *structpb.Struct {
	t.Helper()
	s := new(structpb.Struct)
	if err := s.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestQuotaIsSetOverGRPCWithTheOperatorsToken(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	for whose, secret := range map[string]string{"no token": "", "a wrong token": "0123456789abcdef-wrong", "the cluster's token": clusterToken} {
		_, err := apiv1.NewQuotaTreesClient(dial(t, c.rest, secret)).List(soon(t), new(apiv1.ListRequest))
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: %v, want Unauthenticated", whose, err)
		}
	}
	conn := dial(t, c.rest, adminToken)
	trees := apiv1.NewQuotaTreesClient(conn)
	tree := &apiv1.QuotaTree{
		Metadata: &apiv1.ObjectMeta{Name: "Lab"},
		Spec:     spec(t, `{"nodes":{"all":{"parent":"nil","quota":{"nvidia.com/gpu":8}},"nlp":{"parent":"all","quota":{"nvidia.com/gpu":2}}}}`),
	}
	made, err := trees.Create(soon(t), tree)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trees.Create(soon(t), tree); status.Code(err) != codes.AlreadyExists {
		t.Errorf("the same again: %v, want AlreadyExists", err)
	}
	seen, err := c.client.QuotaTrees().Get(soon(t), "Lab")
	if err != nil || len(seen.Status.Nodes) != 2 || seen.Status.Nodes[1].Quota["nvidia.com/gpu"] != "2" {
		t.Errorf("REST shows %+v, %v", seen, err)
	}
	answer, err := trees.TryConsumer(soon(t), &apiv1.Consumer{Kind: "Consumer", Spec: &apiv1.ConsumerSpec{
		Id: "c", Trees: []*apiv1.ConsumerDemand{{TreeName: "Lab", GroupId: "nlp", Request: map[string]string{"nvidia.com/gpu": "9"}}},
	}})
	if err != nil || answer.GetAdmitted() || len(answer.GetReasons()) == 0 {
		t.Errorf("a dry run of more than there is: %v, %v", answer, err)
	}
	// Every change of quota over gRPC knows maintenance, warnings and preconditions.
	if _, err := apiv1.NewQuotaModesClient(conn).Patch(soon(t), &apiv1.QuotaModePatch{Mode: "Maintenance", Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	var header metadata.MD
	if _, err := trees.Delete(soon(t), &apiv1.RemoveRequest{Name: "Lab", Preconditions: &apiv1.Preconditions{ResourceVersion: "1"}}, grpc.Header(&header)); status.Code(err) != codes.Aborted {
		t.Errorf("deleted at another version than %s: %v", made.GetMetadata().GetResourceVersion(), err)
	}
	if warnings := strings.Join(header.Get("muster-warning"), " "); !strings.Contains(warnings, "Maintenance") && !strings.Contains(warnings, "maintenance") {
		t.Errorf("the warnings are %q", warnings)
	}
}

// The port of agents has no service for people: an operator's token opens nothing there,
// and the quota service of earlier versions is gone for members of the cluster, too.
func TestThePortOfAgentsServesNoPeople(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	for whose, secret := range map[string]string{"an operator's": adminToken, "the cluster's": clusterToken} {
		err := dial(t, c.grpc, secret).Invoke(soon(t), "/muster.v1.Quotas/ListQuotaTrees", new(emptypb.Empty), new(emptypb.Empty))
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("quota by %s token: %v", whose, err)
		}
	}
	if _, err := musterv1.NewCoordinatorClient(dial(t, c.grpc, adminToken)).Resolve(soon(t), new(musterv1.ResolveRequest)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a call of agents by an operator's token: %v", err)
	}
}
