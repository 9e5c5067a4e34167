package integration

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/etcdcluster"
	"github.com/musterd/muster/test/programs"
)

// replicate gives a cluster that has not been started a store of its own and
// coordinators c2 and so on beside c1, so many in all. They are not started.
func (c *cluster) replicate(e *etcdcluster.Cluster, coordinators int) []*daemon {
	c.t.Helper()
	first := c.coordinator
	first.settings.set("etcdEndpoints", e.Endpoints()).set("leaseTTL", "5s")
	first.configure(first.settings)
	all := []*daemon{first}
	for i := 2; i <= coordinators; i++ {
		ports := freePorts(c.t, 5)
		id := fmt.Sprint("c", i)
		all = append(all, newDaemon(c.t, id, "muster-coordinator", first.settings.clone().
			set("id", id).set("restListen", loopback(ports[0])).set("grpcListen", loopback(ports[1])).
			set("gossip.serfBind", loopback(ports[2])).set("gossip.capacityBind", loopback(ports[3])).set("gossip.serfRPC", loopback(ports[4])).set("gossip.join", []string{c.serf})))
	}
	return all
}

// connect is the test's own connection to the cluster's store.
func (c *cluster) connect(e *etcdcluster.Cluster) *etcd.Store {
	c.t.Helper()
	s, err := etcd.Connect(soon(c.t), etcd.Config{Endpoints: e.Endpoints()})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			c.t.Error(err)
		}
	})
	return s
}

// age lets the store grow by what is nobody's, far beyond what elections and
// registrations write.
func (c *cluster) age(s store.Store) {
	c.t.Helper()
	for i := range 200 {
		programs.Eventually(c.t, patience, "the store grows", func() error { // a disk that stands still outlasts a call
			_, err := s.Txn(soon(c.t), record.Txn{Then: []record.Op{record.Put("/age", fmt.Append(nil, i))}})
			return err
		})
	}
}

// TestARestoredStoreIsReconciled: the store goes back under the running
// programs. What it lost is adopted on one node and released on the other; what
// came back ends.
func TestARestoredStoreIsReconciled(t *testing.T) {
	t.Parallel()
	e := etcdcluster.Start(t, etcdcluster.Options{Members: 1})
	c := newCluster(t, 2)
	coordinators := c.replicate(e, 2)
	for _, p := range append(coordinators, c.agents...) {
		p.start()
	}
	c.awaitNodes(2)
	c.submit(gang("kept", 1, gpus(2)))
	c.awaitRunning("kept")
	c.submit(gang("back", 1, gpus(3)))
	c.awaitRunning("back")
	c.awaitHeld(2)
	backup := t.TempDir()
	e.Snapshot(backup)

	s := c.connect(e)
	c.age(s)
	c.remove("back")
	c.submit(gang("one", 1, gpus(6)))
	c.awaitRunning("one")
	c.submit(gang("two", 1, gpus(6)))
	c.awaitRunning("two")
	c.awaitHeld(3)
	before := c.holdings()

	for _, a := range c.agents {
		a.process.restored = true
	}
	e.RestoreAll(backup)
	var back *record.WentBackError
	programs.Eventually(t, patience, "the test's own connection sees it", func() error {
		_, _, _, err := s.Get(soon(t), record.Root)
		if !errors.As(err, &back) {
			return fmt.Errorf("read: %w", err)
		}
		return nil
	})
	c.awaitPhase("node-0", "Quarantined")
	c.awaitPhase("node-1", "Quarantined")
	// A leader that is new shows a node so once it hears the agent.
	programs.Eventually(t, patience, "the nodes are shown in quarantine", func() error {
		if out, stderr, code := c.tries("get", "nodes"); code != 0 || strings.Count(out, "Quarantined") != 2 {
			return fmt.Errorf("code %d\n%s%s", code, out, stderr)
		}
		return nil
	})
	const adopted = "node-0"
	stays, goes := "one-0", "two-0"
	if before["default/one-0"].Node != adopted {
		stays, goes = goes, stays
	}
	// The phase may be a follower's word, before the leader hears the agents.
	for _, node := range []string{"node-1", adopted} {
		programs.Eventually(t, patience, "what would become of "+node+" is known", func() error {
			if out, stderr, code := c.tries("reconcile", node); code != 0 || node == adopted && !strings.Contains(out, strings.TrimSuffix(stays, "-0")) {
				return fmt.Errorf("code %d\n%s%s", code, out, stderr)
			}
			return nil
		})
	}
	// A leader that is deposed in between has its client ask the next one, which
	// may find that all is done.
	for _, args := range [][]string{{adopted, "--adopt"}, {"--all", "--release", "--grace", "0s"}} {
		programs.Eventually(t, patience, fmt.Sprint("muster reconcile ", args), func() error {
			if out, stderr, code := c.tries(append([]string{"reconcile"}, args...)...); code != 0 {
				return fmt.Errorf("code %d\n%s%s", code, out, stderr)
			}
			return nil
		})
	}
	c.awaitNodes(2)
	programs.Eventually(t, patience, "what came back and what was released is gone", func() error {
		if now := c.holdings(); len(now) != 2 {
			return fmt.Errorf("%v", sorted(now))
		}
		return nil
	})
	after := c.holdings()
	for _, name := range []string{"default/kept-0", "default/" + stays} {
		if fmt.Sprint(after[name]) != fmt.Sprint(before[name]) {
			t.Errorf("%s had %v and has %v", name, before[name], after[name])
		}
	}
	if _, there := after["default/"+goes]; there {
		t.Errorf("%s runs", goes)
	}
	c.reuse(before)
	c.accounts(coordinators, "default/new-0")
}

// awaitHeld waits until the agents together hold so many units, by their own
// word. A follower does not know it.
func (c *cluster) awaitHeld(units int) {
	c.t.Helper()
	programs.Eventually(c.t, patience, fmt.Sprintf("the agents hold %d units", units), func() error {
		var all []string
		for _, a := range c.agents {
			all = append(all, c.grants(a)...)
		}
		if held := strings.Count(strings.Join(all, "\n"), " HELD: "); held != units {
			return fmt.Errorf("they hold %d: %v", held, all)
		}
		return nil
	})
}

// reuse fills all that is free, and checks that nothing has two owners.
func (c *cluster) reuse(before map[string]holding) {
	c.t.Helper()
	const free = 16 - 2 - 6
	programs.Eventually(c.t, patience, fmt.Sprintf("%d devices are free", free), func() error {
		n := 0
		for _, ofNode := range c.freeGPUs() {
			n += ofNode
		}
		if n != free {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	for i := range free / 2 {
		c.submit(gang(fmt.Sprint("new-", i), 1, gpus(2)))
		c.awaitRunning(fmt.Sprint("new-", i))
	}
	c.awaitHeld(2 + free/2)
	owners := map[string]string{}
	for name, h := range c.holdings() {
		for _, d := range h.Assignment.GPUs {
			device := fmt.Sprintf("%s/%d", h.Node, d.Index)
			if other, taken := owners[device]; taken {
				c.t.Errorf("%s and %s have %s", name, other, device)
			}
			owners[device] = name
		}
	}
	if len(owners) != 16 {
		c.t.Errorf("%d of 16 devices have an owner; before it was %v", len(owners), before)
	}
}

// accounts checks what the coordinators wrote down.
func (c *cluster) accounts(coordinators []*daemon, unit string) {
	c.t.Helper()
	told := 0
	for _, k := range coordinators {
		dir := filepath.Join(k.dataDir, "decisions")
		if files, err := filepath.Glob(filepath.Join(dir, "*.jsonl")); err != nil || len(files) == 0 {
			continue // it never led
		}
		programs.Eventually(c.t, patience, "the account of "+k.name+" is right", func() error {
			if stdout, stderr, code := execute(c.t, c.env, "muster", "decisions", "check", dir); code != 0 {
				return fmt.Errorf("code %d\n%s%s", code, stdout, stderr)
			}
			return nil
		})
		stdout, _, _ := execute(c.t, c.env, "muster", "decisions", "show", dir, "--unit", unit)
		told += strings.Count(stdout, "the store was restored from a backup")
	}
	if told == 0 {
		c.t.Error("no account tells that the store was restored")
	}
}

// plain creates an allocation that is no job's member.
func (c *cluster) plain(name string, n int) *api.Allocation {
	c.t.Helper()
	a := &api.Allocation{Metadata: api.ObjectMeta{Name: name}}
	a.Spec.Resources.Requests = gpus(n)
	once := sdk.CreateOptions{Wait: patience - 5*time.Second, IdempotencyKey: rand.Text()}
	made := insist(c.user, "create allocation "+name, func(ctx context.Context) (*api.Allocation, error) {
		return c.client.Allocations(namespace).Create(ctx, a, once)
	})
	if made.Status.Phase != api.Running {
		c.t.Fatalf("allocation %s: %+v, want it Running", name, made)
	}
	return made
}
