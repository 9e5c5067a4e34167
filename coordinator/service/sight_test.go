package service_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

// spaces are namespaces of two tenants.
var spaces = service.Access{TenantOf: func(namespace string) resource.TenantID {
	tenant, _, _ := strings.Cut(namespace, "-")
	return resource.TenantID(tenant)
}}

func TestACallerSeesTheNamesOfItsOwnWork(t *testing.T) {
	work := []string{"ml/a", "ml-dev/b", "speech/c", "speech-dev/alloc/d/0"}
	orphans := api.Condition{Type: "OrphanProcesses", Status: "True", Message: "GPU-1: 4711 secret-model"}
	pods := api.Condition{Type: "KubeletPool", Status: "True", Message: "muster.io/gpu: 1; GPU-1: secret-ns/pod/main"}
	for who, c := range map[string]struct {
		caller  service.Principal
		seen    []string
		others  int
		orphans string
	}{
		"an administrator":           {service.Principal{Admin: true}, work, 0, orphans.Message},
		"a viewer of the cluster":    {service.Principal{Grants: []service.Grant{{Role: service.Viewer}}}, work, 0, orphans.Message},
		"an operator":                {service.Principal{Grants: []service.Grant{{Role: service.Operator}}}, work, 0, orphans.Message},
		"an editor of a tenant":      {service.Principal{Tenant: "ml"}, []string{"ml/a", "ml-dev/b"}, 2, ""},
		"a viewer of one namespace":  {service.Principal{Grants: []service.Grant{{Role: service.Viewer, Tenant: "ml", Namespaces: []string{"ml-dev"}}}}, []string{"ml-dev/b"}, 3, ""},
		"a viewer of two tenants":    {service.Principal{Grants: []service.Grant{{Role: service.Viewer, Tenant: "ml"}, {Role: service.Viewer, Tenant: "speech"}}}, work, 0, ""},
		"a host without a principal": {service.Principal{}, nil, 4, ""},
	} {
		t.Run(who, func(t *testing.T) {
			sight := spaces.SightOf(c.caller)
			n := sight.Node(&api.Node{Status: api.NodeStatus{Allocations: work, Conditions: []api.Condition{{Type: "Ready", Message: "m"}, orphans, pods}, Kubelet: &api.KubeletStatus{}}})
			if (n.Status.Kubelet != nil) != (c.orphans != "") {
				t.Errorf("the kubelet's pool is seen: %t", n.Status.Kubelet != nil)
			}
			if diff := cmp.Diff(c.seen, n.Status.Allocations); diff != "" || n.Status.OtherAllocations != c.others {
				t.Errorf("a node: %d others, want %d; %s", n.Status.OtherAllocations, c.others, diff)
			}
			if got := n.Status.Conditions; got[0].Message != "m" || strings.Contains(got[1].Message, "secret") != (c.orphans != "") || strings.Contains(got[2].Message, "secret") != (c.orphans != "") {
				t.Errorf("conditions %+v", got)
			}
			tree := sight.QuotaTree(&api.QuotaTree{Status: api.QuotaTreeStatus{Detached: work, Nodes: []api.QuotaNodeStatus{{Name: "all", Consumers: work}}}})
			if diff := cmp.Diff(c.seen, tree.Status.Nodes[0].Consumers); diff != "" || tree.Status.Nodes[0].OtherConsumers != c.others {
				t.Errorf("a quota tree: %d others, want %d; %s", tree.Status.Nodes[0].OtherConsumers, c.others, diff)
			}
			if diff := cmp.Diff(c.seen, tree.Status.Detached); diff != "" || tree.Status.OtherDetached != c.others {
				t.Errorf("detached: %d others, want %d; %s", tree.Status.OtherDetached, c.others, diff)
			}
			if n, q := sight.Node(nil), sight.QuotaTree(nil); n != nil || q != nil {
				t.Error("nothing became something")
			}
		})
	}
	if work[0] != "ml/a" || orphans.Message != "GPU-1: 4711 secret-model" {
		t.Error("the original was changed")
	}
}

// A caller sees a name if and only if the caller may read the namespace, and the names
// and the number together are all work.
func TestSightAgreesWithTheRights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tenant, namespace := rapid.SampledFrom([]string{"", "ml", "speech"}), rapid.SampledFrom([]string{"ml", "ml-dev", "speech", "speech-dev", ""})
		var p service.Principal
		for range rapid.IntRange(0, 3).Draw(t, "grants") {
			g := service.Grant{Role: rapid.SampledFrom([]service.Role{service.Viewer, service.Editor, service.TenantAdmin, service.Operator, service.Admin, service.Node}).Draw(t, "role"), Tenant: resource.TenantID(tenant.Draw(t, "tenant"))}
			if g.Tenant != "" && rapid.Bool().Draw(t, "narrow") {
				g.Namespaces = []string{"ml-dev"}
			}
			p.Grants = append(p.Grants, g)
		}
		var work []string
		for range rapid.IntRange(0, 6).Draw(t, "work") {
			work = append(work, namespace.Draw(t, "namespace")+"/w")
		}
		n := spaces.SightOf(p).Node(&api.Node{Status: api.NodeStatus{Allocations: work}})
		var want []string
		for _, name := range work {
			of, _, _ := strings.Cut(name, "/")
			if spaces.Authorize(p, service.VerbGet, service.KindAllocations, of, "w") == nil {
				want = append(want, name)
			}
		}
		if diff := cmp.Diff(want, n.Status.Allocations); diff != "" || len(want)+n.Status.OtherAllocations != len(work) {
			t.Fatalf("%d others of %d; %s", n.Status.OtherAllocations, len(work), diff)
		}
	})
}

// The use of each user is for those who run the namespace; others see the own use.
func TestACallerSeesTheOwnUse(t *testing.T) {
	users := []api.UserUsage{{User: "ada"}, {User: "bob"}}
	for who, c := range map[string]struct {
		caller service.Principal
		want   []api.UserUsage
	}{
		"an administrator":               {service.Principal{Name: "root", Admin: true}, users},
		"an operator":                    {service.Principal{Name: "op", Grants: []service.Grant{{Role: service.Operator}}}, users},
		"a tenant-admin of the tenant":   {service.Principal{Name: "carla", Grants: []service.Grant{{Role: service.TenantAdmin, Tenant: "ml"}}}, users},
		"a tenant-admin of another one":  {service.Principal{Name: "carla", Grants: []service.Grant{{Role: service.TenantAdmin, Tenant: "speech"}, {Role: service.Viewer, Tenant: "ml"}}}, nil},
		"a user":                         {service.Principal{Name: "ada", Tenant: "ml"}, users[:1]},
		"a user who has nothing":         {service.Principal{Name: "eve", Tenant: "ml"}, nil},
		"a viewer of the whole cluster":  {service.Principal{Name: "bob", Grants: []service.Grant{{Role: service.Viewer}}}, users[1:]},
		"a request without a principal.": {service.Principal{}, nil},
	} {
		t.Run(who, func(t *testing.T) {
			q := &api.ResourceQuota{Metadata: api.ObjectMeta{Namespace: "ml-dev"}, Status: api.ResourceQuotaStatus{Users: users}}
			got := spaces.SightOf(c.caller).ResourceQuota(q).Status.Users
			if len(got) != len(c.want) || len(got) > 0 && got[0].User != c.want[0].User {
				t.Errorf("sees %+v, want %+v", got, c.want)
			}
			if len(q.Status.Users) != 2 {
				t.Errorf("the quota itself has %+v", q.Status.Users)
			}
		})
	}
	if q := spaces.SightOf(service.Principal{}).ResourceQuota(nil); q != nil {
		t.Error("nothing became something")
	}
}
