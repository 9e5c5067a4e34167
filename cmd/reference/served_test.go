package reference

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

// served are the routes that take a kind of document: method and path.
var served = map[string][2]string{
	"Job":                {"POST", "/namespaces/default/jobs"},
	"Allocation":         {"POST", "/namespaces/default/allocations"},
	"ResourceQuota":      {"POST", "/namespaces/default/resourcequotas"},
	"QuotaTree":          {"POST", "/quotatrees"},
	"QuotaForest":        {"POST", "/quotaforests"},
	"QuotaBinding":       {"POST", "/quotabindings"},
	"Consumer":           {"POST", "/quota/dryruns"},
	"DeleteOptions":      {"DELETE", "/namespaces/default/allocations/kept"},
	"BulkReleaseOptions": {"POST", "/namespaces/default/allocations/bulk-release"},
	"PreemptionRequest":  {"POST", "/namespaces/default/preemptions"},
	"DrainOptions":       {"POST", "/nodes/gpu-1/drain"},
	"FenceOptions":       {"POST", "/nodes/gpu-1/fence"},
	"ApproveOptions":     {"POST", "/nodes/gpu-1/approve"},
	"ReconcileOptions":   {"POST", "/nodes/gpu-1/reconcile"},
	"ReclaimOptions":     {"POST", "/quotatrees/company/reclaim"},
	"BoostOptions":       {"POST", "/namespaces/default/jobs/kept/boost"},
	"QuotaRename":        {"POST", "/quotatrees/company/rename"},
	"QuotaModePatch":     {"PATCH", "/quota"},
	"FeatureLevelPatch":  {"PATCH", "/featurelevel"},
	"Tenant":             {"POST", "/tenants"},
	"Namespace":          {"POST", "/namespaces"},
	"Resource":           {"POST", "/resources"},
	"Queue":              {"POST", "/queues"},
	"PriorityClass":      {"POST", "/priorityclasses"},
	"AccessToken":        {"POST", "/tokens"},
	"RoleBinding":        {"POST", "/rolebindings"},
	"RotateOptions":      {"POST", "/tokens/at-5d1f09c2ab/rotate"},
}

// identities are kinds that a server without TLS does not serve.
var identities = map[string]bool{"BootstrapToken": true, "OperatorCertificate": true, "NodeBan": true}

// state are the lists that show all that a server holds.
var state = []string{"/jobs", "/allocations", "/nodes", "/resourcequotas", "/quotatrees", "/quotaforests", "/quotabindings", "/tenants", "/namespaces", "/resources", "/queues", "/priorityclasses", "/quota"}

// A bad document is answered with 400 or 422, the field and the value, and leaves
// the server as it was.
func TestTheServerRefusesBadDocumentsAndChangesNothing(t *testing.T) {
	began := time.Now()
	cluster := resttest.New(func() time.Time { return began }, resttest.Node{Name: "gpu-1", CPUs: 16, Memory: 64 << 30, GPUs: 4})
	handler := rest.NewHandler(rest.Config{Service: cluster, Authenticator: service.StaticToken("s3cret")})
	call := func(method, path string, body []byte) (int, []byte) {
		t.Helper()
		r := httptest.NewRequest(method, "/api/v1"+path, bytes.NewReader(body))
		r.Header.Set("Authorization", "Bearer s3cret")
		if method == http.MethodPost || len(body) > 0 {
			r.Header.Set("Content-Type", "application/json")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		raw, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		return w.Code, raw
	}
	kept := `{"metadata": {"name": "kept"}, "spec": {"resources": {"requests": {"cpu": 1}}}}`
	if code, answer := call("POST", served["Allocation"][1], []byte(kept)); code != http.StatusCreated {
		t.Fatalf("%d %s", code, answer)
	}
	all := func() map[string]string {
		held := map[string]string{}
		for _, path := range state {
			code, answer := call("GET", path, nil)
			if code != http.StatusOK {
				t.Fatalf("GET %s: %d %s", path, code, answer)
			}
			held[path] = string(answer)
		}
		return held
	}
	before := all()
	for _, b := range badDocuments(t) {
		route, ok := served[b.kind.Name]
		if !ok {
			if !identities[b.kind.Name] {
				t.Fatalf("no route takes a %s: add one to served", b.kind.Name)
			}
			continue
		}
		code, answer := call(route[0], route[1], b.doc)
		var status api.Status
		if err := json.Unmarshal(answer, &status); err != nil || code != http.StatusBadRequest && code != http.StatusUnprocessableEntity {
			t.Errorf("%s is answered with %d %.300s, want 400 or 422", b, code, answer)
			continue
		}
		b.check(t, strings.TrimPrefix(status.Message, "quota tree train: "))
	}
	after := all()
	for _, path := range state {
		if before[path] != after[path] {
			t.Errorf("%s was\n%s\nand is after the bad documents\n%s", path, before[path], after[path])
		}
	}
}
