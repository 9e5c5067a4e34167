package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/musterd/muster/cmd/muster/internal/clicontext"
)

// The documents of spec/api-design.txt, as tables.
func TestNumbersAreShownAsTables(t *testing.T) {
	documents := map[string]string{
		"/api/v1/metrics/cluster/utilization": `{"timestamp": "2024-01-15T10:35:00Z", "cluster": {
			"nodes": {"total": 5000, "ready": 4987, "notReady": 8, "cordoned": 5},
			"cpu": {"capacity": "320000000m", "allocatable": "310000000m", "requested": "248000000m", "used": "186000000m", "utilization": 0.60},
			"memory": {"capacity": "1280Ti", "allocatable": "1240Ti", "requested": "992Ti", "used": "868Ti", "utilization": 0.70},
			"gpu": {"capacity": 2000, "allocatable": 2000, "requested": 1680.5, "used": 1520, "utilization": 0.76}},
			"scheduling": {"pendingAllocations": 142, "schedulingRate": "487/sec", "avgSchedulingLatencyMs": 12, "p99SchedulingLatencyMs": 85, "preemptionsLast1h": 23, "since": "2024-01-15T09:00:00Z"}}`,
		"/api/v1/metrics/queues": `{"queues": [{"name": "default", "depth": 45, "oldestItem": "2024-01-15T10:28:00Z", "avgWaitTime": "12s", "p99WaitTime": "120s"}, {"name": "idle", "depth": 0, "avgWaitTime": "1s", "p99WaitTime": "2s"}]}`,
		"/api/v1/metrics/tenants/ml-team/usage": `{"tenant": "ml-team", "period": "24h", "resources": {
			"cpu": {"quota": "10000", "currentUsage": "6500", "peakUsage": "8200", "avgUsage": "5800", "utilizationOfQuota": 0.65},
			"memory": {"currentUsage": "4Gi", "peakUsage": "8Gi", "avgUsage": "5Gi"}}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(documents[r.URL.Path])) }))
	defer server.Close()
	s := newShell(t, nil)
	s.save(t, clicontext.Context{Addr: server.URL, Token: token})
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"the cluster": {[]string{"metrics", "cluster"}, `RESOURCE   CAPACITY     ALLOCATABLE   REQUESTED    USED         UTILIZATION
cpu        320000000m   310000000m    248000000m   186000000m   60%
memory     1280Ti       1240Ti        992Ti        868Ti        70%
gpu        2000         2000          1680.5       1520         76%

nodes: 5000, 4987 ready, 8 not ready, 5 cordoned
pending allocations: 142; begun in the last minute: 487/sec; preemptions in the last hour: 23
scheduling latency since 2024-01-15T09:00:00Z: 12 ms on average, 85 ms for 99 of 100
`},
		"the queues": {[]string{"metrics", "queues"}, `QUEUE     DEPTH   OLDEST                 AVG-WAIT   P99-WAIT
default   45      2024-01-15T10:28:00Z   12s        120s
idle      0       <none>                 1s         2s
`},
		"a tenant": {[]string{"metrics", "tenant", "ml-team"}, `RESOURCE   QUOTA    CURRENT   PEAK   AVERAGE   OF-QUOTA
cpu        10000    6500      8200   5800      65%
memory     <none>   4Gi       8Gi    5Gi       <none>
`},
	} {
		t.Run(name, func(t *testing.T) {
			code, got, stderr := s.run(context.Background(), "", c.args...)
			if code != ExitDone || got != c.want {
				t.Errorf("exit %d %s, got\n%s\nwant\n%s", code, stderr, got, c.want)
			}
		})
	}
}
