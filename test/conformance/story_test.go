package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
)

const team = "/api/v1/namespaces/ml-team/"

// TestTheDocumentedRequestsAreAnsweredAsDocumented tells one story of one cluster:
// a namespace gets a quota, an allocation waits and runs, the quota changes.
func TestTheDocumentedRequestsAreAnsweredAsDocumented(t *testing.T) {
	w := newWorld(t)
	w.replay("create a resource quota", nil)
	w.must(http.StatusCreated, "POST", team+"resourcequotas", `{"metadata": {"name": "few"}, "spec": {"hard": {"nvidia.com/gpu": "2"}}}`)
	w.replay("create an allocation over quota", nil)
	w.must(http.StatusOK, "DELETE", team+"resourcequotas/few", "")
	w.replay("create an allocation", nil) // and it waits: no node has the labels that it selects
	for i := range nodes {
		w.must(http.StatusOK, "PATCH", fmt.Sprintf("/api/v1/nodes/node-%d", i),
			`{"metadata": {"labels": {"gpu-type": "nvidia-a100", "zone": "us-east-1a", "network": "rdma", "gpu-memory": "80"}}}`)
	}
	w.ready("ml-training-job-42")
	w.replay("get an allocation", nil)
	w.replay("get the use of a quota", nil)
	w.replay("change a quota", nil)
	w.replay("boost a job", nil)
	w.allocation("waiting", "the queue default", `{"cpu": "1", "nvidia.com/gpu": "8"}`)
	w.replay("create a job", nil) // and it waits: the cluster has 8 GPUs
	w.replay("utilization of the cluster", nil)
	w.replay("usage of a tenant", nil)
	w.replay("depths of the queues", nil)
	w.replay("cancel a job", nil)
	w.replay("delete an allocation", nil)
	w.must(http.StatusOK, "DELETE", team+"allocations/waiting", "")
	w.allocation("low-priority-batch-job", "a preemption", `{"cpu": "16000m", "memory": "64Gi", "nvidia.com/gpu": "4"}`)
	w.ready("low-priority-batch-job")
	w.replay("preempt an allocation", nil)
	for _, name := range []string{"batch-1", "batch-2"} {
		w.must(http.StatusCreated, "POST", team+"allocations",
			fmt.Sprintf(`{"metadata": {"name": %q, "labels": {"batch-id": "job-20240115"}}, "spec": {"resources": {"requests": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}}}}`, name))
		w.ready(name)
	}
	w.replay("release many allocations", nil) // two, not 24
	w.allocation("leaves", "a drain", `{"cpu": "1"}`)
	w.ready("leaves")
	w.replay("drain a node", nil)
	w.replay("cordon a node", nil)
	for name := range w.all {
		if !slices.Contains(notReplayed, name) {
			t.Errorf("requests.json has %q, and no part of the story sends it", name)
		}
	}
	for _, l := range w.later {
		sent := !slices.ContainsFunc(notReplayed, func(name string) bool { r, kept := w.all[name]; return kept && r.route() == l.route })
		if sent && !w.used[l] {
			t.Errorf("docs/api.md lists %s of %s, and no part of the story checks it", l.field, l.route)
		}
	}
}

// notReplayed are documented requests that the story does not send yet: their
// answers are transcribed in requests.json and wait for a part of the story.
var notReplayed = []string{
	"list allocations", "watch allocations", "get the status of a job", "register a node",
	"change the capacity of a node", "watch the evictions of a node",
}

// allocation creates an allocation of a name.
func (w *world) allocation(name, app, requests string) {
	w.Helper()
	w.must(http.StatusCreated, "POST", team+"allocations", fmt.Sprintf(`{"metadata": {"name": %q, "annotations": {"for": %q}}, "spec": {"resources": {"requests": %s}}}`, name, app, requests))
}

// ready waits until an allocation is Ready: its agent confirms after the answer that
// it runs.
func (w *world) ready(name string) {
	w.Helper()
	for w.Context().Err() == nil {
		a := w.must(http.StatusOK, "GET", team+"allocations/"+name+"?wait=100s", "")
		for _, condition := range found(a.body, []string{"status", "conditions", "*"}) {
			c := condition.(map[string]any)
			if c["type"] == "Ready" && c["status"] == "True" {
				return
			}
		}
	}
}
