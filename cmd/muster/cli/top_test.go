package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterd/muster/cmd/muster/internal/clicontext"
)

func TestTopShowsDevicesAndJobs(t *testing.T) {
	documents := map[string]string{
		"/api/v1/metrics/queues": `{"queues": [{"name": "default", "depth": 3}, {"name": "idle", "depth": 0}]}`,
		"/api/v1/nodes": `{"kind": "NodeList", "metadata": {"resourceVersion": "7"}, "items": [
			{"kind": "Node", "metadata": {"name": "n1"}, "status": {"phase": "Ready", "devices": [
				{"index": 0, "uuid": "GPU-a", "model": "H100", "memory": "80Gi", "usePercent": 37, "memoryUsed": "12884901888", "numaNode": 0, "health": "ok", "freeMilli": 0},
				{"index": 1, "uuid": "GPU-b", "model": "H100", "memory": "80Gi", "numaNode": 1, "health": "tainted", "healthReason": "XID 79", "freeMilli": 500},
				{"index": 2, "uuid": "GPU-c", "model": "H100", "memory": "80Gi", "numaNode": 1, "health": "ok", "freeMilli": 0, "mig": {"instances": [{"uuid": "MIG-c", "profile": "1g.10gb", "memory": "10Gi", "free": true}]}}]}},
			{"kind": "Node", "metadata": {"name": "n2"}, "status": {"phase": "NotReady"}}]}`,
		"/api/v1/allocations": `{"kind": "AllocationList", "metadata": {"resourceVersion": "7"}, "items": [
			{"kind": "Allocation", "metadata": {"namespace": "ml", "name": "train-0"}, "status": {"phase": "Running", "assignment": {"gpus": [{"uuid": "GPU-a", "milli": 1000}]}}}]}`,
		"/api/v1/jobs": `{"kind": "JobList", "metadata": {"resourceVersion": "7"}, "items": [
			{"kind": "Job", "metadata": {"namespace": "ml", "name": "train"}, "spec": {"queue": "default"}, "status": {"phase": "Running", "active": 2, "allocations": [
				{"name": "train-0", "phase": "Running", "use": {"cpuMillis": 1000, "memoryBytes": 1024, "peakMemoryBytes": 2048, "oomKills": 1, "devices": [{"uuid": "GPU-a", "busyMillis": 500, "peakMemoryBytes": 1073741824}]}},
				{"name": "train-1", "phase": "Running", "use": {"cpuMillis": 500, "memoryBytes": 1024, "peakMemoryBytes": 2048}}]}},
			{"kind": "Job", "metadata": {"namespace": "ml", "name": "over"}, "status": {"phase": "Succeeded"}}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(documents[r.URL.Path])) }))
	defer server.Close()
	s := newShell(t, nil)
	s.save(t, clicontext.Context{Addr: server.URL, Token: token})
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"the devices": {[]string{"top", "-A"}, `NODE   PHASE      GPU      MODEL     NUMA     USE      MEMORY         HEALTH            OWNER
n1     Ready      0        H100      0        37%      12Gi of 80Gi   ok                ml/train-0
n1     Ready      1        H100      1        <none>   80Gi           tainted: XID 79   (taken)
n1     Ready      2        H100      1        <none>   80Gi           ok                <none>
n1     Ready      2:0      1g.10gb   1        <none>   10Gi           ok                <none>
n2     NotReady   <none>   <none>    <none>   <none>   <none>         <none>            <none>

units that wait, by queue: default 3, idle 0
`},
		"the jobs": {[]string{"top", "-A", "--jobs"}, `NAMESPACE   NAME    QUEUE     PHASE     ACTIVE   CPU    MEMORY   PEAK MEMORY   OOM KILLS   GPU TIME   PEAK GPU MEMORY
ml          train   default   Running   2/2      1.5s   2Ki      4Ki           1           500ms      1Gi

units that wait, by queue: default 3, idle 0
`},
	} {
		t.Run(name, func(t *testing.T) {
			code, got, stderr := s.run(t.Context(), "", c.args...)
			if code != ExitDone || got != c.want {
				t.Errorf("exit %d %s, got\n%s\nwant\n%s", code, stderr, got, c.want)
			}
		})
	}
	code, got, _ := s.run(t.Context(), "", "top", "-A", "-o", "jsonpath={.nodes[0].gpus[1].taken} {.nodes[0].gpus[0].owners[0]}")
	if code != ExitDone || strings.TrimSpace(got) != "true ml/train-0" {
		t.Errorf("exit %d, %q: want the document", code, got)
	}
	for _, interval := range []string{"999ms", "61m"} {
		if code, _, stderr := s.run(t.Context(), "", "top", "--interval", interval); code != ExitMisused || !strings.Contains(stderr, "--interval") {
			t.Errorf("--interval %s: exit %d, %s", interval, code, stderr)
		}
	}
}
