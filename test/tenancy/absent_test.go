package tenancy

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

// aboutOthers are the requests of ml that name objects of quagga, with their bodies.
func aboutOthers() map[string]struct{ method, path, body string } {
	const unit = `{"metadata":{"name":"okapi"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`
	return map[string]struct{ method, path, body string }{
		"get an allocation":                     {"GET", "/namespaces/quagga/allocations/okapi", ""},
		"get an allocation of a job":            {"GET", "/namespaces/quagga/allocations/tapir-0", ""},
		"wait for an allocation":                {"GET", "/namespaces/quagga/allocations/okapi?wait=1ms", ""},
		"why an allocation waits":               {"GET", "/namespaces/quagga/allocations/okapi/explain", ""},
		"the quota of an allocation":            {"GET", "/namespaces/quagga/allocations/okapi/quota", ""},
		"delete an allocation":                  {"DELETE", "/namespaces/quagga/allocations/okapi", ""},
		"delete an allocation with a wrong uid": {"DELETE", "/namespaces/quagga/allocations/okapi", `{"preconditions":{"uid":"x"}}`},
		"change an allocation":                  {"PATCH", "/namespaces/quagga/allocations/okapi", `{"metadata":{"labels":{"a":"b"}}}`},
		"change an allocation, no JSON":         {"PATCH", "/namespaces/quagga/allocations/okapi", `{`},
		"create an allocation that exists":      {"POST", "/namespaces/quagga/allocations", unit},
		"try an allocation":                     {"POST", "/namespaces/quagga/allocations?dryRun=All", unit},
		"list allocations":                      {"GET", "/namespaces/quagga/allocations", ""},
		"list allocations by a label":           {"GET", "/namespaces/quagga/allocations?labelSelector=zebu%3Dzebu", ""},
		"list allocations by a name":            {"GET", "/namespaces/quagga/allocations?fieldSelector=metadata.name%3Dokapi", ""},
		"watch allocations":                     {"GET", "/namespaces/quagga/allocations?watch=true", ""},
		"watch allocations from a version on":   {"GET", "/namespaces/quagga/allocations?watch=true&resourceVersion=2", ""},
		"release allocations":                   {"DELETE", "/namespaces/quagga/allocations?labelSelector=zebu%3Dzebu", ""},
		"get a job":                             {"GET", "/namespaces/quagga/jobs/tapir", ""},
		"the status of a job":                   {"GET", "/namespaces/quagga/jobs/tapir/status", ""},
		"why a job waits":                       {"GET", "/namespaces/quagga/jobs/tapir/explain", ""},
		"cancel a job":                          {"POST", "/namespaces/quagga/jobs/tapir/cancel", ""},
		"delete a job":                          {"DELETE", "/namespaces/quagga/jobs/tapir", ""},
		"list jobs":                             {"GET", "/namespaces/quagga/jobs", ""},
		"list events":                           {"GET", "/namespaces/quagga/events", ""},
		"list events of an object":              {"GET", "/namespaces/quagga/events?fieldSelector=involvedObject.name%3Dokapi", ""},
		"get a quota":                           {"GET", "/namespaces/quagga/resourcequotas/zebu", ""},
		"the status of a quota":                 {"GET", "/namespaces/quagga/resourcequotas/zebu/status", ""},
		"list quotas":                           {"GET", "/namespaces/quagga/resourcequotas", ""},
		"get a binding":                         {"GET", "/quotabindings/quagga", ""},
		"get a tenant":                          {"GET", "/tenants/quagga", ""},
		"get a namespace":                       {"GET", "/namespaces/quagga", ""},
		"the usage of a tenant":                 {"GET", "/metrics/tenants/quagga/usage", ""},
	}
}

// without are the names of quagga's objects replaced by names that nobody has.
var without = strings.NewReplacer("quagga", "nobody", "okapi", "nothing", "tapir", "nothing", "zebu", "nothing")

// same is an answer without the id of its request, and without its length.
func same(t *testing.T, a answer) map[string]any {
	t.Helper()
	var status map[string]any
	if err := json.Unmarshal([]byte(without.Replace(a.text)), &status); err != nil {
		t.Fatalf("%q: %v", a.text, err)
	}
	delete(status, "requestId")
	for name, values := range a.header {
		if name != "X-Request-Id" && name != "Date" && name != "Content-Length" {
			status["header "+name] = values
		}
	}
	status["answered"] = a.code
	return status
}

// TestWhatIsNotYoursIsNotThere: the answer about an object of another tenant is that of
// an object that does not exist, to the last header. Neither answer has asked the
// service behind the door, so that both take the same time.
func TestWhatIsNotYoursIsNotThere(t *testing.T) {
	w := open(t)
	w.must("PATCH", "/namespaces/quagga/allocations/okapi", `{"metadata":{"labels":{"`+lastChange+`":"a"}}}`)
	cluster := resttest.New(time.Now)
	blind := serve(t, cluster, struct{ service.Service }{}) // any call of it is a panic, which is answered with 500
	blind.ml = blind.token(`{"user":"ada","role":"editor","tenant":"ml"}`)
	for name, c := range aboutOthers() {
		t.Run(name, func(t *testing.T) {
			there := same(t, w.ask(c.method, c.path, w.ml, c.body))
			missing := same(t, w.ask(c.method, without.Replace(c.path), w.ml, c.body))
			if diff := cmp.Diff(there, missing); diff != "" || there["answered"] != 404 {
				t.Errorf("answered %v: %s", there, diff)
			}
			if asked := same(t, blind.ask(c.method, c.path, blind.ml, c.body)); asked["answered"] != 404 {
				t.Errorf("the service was asked: %v", asked)
			}
			if c.method == "GET" {
				if as := w.ask(c.method, c.path, adminToken, c.body); as.code != 200 {
					t.Errorf("the object does not exist, so that the row shows nothing: %s", as.text)
				}
			}
		})
	}
}

// TestListsOfOneTenantStayThere: positions, selectors, uids, keys and versions of others
// lead to objects of the caller alone.
func TestListsOfOneTenantStayThere(t *testing.T) {
	w := open(t)
	var page api.AllocationList
	if err := json.Unmarshal([]byte(w.must("GET", "/namespaces/quagga/allocations?limit=1", "")), &page); err != nil {
		t.Fatal(err)
	}
	var foreign api.Allocation
	if err := json.Unmarshal([]byte(w.must("GET", "/namespaces/quagga/allocations/okapi", "")), &foreign); err != nil {
		t.Fatal(err)
	}
	version, err := strconv.Atoi(foreign.Metadata.ResourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	w.must("POST", "/namespaces/quagga/allocations", `{"metadata":{"name":"zebu"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`, "Idempotency-Key", "a-key")
	w.must("POST", "/namespaces/ml/allocations", `{"metadata":{"name":"last","labels":{"`+lastChange+`":"a"}},"spec":{"resources":{"requests":{"cpu":"1"}}}}`)
	w.must("PATCH", "/nodes/n1", `{"metadata":{"labels":{"`+lastChange+`":"a"}}}`)
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		want               int
	}{
		"a page that begins after an object of others": {"GET", "/namespaces/ml/allocations?limit=5&continue=" + url.QueryEscape(page.Metadata.Continue), "", nil, 200},
		"a selector with a label of others":            {"GET", "/namespaces/ml/allocations?labelSelector=zebu", "", nil, 200},
		"a selector with a node":                       {"GET", "/namespaces/ml/allocations?fieldSelector=status.nodeId%3Dn1", "", nil, 200},
		"a selector with a namespace of others":        {"GET", "/namespaces/ml/allocations?fieldSelector=metadata.namespace%3Dquagga", "", nil, 200},
		"a watch from a change of others on":           {"GET", "/namespaces/ml/allocations?watch=true&resourceVersion=" + strconv.Itoa(version-1), "", nil, 200},
		"a watch of the nodes from there on":           {"GET", "/nodes?watch=true&resourceVersion=" + strconv.Itoa(version-1), "", nil, 200},
		"events of an object of others":                {"GET", "/namespaces/ml/events?fieldSelector=involvedObject.uid%3D" + foreign.Metadata.UID, "", nil, 200},
		"an uid of others":                             {"DELETE", "/namespaces/ml/allocations/mine", `{"preconditions":{"uid":"` + foreign.Metadata.UID + `"}}`, nil, 409},
		"a name of others":                             {"POST", "/namespaces/ml/allocations", `{"metadata":{"name":"ok"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`, nil, 201},
		"an idempotency key of others":                 {"POST", "/namespaces/ml/allocations", `{"metadata":{"name":"key"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`, []string{"Idempotency-Key", "a-key"}, 201},
		"all tenants":                                  {"GET", "/tenants", "", nil, 200},
		"all namespaces":                               {"GET", "/namespaces", "", nil, 200},
		"the allocations of all namespaces":            {"GET", "/allocations", "", nil, 403},
		"the events of nodes":                          {"GET", "/events", "", nil, 403},
		"the evictions of a node":                      {"GET", "/nodes/n1/evictions", "", nil, 403},
		"a drain":                                      {"POST", "/nodes/n1/drain", `{"dryRun":true}`, nil, 403},
		"a preemption":                                 {"POST", "/namespaces/ml/preemptions", `{"targetAllocation":"mine"}`, nil, 403},
		"a reclaim":                                    {"POST", "/quotatrees/company/reclaim?dryRun=true", "", nil, 403},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.ask(c.method, c.path, w.ml, c.body, c.header...)
			if words := leaks(strings.ReplaceAll(got.text, "metadata.namespace=quagga", "")); got.code != c.want || len(words) > 0 {
				t.Errorf("%d, want %d, with the names %q: %s", got.code, c.want, words, got.text)
			}
		})
	}
}

// TestANodeShowsTheWorkOfOthersAsANumber: the caller sees the own work by name.
func TestANodeShowsTheWorkOfOthersAsANumber(t *testing.T) {
	w := open(t)
	part := w.token(`{"user":"ada","role":"viewer","tenant":"ml","namespaces":["ml-dev"]}`)
	whole := w.token(`{"user":"bob","role":"viewer"}`)
	for who, c := range map[string]struct {
		token  string
		names  []string
		others int
	}{
		"an editor of the tenant":             {w.ml, []string{"ml/mine", "ml/myjob-0"}, 3},
		"a viewer of another namespace of it": {part, nil, 5},
		"a viewer of the cluster":             {whole, []string{"ml/mine", "ml/myjob-0", "quagga/okapi", "quagga/tapir-0", "quagga/tapir-1"}, 0},
	} {
		t.Run(who, func(t *testing.T) {
			var got api.Node
			if err := json.Unmarshal([]byte(w.ask("GET", "/nodes/n1", c.token, "").text), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.names, got.Status.Allocations); diff != "" || got.Status.OtherAllocations != c.others {
				t.Errorf("%d of others, want %d; %s", got.Status.OtherAllocations, c.others, diff)
			}
		})
	}
}
