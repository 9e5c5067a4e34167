package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/daemon"
	"github.com/musterd/muster/test/etcdcluster"
)

// A coordinator of another cluster is refused at the same etcd, with both names,
// while one of the same cluster is not. Before there were claims it followed the
// other cluster's leader.
func TestTwoClustersDoNotShareAnEtcd(t *testing.T) {
	t.Parallel()
	c := etcdcluster.Start(t, etcdcluster.Options{})
	start := func(cluster, id string, serves func()) (code int, log string) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		var out bytes.Buffer
		p := program{
			args: []string{
				"--cluster", cluster, "--id", id, "--data-dir", t.TempDir(), "--etcd-endpoints", strings.Join(c.Endpoints(), ","),
				"--token-file", write(t, "token", clusterToken), "--admin-token-file", write(t, "admin-token", adminToken),
				"--rest-listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0", "--serf-bind", "127.0.0.1:0", "--capacity-bind", "127.0.0.1:0", "--serf-rpc-addr", "",
			},
			stdout: &out, stderr: &out, hostname: host, env: func(string) string { return "" },
			started: func(*daemon.Daemon) { serves(); cancel() },
		}
		code = p.run(ctx)
		return code, out.String()
	}
	var inner sync.Once
	code, log := start("alpha", "head-1", func() {
		inner.Do(func() {
			if code, log := start("beta", "head-2", func() {}); code != exitFailed || !strings.Contains(log, `belongs to cluster "alpha"`) || !strings.Contains(log, `of cluster "beta"`) {
				t.Errorf("a coordinator of beta ends with %d, want %d and a message with both names:\n%s", code, exitFailed, log)
			}
			if code, log := start("alpha", "head-3", func() {}); code != exitDone {
				t.Errorf("another coordinator of alpha ends with %d:\n%s", code, log)
			}
		})
	})
	if code != exitDone {
		t.Errorf("alpha's coordinator ends with %d:\n%s", code, log)
	}
}
