package tenancy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/rest/restdoc"
)

// own fills the path of a route with the names of ml, and of the objects that all
// tenants share.
func own(path string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, "/api/v1/"), "namespaces/{namespace}/"), "/")
	name := map[string]string{"allocations": "waits", "jobs": "myjob", "nodes": "n1", "resourcequotas": "limit", "tenants": "ml", "quotaforests": "quota"}[kind]
	return strings.NewReplacer("{namespace}", "ml", "{tenant}", "ml", "{tree}", map[bool]string{true: "quota", false: "company"}[kind == "quotaforests"], "{name}", name, "{$}", "").Replace(path)
}

// TestNoAnswerOfRESTNamesTheWorkOfOthers asks every route that reads, as a tenant, and
// looks for the names of the rival tenant in the answers, watches included. The answer
// to an administrator has them: else the test would see nothing.
func TestNoAnswerOfRESTNamesTheWorkOfOthers(t *testing.T) {
	w := open(t)
	read, seen := 0, 0
	for _, r := range restdoc.Routes() {
		if r.Method != http.MethodGet {
			continue
		}
		path := own(r.Path)
		if strings.HasPrefix(path, "/api/v1") {
			path = strings.TrimPrefix(path, "/api/v1")
		} else {
			path = "/" + path
		}
		queries := []string{""}
		for _, p := range r.Parameters {
			switch p {
			case "watch":
				queries = append(queries, "?watch=true")
			case "fieldSelector":
				queries = append(queries, "?limit=1", "?fieldSelector=metadata.name!%3Dnothing", "?labelSelector=!nothing")
			}
		}
		for _, query := range queries {
			got := w.ask("GET", path+query, w.ml, "")
			if words := leaks(got.text); len(words) > 0 {
				t.Errorf("GET %s%s names %q to another tenant: %d %s", path, query, words, got.code, got.text)
			}
			if got.code == http.StatusOK {
				read++
			}
			if len(leaks(w.ask("GET", path+query, adminToken, "").text)) > 0 {
				seen++
			}
		}
	}
	if read < 40 || seen < 15 {
		t.Errorf("the tenant read %d answers, and the administrator found the names in %d: want 40 and 15 or more", read, seen)
	}
}

// TestNoAnswerToARequestNamesTheWorkOfOthers: the same for requests with a body, of
// work that others' work keeps from running.
func TestNoAnswerToARequestNamesTheWorkOfOthers(t *testing.T) {
	const gpus = `"spec":{"priority":900,"preemptionPolicy":"PreemptLowerPriority","resources":{"requests":{"cpu":"13"}}}`
	for name, c := range map[string]struct {
		method, path, body string
		want               int
	}{
		"a dry run of an allocation":          {"POST", "/namespaces/ml/allocations?dryRun=All", `{"metadata":{"name":"new"},` + gpus + `}`, 200},
		"a dry run of a job":                  {"POST", "/namespaces/ml/jobs?dryRun=All", `{"metadata":{"name":"new"},"spec":{"parallelism":2,"priority":900,"template":{"spec":{"preemptionPolicy":"PreemptLowerPriority","resources":{"requests":{"cpu":"7"}}}}}}`, 200},
		"an allocation that preempts":         {"POST", "/namespaces/ml/allocations", `{"metadata":{"name":"new"},` + gpus + `}`, 201},
		"an allocation above the quota":       {"POST", "/namespaces/ml/allocations", `{"metadata":{"name":"new"},"spec":{"resources":{"requests":{"nvidia.com/gpu":"4"}}}}`, 403},
		"a consumer that is tried":            {"POST", "/quota/dryruns", `{"kind":"Consumer","spec":{"id":"new","trees":[{"treeName":"company","groupID":"left","request":{"nvidia.com/gpu":1},"priority":9}]}}`, 200},
		"why, each node":                      {"GET", "/namespaces/ml/allocations/waits/explain?nodes=all", "", 200},
		"the quota of an allocation":          {"GET", "/namespaces/ml/allocations/waits/quota", "", 200},
		"a name that the rival has, too":      {"POST", "/namespaces/ml/jobs", `{"metadata":{"name":"same"},"spec":{"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`, 201},
		"the end of an allocation":            {"DELETE", "/namespaces/ml/allocations/mine", "", 200},
		"a change of an allocation":           {"PATCH", "/namespaces/ml/allocations/waits", `{"metadata":{"labels":{"a":"b"}}}`, 200},
		"a bulk release by a label of others": {"DELETE", "/namespaces/ml/allocations?labelSelector=zebu%3Dzebu", "", 200},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.must("POST", "/namespaces/quagga/jobs", `{"metadata":{"name":"same"},"spec":{"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`)
			got := w.ask(c.method, c.path, w.ml, c.body)
			if words := leaks(got.text); len(words) > 0 || got.code != c.want {
				t.Errorf("%s %s names %q to another tenant: %d, want %d: %s", c.method, c.path, words, got.code, c.want, got.text)
			}
		})
	}
}
