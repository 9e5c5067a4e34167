package audit

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// step is a change over REST, and the entry that it leaves: verb, resource, namespace and
// name.
type step struct {
	method, path, body string
	verb, resource     string
	namespace, name    string
}

const (
	gpu      = `"resources":{"requests":{"nvidia.com/gpu":"1","cpu":"1"}}`
	tooLarge = `"resources":{"requests":{"nvidia.com/gpu":"8","cpu":"1"}},"scheduling":{"nodeSelector":{"never":"there"}}`
)

// steps are the changes of all kinds, in an order in which each is possible.
func steps() []step {
	return []step{
		{"POST", "/tenants", `{"kind":"Tenant","metadata":{"name":"vision"},"spec":{}}`, "create", "tenants", "", "vision"},
		{"PUT", "/tenants/vision", `{"kind":"Tenant","metadata":{"name":"vision","labels":{"a":"b"}},"spec":{}}`, "update", "tenants", "", "vision"},
		{"PATCH", "/tenants/vision", `{"metadata":{"labels":{"a":"c"}}}`, "patch", "tenants", "", "vision"},
		{"POST", "/priorityclasses", `{"kind":"PriorityClass","metadata":{"name":"release"},"spec":{"value":5}}`, "create", "priorityclasses", "", "release"},
		{"PATCH", "/priorityclasses/release", `{"spec":{"value":6}}`, "patch", "priorityclasses", "", "release"},
		{"DELETE", "/priorityclasses/release", "", "delete", "priorityclasses", "", "release"},
		{"POST", "/queues", `{"kind":"Queue","metadata":{"name":"night"},"spec":{"state":"Hold"}}`, "create", "queues", "", "night"},
		{"PATCH", "/queues/night", `{"spec":{"state":"Open"}}`, "patch", "queues", "", "night"},
		{"DELETE", "/queues/night", "", "delete", "queues", "", "night"},
		{"POST", "/namespaces", `{"kind":"Namespace","metadata":{"name":"dev"},"spec":{"tenant":"vision"}}`, "create", "namespaces", "dev", "dev"},
		{"PATCH", "/namespaces/dev", `{"metadata":{"labels":{"a":"c"}}}`, "patch", "namespaces", "dev", "dev"},
		{"POST", "/namespaces/dev/resourcequotas", `{"kind":"ResourceQuota","metadata":{"name":"limit"},"spec":{"hard":{"requests.cpu":"64"}}}`, "create", "resourcequotas", "dev", "limit"},
		{"PUT", "/namespaces/dev/resourcequotas/limit", `{"kind":"ResourceQuota","metadata":{"name":"limit"},"spec":{"hard":{"requests.cpu":"65"}}}`, "update", "resourcequotas", "dev", "limit"},
		{"PATCH", "/namespaces/dev/resourcequotas/limit", `{"spec":{"hard":{"requests.cpu":"66"}}}`, "patch", "resourcequotas", "dev", "limit"},
		{"POST", "/quotatrees", `{"kind":"QuotaTree","metadata":{"name":"company"},"spec":{"nodes":{"all":{"quota":{"nvidia.com/gpu":16,"cpu":1000}}}}}`, "create", "quotatrees", "", "company"},
		{"PATCH", "/quotatrees/company", `{"metadata":{"labels":{"a":"c"}}}`, "patch", "quotatrees", "", "company"},
		{"POST", "/quotaforests", `{"kind":"QuotaForest","metadata":{"name":"all"},"spec":{"trees":["company"]}}`, "create", "quotaforests", "", "all"},
		{"PATCH", "/quotaforests/all", `{"metadata":{"labels":{"a":"c"}}}`, "patch", "quotaforests", "", "all"},
		{"POST", "/quotabindings", `{"kind":"QuotaBinding","metadata":{"name":"dev"},"spec":{"forest":"all","groups":{"company":"all"}}}`, "create", "quotabindings", "dev", "dev"},
		{"PATCH", "/quotabindings/dev", `{"metadata":{"labels":{"a":"c"}}}`, "patch", "quotabindings", "dev", "dev"},
		{"POST", "/namespaces/dev/allocations?wait=20s", `{"metadata":{"name":"runs"},"spec":{` + gpu + `}}`, "create", "allocations", "dev", "runs"},
		{"POST", "/namespaces/dev/allocations", `{"metadata":{"name":"waits"},"spec":{` + tooLarge + `}}`, "create", "allocations", "dev", "waits"},
		{"PATCH", "/namespaces/dev/allocations/waits", `{"metadata":{"labels":{"a":"b"}}}`, "patch", "allocations", "dev", "waits"},
		{"DELETE", "/namespaces/dev/allocations/waits", "", "delete", "allocations", "dev", "waits"},
		{"DELETE", "/namespaces/dev/allocations/runs", `{"gracePeriodSeconds":0}`, "delete", "allocations", "dev", "runs"},
		{"POST", "/namespaces/dev/allocations?wait=20s", `{"metadata":{"name":"victim"},"spec":{` + gpu + `}}`, "create", "allocations", "dev", "victim"},
		{"POST", "/namespaces/dev/preemptions", `{"targetAllocation":"victim","reason":"drill","gracePeriodSeconds":0}`, "create", "preemptions", "dev", "victim"},
		{"POST", "/namespaces/dev/allocations", `{"metadata":{"name":"bulk","labels":{"x":"y"}},"spec":{` + tooLarge + `}}`, "create", "allocations", "dev", "bulk"},
		{"POST", "/namespaces/dev/allocations", `{"metadata":{"name":"bulk2","labels":{"x":"y"}},"spec":{` + tooLarge + `}}`, "create", "allocations", "dev", "bulk2"},
		{"DELETE", "/namespaces/dev/allocations?labelSelector=x%3Dy", "", "delete", "allocations", "dev", ""},
		{"POST", "/namespaces/dev/jobs?wait=20s", `{"metadata":{"name":"train"},"spec":{"parallelism":2,"template":{"spec":{` + gpu + `}}}}`, "create", "jobs", "dev", "train"},
		{"PATCH", "/namespaces/dev/jobs/train", `{"metadata":{"labels":{"a":"b"}}}`, "patch", "jobs", "dev", "train"},
		{"POST", "/namespaces/dev/jobs/train/cancel", `{"gracePeriodSeconds":0}`, "cancel", "jobs", "dev", "train"},
		{"POST", "/namespaces/dev/jobs", `{"metadata":{"name":"queued"},"spec":{"template":{"spec":{` + tooLarge + `}}}}`, "create", "jobs", "dev", "queued"},
		{"POST", "/namespaces/dev/jobs/queued/boost", `{"newPriority":7,"duration":"1h"}`, "boost", "jobs", "dev", "queued"},
		{"DELETE", "/namespaces/dev/jobs/queued", "", "delete", "jobs", "dev", "queued"},
		{"PATCH", "/nodes/node-0", `{"metadata":{"labels":{"pool":"batch"}}}`, "patch", "nodes", "", "node-0"},
		{"PATCH", "/nodes/node-0/status", `{"status":{"allocatable":{"nvidia.com/gpu":"4"}}}`, "patch", "nodes", "", "node-0"},
		{"POST", "/nodes/node-1/drain", `{"gracePeriodSeconds":0}`, "drain", "nodes", "", "node-1"},
		{"POST", "/nodes", `{"kind":"Node","metadata":{"name":"later"},"spec":{"capacity":{"cpu":"8"}}}`, "create", "nodes", "", "later"},
		{"DELETE", "/nodes/later", "", "delete", "nodes", "", "later"},
		{"POST", "/nodes/node-1/fence", `{"reason":"drill","force":true}`, "fence", "nodes", "", "node-1"},
		{"PATCH", "/quota", `{"mode":"Maintenance","reason":"drill"}`, "patch", "quotamodes", "", ""},
		{"PATCH", "/quota", `{"mode":"Normal"}`, "patch", "quotamodes", "", ""},
		{"POST", "/tokens", `{"spec":{"user":"bob","role":"viewer","tenant":"vision"}}`, "create", "tokens", "", "*"},
		{"POST", "/rolebindings", `{"kind":"RoleBinding","metadata":{"name":"vision.readers"},"spec":{"role":"viewer","tenant":"vision","subjects":[{"kind":"User","name":"eve"}]}}`, "create", "rolebindings", "", "vision.readers"},
		{"PATCH", "/rolebindings/vision.readers", `{"metadata":{"labels":{"a":"b"}}}`, "patch", "rolebindings", "", "vision.readers"},
		{"DELETE", "/rolebindings/vision.readers", "", "delete", "rolebindings", "", "vision.readers"},
		{"POST", "/bootstraptokens", `{"spec":{"nodes":"gpu-*"}}`, "create", "bootstraptokens", "", "*"},
		{"POST", "/nodes/stolen/ban", `{"spec":{"reason":"drill"}}`, "create", "nodebans", "", "stolen"},
		{"DELETE", "/nodes/stolen/ban", "", "delete", "nodebans", "", "stolen"},
		{"POST", "/authorities", "", "create", "authorities", "", "authorities"},
		{"DELETE", "/quotabindings/dev", "", "delete", "quotabindings", "dev", "dev"},
		{"DELETE", "/quotaforests/all", "", "delete", "quotaforests", "", "all"},
		{"POST", "/quotatrees", `{"kind":"QuotaTree","metadata":{"name":"spare"},"spec":{"nodes":{"all":{"quota":{"cpu":1}}}}}`, "create", "quotatrees", "", "spare"},
		{"DELETE", "/quotatrees/spare", "", "delete", "quotatrees", "", "spare"},
		{"DELETE", "/namespaces/dev/resourcequotas/limit", "", "delete", "resourcequotas", "dev", "limit"},
	}
}

// TestEachChangeLeavesOneEntryWithItsPerson: of every kind and verb, over REST.
func TestEachChangeLeavesOneEntryWithItsPerson(t *testing.T) {
	w := open(t)
	ids := map[string]step{}
	for _, s := range steps() {
		id := w.requestID()
		if code, text := w.rest(id, w.ada, s.method, s.path, s.body); code/100 != 2 {
			t.Errorf("%s %s: %d %s", s.method, s.path, code, text)
			continue
		}
		ids[id] = s
	}
	all := w.entries(w.ada, url.Values{"limit": {"7"}})
	for i := 1; i < len(all); i++ {
		if all[i-1].ID <= all[i].ID {
			t.Errorf("the entry %s comes before %s", all[i-1].ID, all[i].ID)
		}
	}
	for id, s := range ids {
		found := of(id, all)
		if len(found) != 1 {
			t.Errorf("%s %s has %d entries, want 1: %+v", s.method, s.path, len(found), found)
			continue
		}
		e := found[0]
		named := e.Name == s.name || s.name == "*" && e.Name != ""
		if e.Person != "ada@example.org" || !strings.HasPrefix(e.Token, "at-") || e.Verb != s.verb || e.Resource != s.resource || e.Namespace != s.namespace || !named ||
			e.Result != api.AuditDone || !strings.HasPrefix(e.Address, "127.0.0.1:") || e.Time == "" {
			t.Errorf("%s %s leaves %+v, want %s %s %s %s of ada", s.method, s.path, e, s.verb, s.resource, s.namespace, s.name)
		}
	}
}

// TestReadsAndDryRunsLeaveNoEntry: and neither does a change that was refused for the
// state of its object, nor a repeated submission.
func TestReadsAndDryRunsLeaveNoEntry(t *testing.T) {
	w := open(t)
	const allocation = `{"metadata":{"name":"a"},"spec":{` + gpu + `}}`
	if code, text := w.rest("first", w.ada, "POST", "/namespaces/dev/allocations", allocation); code != 201 {
		t.Fatal(code, text)
	}
	for _, s := range []step{
		{method: "GET", path: "/namespaces/dev/allocations"},
		{method: "GET", path: "/namespaces/dev/allocations/a?wait=1ms"},
		{method: "GET", path: "/nodes/node-0"},
		{method: "POST", path: "/namespaces/dev/allocations?dryRun=All", body: strings.Replace(allocation, `"a"`, `"b"`, 1)},
		{method: "POST", path: "/namespaces/dev/allocations", body: allocation}, // 409
		{method: "DELETE", path: "/namespaces/dev/allocations/nothing"},         // 404
		{method: "PATCH", path: "/namespaces/dev/allocations/a", body: `{"nothing":1}`},
		{method: "POST", path: "/nodes/node-0/drain?dryRun=true"},
	} {
		id := w.requestID()
		code, text := w.rest(id, w.ada, s.method, s.path, s.body)
		if found := of(id, w.entries(w.ada, url.Values{})); len(found) != 0 {
			t.Errorf("%s %s, answered with %d %s, leaves %+v", s.method, s.path, code, text, found)
		}
	}
}

// TestEachChangeOverGRPCLeavesOneEntry: the entry is that of REST.
func TestEachChangeOverGRPCLeavesOneEntry(t *testing.T) {
	w := open(t)
	conn := w.dial()
	for _, c := range []struct {
		do                              func(context.Context) error
		verb, resource, namespace, name string
	}{
		{func(ctx context.Context) error {
			_, err := apiv1.NewTenantsClient(conn).Create(ctx, &apiv1.Tenant{Kind: "Tenant", Metadata: &apiv1.ObjectMeta{Name: "vision"}, Spec: &apiv1.TenantSpec{}})
			return err
		}, "create", "tenants", "", "vision"},
		{func(ctx context.Context) error {
			_, err := apiv1.NewAllocationsClient(conn).Create(ctx, &apiv1.CreateAllocationRequest{Namespace: "dev", Allocation: &apiv1.Allocation{
				Metadata: &apiv1.ObjectMeta{Name: "a"}, Spec: &apiv1.AllocationSpec{Resources: &apiv1.Requirements{Requests: map[string]string{"cpu": "1"}}},
			}})
			return err
		}, "create", "allocations", "dev", "a"},
		{func(ctx context.Context) error {
			_, err := apiv1.NewAllocationsClient(conn).Delete(ctx, &apiv1.DeleteRequest{Namespace: "dev", Name: "a"})
			return err
		}, "delete", "allocations", "dev", "a"},
		{func(ctx context.Context) error {
			_, err := apiv1.NewNodesClient(conn).Cordon(ctx, &apiv1.NodeRequest{Name: "node-0"})
			return err
		}, "patch", "nodes", "", "node-0"},
		{func(ctx context.Context) error {
			_, err := apiv1.NewNodesClient(conn).Drain(ctx, &apiv1.DrainRequest{Name: "node-0"})
			return err
		}, "drain", "nodes", "", "node-0"},
		{func(ctx context.Context) error {
			_, err := apiv1.NewNodesClient(conn).Fence(ctx, &apiv1.FenceRequest{Name: "node-1", Options: &apiv1.FenceOptions{Force: true}})
			return err
		}, "fence", "nodes", "", "node-1"},
		{func(ctx context.Context) error {
			_, err := apiv1.NewTenantsClient(conn).Delete(ctx, &apiv1.RemoveRequest{Name: "vision"})
			return err
		}, "delete", "tenants", "", "vision"},
	} {
		id := w.requestID()
		if err := c.do(w.call(id, w.ada)); err != nil {
			t.Errorf("%s %s: %v", c.verb, c.resource, err)
			continue
		}
		found := of(id, w.entries(w.ada, url.Values{}))
		if len(found) != 1 {
			t.Errorf("%s %s has %d entries, want 1: %+v", c.verb, c.resource, len(found), found)
			continue
		}
		if e := found[0]; e.Person != "ada@example.org" || e.Verb != c.verb || e.Resource != c.resource || e.Namespace != c.namespace || e.Name != c.name || !strings.HasPrefix(e.Address, "127.0.0.1:") {
			t.Errorf("%s %s leaves %+v", c.verb, c.resource, e)
		}
	}
}
