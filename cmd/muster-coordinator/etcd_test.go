package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/daemon"
	"github.com/musterd/muster/test/etcdcluster"
)

// TestExternalEtcd runs the program by its flags against a cluster with TLS and
// with exactly the role that docs/store.md gives it, until it leads.
func TestExternalEtcd(t *testing.T) {
	t.Parallel()
	c := etcdcluster.Start(t, etcdcluster.Options{TLS: true, Auth: true})
	files := c.ClientTLS()
	started := make(chan *daemon.Daemon, 1)
	var out bytes.Buffer
	p := program{
		args: []string{
			"--id", "head-1", "--data-dir", t.TempDir(), "--etcd-endpoints", strings.Join(c.Endpoints(), ","), "--etcd-ca-file", files.CAFile,
			"--etcd-cert-file", files.CertFile, "--etcd-key-file", files.KeyFile,
			"--etcd-username", etcdcluster.MusterUser, "--etcd-password-file", write(t, "etcd-password", etcdcluster.Password+"\n"),
			"--token-file", write(t, "token", clusterToken), "--admin-token-file", write(t, "admin-token", adminToken),
			"--rest-listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0", "--serf-bind", "127.0.0.1:0", "--capacity-bind", "127.0.0.1:0",
		},
		stdout: &out, stderr: &out, hostname: host, env: func(string) string { return "" },
		started: func(d *daemon.Daemon) { started <- d },
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	code := -1
	var wg sync.WaitGroup
	wg.Go(func() { code = p.run(ctx); close(started) })
	d, ok := <-started
	if !ok {
		t.Fatalf("it ended with code %d:\n%s", code, &out)
	}
	var metrics string
	for !strings.Contains(metrics, "muster_leader 1") {
		select {
		case <-ctx.Done():
			cancel()
			wg.Wait()
			t.Fatalf("it does not lead:\n%s", &out)
		case <-time.After(20 * time.Millisecond):
		}
		metrics = get(ctx, t, "http://"+d.RESTAddr()+"/metrics")
	}
	for _, want := range []string{"go_goroutines ", "process_resident_memory_bytes ", "muster_store_txn_seconds_count", "muster_store_revision ", `muster_store_alarm{alarm="NOSPACE"} 0`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	cancel()
	wg.Wait()
	if code != exitDone {
		t.Errorf("it ended with code %d:\n%s", code, &out)
	}
}

func get(ctx context.Context, t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return ""
	}
	return string(text)
}
