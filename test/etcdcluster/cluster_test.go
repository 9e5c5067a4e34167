package etcdcluster_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/musterd/muster/test/etcdcluster"
	"github.com/musterd/muster/test/programs"
)

const (
	key = "/registry/k"
	// attempt bounds one request, patience all of its repetitions: members that
	// were paused or lost their leader may refuse what comes in between.
	attempt  = 5 * time.Second
	patience = time.Minute
)

// write puts a value that the key has not had before and returns the revision in
// which it has it. Its repetitions change nothing: the first one that is done
// keeps the others out.
func write(t *testing.T, admin *clientv3.Client, value string) int64 {
	t.Helper()
	var revision int64
	programs.Eventually(t, patience, "put "+value, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), attempt)
		defer cancel()
		r, err := admin.Txn(ctx).If(clientv3.Compare(clientv3.Value(key), "=", value)).
			Then(clientv3.OpGet(key)).Else(clientv3.OpPut(key, value)).Commit()
		if err != nil {
			return err
		}
		revision = r.Header.Revision
		if r.Succeeded {
			revision = r.Responses[0].GetResponseRange().Kvs[0].ModRevision
		}
		return nil
	})
	return revision
}

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
				return write(t, admin, value)
			}
			read := func() string {
				t.Helper()
				var value string
				programs.Eventually(t, patience, "read", func() error {
					ctx, cancel := context.WithTimeout(t.Context(), attempt)
					defer cancel()
					r, err := admin.Get(ctx, key)
					if err == nil && len(r.Kvs) != 1 {
						t.Fatalf("%s is there %d times", key, len(r.Kvs))
					}
					if err == nil {
						value = string(r.Kvs[0].Value)
					}
					return err
				})
				return value
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
