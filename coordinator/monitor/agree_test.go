package monitor_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/monitor"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
)

var _ monitor.Source = (*resttest.Cluster)(nil)

// A real leader places, queues and ends work, and its figures say what the
// documents of the API say.
func TestFiguresAgreeWithTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 4, Memory: 8 << 30, GPUs: 2}, resttest.Node{Name: "n2", CPUs: 2, Memory: 4 << 30})
		create := func(namespace, name, requests string) {
			t.Helper()
			document := []byte(`{"metadata":{"name":"` + name + `"},"spec":{"resources":{"requests":{` + requests + `}}}}`)
			doc, status := api.DecodeAllocation(document)
			if status != nil {
				t.Fatal(status)
			}
			if _, err := c.CreateAllocation(t.Context(), service.Create{Namespace: namespace, Document: document, Wait: time.Minute}, doc); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.CreateResourceQuota(t.Context(), &api.ResourceQuota{
			Metadata: api.ObjectMeta{Namespace: "ml", Name: "team"}, Spec: api.ResourceQuotaSpec{Hard: map[resource.Name]string{resource.CPU: "3"}},
		}); err != nil {
			t.Fatal(err)
		}
		create("ml", "a", `"cpu":"1500m","nvidia.com/gpu":"1"`)
		create("ml", "b", `"cpu":"1","memory":"1Gi"`)
		if _, err := c.SetUnschedulable(t.Context(), "n2", true); err != nil {
			t.Fatal(err)
		}
		f := c.Figures()
		nodes, err := c.ListNodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Nodes) != len(nodes.Items) {
			t.Fatalf("%d nodes, the API lists %d", len(f.Nodes), len(nodes.Items))
		}
		for i, n := range nodes.Items {
			got := f.Nodes[i]
			free := map[resource.Name]string{
				resource.CPU: resource.FormatAmount(resource.CPU, int64(got.Free.CPU)), resource.Memory: resource.FormatAmount(resource.Memory, int64(got.Free.Memory)),
			}
			for name, want := range free {
				if fmt.Sprint(n.Status.Available[name]) != want {
					t.Errorf("%s: %s free of %s, the API says %v", got.ID, want, name, n.Status.Available[name])
				}
			}
			if got.Conditions.Ready != (n.Status.Phase == "Ready" && !n.Spec.Unschedulable) || got.Conditions.Cordoned != n.Spec.Unschedulable {
				t.Errorf("%s: conditions %+v, the API says %s and unschedulable %t", got.ID, got.Conditions, n.Status.Phase, n.Spec.Unschedulable)
			}
		}
		want := lead.Figures{
			Units:     map[lead.UnitKind]int{{Namespace: "ml", Phase: api.Running}: 2},
			Allocated: map[string]cluster.Amounts{"ml": {CPU: 2500, Memory: 1 << 30, GPU: 1000}},
			Waiting:   map[string]int{},
			Quotas:    []lead.QuotaFigures{{Namespace: "ml", Quota: "team", Resource: resource.CPU, Hard: 3000, Used: 2500}},
		}
		got := lead.Figures{Units: f.Units, Allocated: f.Allocated, Waiting: f.Waiting, Quotas: f.Quotas, Trees: f.Trees}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("figures (-want +got):\n%s", diff)
		}
		devices, freeGPU := 0, resource.Milli(0)
		for _, g := range f.Models {
			devices, freeGPU = devices+g.Devices, freeGPU+g.Free
		}
		if devices != 2 || freeGPU != 1000 || f.Nodes[0].GPUs.Free != 1000 {
			t.Errorf("models %+v, node %+v: want 2 devices of which 1 is free", f.Models, f.Nodes[0].GPUs)
		}
	})
}
