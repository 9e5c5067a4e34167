package etcdcluster_test

import (
	"testing"

	"github.com/musterd/muster/test/etcdcluster"
)

// TestClusterSurvives goes through everything that can be done to a cluster.
func TestClusterSurvives(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]etcdcluster.Options{
		"three plain members": {},
		"TLS and users":       {TLS: true, Auth: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := etcdcluster.Start(t, o)
			admin := c.Admin()
			put := func(value string) int64 {
				t.Helper()
				r, err := admin.Put(t.Context(), "/registry/k", value)
				if err != nil {
					t.Fatal(err)
				}
				return r.Header.Revision
			}
			read := func() string {
				t.Helper()
				r, err := admin.Get(t.Context(), "/registry/k")
				if err != nil || len(r.Kvs) != 1 {
					t.Fatalf("%v, %v", r, err)
				}
				return string(r.Kvs[0].Value)
			}
			before := put("before")
			dir := t.TempDir()
			c.Snapshot(dir)
			put("after")
			leader := c.Leader()
			c.Kill(leader)
			if read() != "after" {
				t.Error("a write was lost with the leader")
			}
			c.Restart(leader)
			c.AwaitHealthy()
			c.Pause(c.Leader())
			c.AwaitHealthy()
			for i := range c.Size() {
				if c.Paused(i) {
					c.Resume(i)
				}
			}
			c.Stop(0)
			c.Restart(0)
			c.AwaitHealthy()
			c.RestoreAll(dir)
			if got := read(); got != "before" {
				t.Errorf("restored %q", got)
			}
			if after := put("again"); after != before+1 {
				t.Errorf("revision %d after the restored %d", after, before)
			}
			c.Replace(1)
			if got := read(); got != "again" {
				t.Errorf("after a member was replaced: %q", got)
			}
		})
	}
}
