package integration

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

func TestQuotaIsSetOverGRPCWithTheOperatorsToken(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	for whose, secret := range map[string]string{"no token": "", "a wrong token": "0123456789abcdef-wrong", "the cluster's token": clusterToken} {
		_, err := musterv1.NewQuotasClient(dial(t, c.grpc, secret)).ListQuotaTrees(soon(t), &musterv1.ListQuotaTreesRequest{})
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: %v, want Unauthenticated", whose, err)
		}
	}
	client := musterv1.NewQuotasClient(dial(t, c.grpc, adminToken))
	tree := &musterv1.QuotaTree{
		Metadata: &musterv1.ObjectMeta{Name: "Lab"},
		Spec:     []byte(`{"nodes":{"all":{"parent":"nil","quota":{"nvidia.com/gpu":8}},"nlp":{"parent":"all","quota":{"nvidia.com/gpu":2}}}}`),
	}
	if _, err := client.PutQuotaTree(soon(t), &musterv1.PutQuotaTreeRequest{Tree: tree, CreateOnly: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutQuotaTree(soon(t), &musterv1.PutQuotaTreeRequest{Tree: tree, CreateOnly: true}); status.Code(err) != codes.AlreadyExists {
		t.Errorf("the same again: %v, want AlreadyExists", err)
	}
	seen, err := c.client.QuotaTrees().Get(soon(t), "Lab")
	if err != nil || len(seen.Status.Nodes) != 2 || seen.Status.Nodes[1].Quota["nvidia.com/gpu"] != "2" {
		t.Errorf("REST shows %+v, %v", seen, err)
	}
	answer, err := client.TryQuota(soon(t), &musterv1.TryQuotaRequest{
		Consumer: []byte(`{"kind":"Consumer","spec":{"id":"c","trees":[{"treeName":"Lab","groupID":"nlp","request":{"nvidia.com/gpu":9}}]}}`),
	})
	if err != nil || answer.GetAdmitted() || len(answer.GetReasons()) == 0 {
		t.Errorf("a dry run of more than there is: %v, %v", answer, err)
	}
}
