package conformance

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const team = "/api/v1/namespaces/ml-team/"

// TestTheDocumentedRequestsAreAnsweredAsDocumented tells one story of one cluster: a
// node is registered, a namespace gets a quota, an allocation waits and runs, a job of
// eight members waits for it and runs, and work leaves its nodes.
func TestTheDocumentedRequestsAreAnsweredAsDocumented(t *testing.T) {
	w := newWorld(t)
	w.heard(registered)
	w.replay("register a node", map[string]string{"bearer": w.bootstrapToken(registered)})
	w.replay("create a resource quota", nil)
	w.must(http.StatusCreated, "POST", team+"resourcequotas", `{"metadata": {"name": "few"}, "spec": {"hard": {"nvidia.com/gpu": "2"}}}`)
	w.replay("create an allocation over quota", nil)
	w.must(http.StatusOK, "DELETE", team+"resourcequotas/few", "")
	w.replay("create an allocation", nil) // and it waits: no node has the labels that it selects, and its group is short of members
	// The registered node is tainted and in rack-12. A spread counts its rack all the
	// same, and so other nodes have to be there.
	racks := []string{"rack-12", "rack-13", "rack-14", "rack-15"}
	for i := range nodes - 1 {
		w.must(http.StatusOK, "PATCH", fmt.Sprintf("/api/v1/nodes/node-%d", i), fmt.Sprintf(
			`{"metadata": {"labels": {"gpu-type": "nvidia-a100", "zone": "us-east-1a", "network": "rdma", "gpu-memory": "80", "topology.kubernetes.io/zone": "us-east-1a", "rack": %q}}}`, racks[i%len(racks)]))
	}
	for _, name := range []string{"ml-training-job-43", "ml-training-job-44", "ml-training-job-45"} {
		w.must(http.StatusCreated, "POST", team+"allocations", fmt.Sprintf(`{"metadata": {"name": %q, "annotations": {"scheduler.example.com/max-wait": "300s"}},
			"spec": {"resources": {"requests": {"cpu": "1"}}, "priority": 100, "gangScheduling": {"groupId": "training-gang-001", "minMembers": 4}}}`, name))
	}
	w.ready("ml-training-job-42")
	w.ready("ml-training-job-45")
	w.replay("get an allocation", nil)
	w.replay("get the use of a quota", nil)
	w.trend()
	w.replay("change a quota", nil)
	w.allocation("waiting", `"for": "the queue default"`, `{"cpu": "1"}`, `{"stage": "never"}`)
	w.must(http.StatusCreated, "POST", team+"allocations", `{"metadata": {"name": "kept"}, "spec": {"priorityClass": "system-critical",
		"resources": {"requests": {"nvidia.com/gpu": "1"}}, "scheduling": {"nodeSelector": {"kubernetes.io/hostname": "node-1"}}}}`)
	w.ready("kept")
	w.replay("create a job", nil) // and it waits: a node of the eight that it needs is in use, by work of a higher priority, too
	w.replay("boost a job", nil)
	w.replay("utilization of the cluster", nil)
	w.replay("usage of a tenant", nil)
	w.waits(w.replay("depths of the queues", nil))
	w.replay("delete an allocation", nil)
	w.done("ml-training-job-42", 0)
	w.must(http.StatusOK, "DELETE", team+"allocations/kept", "")
	w.running("distributed-training-v2", 8)
	w.spread(w.replay("get the status of a job", nil), 8, racks)
	w.replay("cancel a job", nil)
	for i := range 8 {
		w.done(fmt.Sprintf("distributed-training-v2-%d", i), i)
	}
	w.listing()
	w.watching()
	w.allocation("low-priority-batch-job", "", `{"cpu": "16000m", "memory": "64Gi", "nvidia.com/gpu": "4"}`, `{"kubernetes.io/hostname": "node-0"}`)
	w.ready("low-priority-batch-job")
	notices := w.follow("watch the evictions of a node", nil)
	w.replay("preempt an allocation", nil)
	notice := notices.next("a notice", func(event map[string]any) bool { return event["type"] == "EVICTION" })
	w.check(notices.of, notices.of.Answer, notice)
	for _, name := range []string{"batch-1", "batch-2"} {
		w.must(http.StatusCreated, "POST", team+"allocations",
			fmt.Sprintf(`{"metadata": {"name": %q, "labels": {"batch-id": "job-20240115"}}, "spec": {"resources": {"requests": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}}}}`, name))
		w.ready(name)
	}
	w.replay("release many allocations", nil) // two, not 24
	w.replay("change the capacity of a node", nil)
	w.allocation("leaves", `"for": "a drain"`, `{"cpu": "1"}`, `{"kubernetes.io/hostname": "node-0"}`)
	w.ready("leaves")
	w.replay("drain a node", nil)
	w.replay("cordon a node", nil)
	w.trees()
	w.events()
	for name := range w.all {
		t.Errorf("requests.json or own.json has %q, and no part of the story sends it", name)
	}
	for _, l := range w.later {
		if !w.used[l] {
			t.Errorf("docs/api.md lists %s of %s, and no part of the story checks it", l.field, l.route)
		}
	}
}

// trend checks the trend of a quota that counts all work of its namespace, in the words of
// the document. That of the documented quota, which has scopes, is in the story.
func (w *world) trend() {
	w.Helper()
	w.must(http.StatusCreated, "POST", team+"resourcequotas", `{"metadata": {"name": "whole"}, "spec": {"hard": {"cpu": "10000", "nvidia.com/gpu": "100"}}}`)
	a := w.must(http.StatusOK, "GET", team+"resourcequotas/whole/status", "")
	var got map[string]any
	for _, v := range found(a.body, []string{"status", "trend"}) {
		got, _ = v.(map[string]any)
	}
	for _, name := range []string{"cpu", "nvidia.com/gpu"} {
		if words, _ := got[name].(string); !regexp.MustCompile(`^[+-]\d+% over 24h$`).MatchString(words) {
			w.Errorf("the trend of %s is %q, want words such as +5%% over 24h", name, words)
		}
	}
	w.must(http.StatusOK, "DELETE", team+"resourcequotas/whole", "")
}

// deleteTree deletes a quota tree once nothing is charged to it: the node gives back what
// deleted work held after the answer to the deletion.
func (w *world) deleteTree(name string) {
	w.Helper()
	for w.Context().Err() == nil {
		switch a := w.send("DELETE", "/api/v1/quotatrees/"+name, nil, nil); a.code {
		case http.StatusConflict:
		case http.StatusOK:
			return
		default:
			w.Fatalf("the deletion of tree %s is answered %d: %s", name, a.code, a.raw)
		}
	}
	w.Fatalf("tree %s stays in use: %v", name, w.Context().Err())
}

// heard waits until the first heartbeat of a node's agent: the leader is connected to
// the agent before that.
func (w *world) heard(node string) {
	w.Helper()
	for w.Context().Err() == nil {
		if has(w.must(http.StatusOK, "GET", "/api/v1/nodes/"+node, "").body, "status.leaseId") {
			return
		}
	}
}

// bootstrapToken makes a token for the host of a node.
func (w *world) bootstrapToken(node string) string {
	w.Helper()
	a := w.must(http.StatusCreated, "POST", "/api/v1/bootstraptokens", fmt.Sprintf(`{"spec": {"nodes": %q}}`, node))
	return one[string](w, a, "status", "token")
}

// one is the value of a field that an answer must have.
func one[T any](w *world, a answered, field ...string) T {
	w.Helper()
	var value T
	for _, v := range found(a.body, field) {
		value, _ = v.(T)
	}
	if any(value) == any(*new(T)) {
		w.Fatalf("%v is missing: %s", field, a.raw)
	}
	return value
}

// listing replays a list whose page of 100 follows another page and precedes one more:
// 203 members of a job have the label.
func (w *world) listing() {
	w.Helper()
	w.must(http.StatusCreated, "POST", team+"jobs",
		`{"metadata": {"name": "many"}, "spec": {"parallelism": 203, "template": {"metadata": {"labels": {"app": "model-training"}}, "spec": {"resources": {"requests": {"cpu": "100m"}}}}}}`)
	w.running("many", 203)
	first := w.must(http.StatusOK, "GET", team+"allocations?labelSelector="+url.QueryEscape("app=model-training")+"&fieldSelector=status.phase%3DRunning&limit=100", "")
	w.replay("list allocations", map[string]string{"{token}": url.QueryEscape(one[string](w, first, "metadata", "continue"))})
	w.must(http.StatusOK, "DELETE", team+"jobs/many", "")
}

// watching replays a watch: an allocation runs, one is created, one is deleted.
func (w *world) watching() {
	w.Helper()
	w.allocation("job-1", "", `{"cpu": "1"}`, `{"stage": "later"}`)
	w.allocation("job-3", "", `{"cpu": "1"}`, `{}`)
	w.ready("job-3")
	now := w.must(http.StatusOK, "GET", team+"allocations?limit=1", "")
	events := w.follow("watch allocations", map[string]string{"48291": one[string](w, now, "metadata", "resourceVersion")})
	w.must(http.StatusOK, "PATCH", "/api/v1/nodes/node-1", `{"metadata": {"labels": {"stage": "later"}}}`)
	w.ready("job-1")
	w.allocation("job-2", "", `{"cpu": "1"}`, `{"stage": "never"}`)
	w.must(http.StatusOK, "DELETE", team+"allocations/job-3", "")
	events.compareEvents()
}

// allocation creates an allocation of a name, with annotations and a node selector.
func (w *world) allocation(name, annotations, requests, nodeSelector string) {
	w.Helper()
	w.must(http.StatusCreated, "POST", team+"allocations",
		fmt.Sprintf(`{"metadata": {"name": %q, "annotations": {%s}}, "spec": {"resources": {"requests": %s}, "scheduling": {"nodeSelector": %s}}}`, name, annotations, requests, nodeSelector))
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

// running waits until as many members of a job run.
func (w *world) running(job string, members float64) {
	w.Helper()
	for w.Context().Err() == nil {
		a := w.must(http.StatusOK, "GET", team+"jobs/"+job+"?wait=100s", "")
		for _, active := range found(a.body, []string{"status", "active"}) {
			if active == members {
				return
			}
		}
	}
	w.Fatalf("job %s does not run: %v", job, w.Context().Err())
}

// waits checks the times that queues report: each is a duration, and no average is above
// the 99th percentile.
func (w *world) waits(queues answered) {
	w.Helper()
	for _, q := range found(queues.body, []string{"queues", "*"}) {
		var waits [2]time.Duration
		for i, field := range []string{"avgWaitTime", "p99WaitTime"} {
			text, _ := q.(map[string]any)[field].(string)
			var err error
			if waits[i], err = time.ParseDuration(text); err != nil || waits[i] < 0 {
				w.Errorf("queue %v: %s is %q, want a duration", q, field, text)
			}
		}
		if waits[0] > waits[1] {
			w.Errorf("queue %v: its average is above its 99th percentile", q)
		}
	}
}

// spread checks that the members of a job run on nodes of their own, and that the numbers
// of members in the racks differ by one at most. Node i is in racks[i%len(racks)].
func (w *world) spread(status answered, members int, racks []string) {
	w.Helper()
	used, inRack := map[string]bool{}, make([]int, len(racks))
	for _, node := range found(status.body, []string{"status", "allocations", "*", "node"}) {
		name, _ := node.(string)
		rack := 0 // the registered node is in the first
		if i, err := strconv.Atoi(strings.TrimPrefix(name, "node-")); err == nil {
			rack = i % len(racks)
		} else if name != registered {
			w.Errorf("a member is on node %q", name)
		}
		used[name] = true
		inRack[rack]++
	}
	if len(used) != members || slices.Max(inRack)-slices.Min(inRack) > 1 {
		w.Errorf("the %d members are on the nodes %v, and %v in the racks %v", members, slices.Sorted(maps.Keys(used)), inRack, racks)
	}
}

// trees replays the requests about quota trees: a tree is created, counts an allocation,
// is over quota once its limit is lowered, and stays while a forest has it.
func (w *world) trees() {
	w.Helper()
	created := w.replay("create a quota tree", nil)
	w.replay("create a quota tree of a taken name", nil)
	w.must(http.StatusCreated, "POST", "/api/v1/quotaforests", `{"metadata": {"name": "campus"}, "spec": {"trees": ["research"]}}`)
	w.must(http.StatusCreated, "POST", "/api/v1/quotabindings", `{"metadata": {"name": "ml-team"}, "spec": {"forest": "campus", "groups": {"research": "vision"}}}`)
	w.allocation("counted", "", `{"cpu": "1", "nvidia.com/gpu": "2"}`, `{}`)
	w.ready("counted")
	w.replay("get a quota tree", nil)
	w.replay("list quota trees", nil)
	w.replay("get the use of a quota tree", nil)
	changes := w.follow("watch quota trees", map[string]string{"resourceVersion=15": "resourceVersion=" + one[string](w, created, "metadata", "resourceVersion")})
	w.replay("change a quota tree", nil)
	w.replay("list events of an allocation", nil)
	w.replay("list events of a quota tree", nil)
	w.replay("delete a quota tree that a forest has", nil)
	w.must(http.StatusOK, "DELETE", team+"allocations/counted", "")
	w.must(http.StatusOK, "DELETE", "/api/v1/quotabindings/ml-team", "")
	w.must(http.StatusOK, "DELETE", "/api/v1/quotaforests/campus", "")
	w.replay("delete another quota tree of the same name", nil)
	w.deleteTree("research")
	changes.compareEvents()
}

// events replays the watch of events: an allocation is created and runs.
func (w *world) events() {
	w.Helper()
	now := w.must(http.StatusOK, "GET", team+"events?limit=1", "")
	events := w.follow("watch events", map[string]string{"resourceVersion=18": "resourceVersion=" + one[string](w, now, "metadata", "resourceVersion")})
	w.allocation("followed", "", `{"cpu": "1"}`, `{}`)
	w.ready("followed")
	events.compareEvents()
}
