package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/era"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/test/etcdcluster"
	"github.com/musterd/muster/test/programs"
)

// TestABackupOfAMomentBeforeIsNoticed: the store goes back by a few revisions while all
// coordinators are stopped, in the middle of a term, and grows beyond every known revision
// before the agents register. All nodes are in quarantine, whoever is left to know.
func TestABackupOfAMomentBeforeIsNoticed(t *testing.T) {
	for name, forget := range map[string]bool{"the coordinators know": false, "the agents alone know": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := etcdcluster.Start(t, etcdcluster.Options{Members: 1})
			c := newCluster(t, 2)
			coordinators := c.replicate(e, 2)
			for _, p := range append(coordinators, c.agents...) {
				p.start()
			}
			c.awaitNodes(2)
			for _, job := range []string{"one", "two"} { // on each node
				c.submit(gang(job, 1, gpus(6)))
				c.awaitRunning(job)
			}
			c.awaitHeld(2)
			backup := t.TempDir()
			e.Snapshot(backup)
			for _, job := range []string{"lost-a", "lost-b"} {
				c.submit(gang(job, 1, gpus(2)))
				c.awaitRunning(job)
			}
			c.awaitHeld(4)
			for _, k := range coordinators {
				if k.stop(); forget {
					if err := os.Remove(filepath.Join(k.dataDir, era.FileName)); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, a := range c.agents {
				a.process.restored = true
			}
			e.RestoreAll(backup)
			c.age(c.connect(e)) // beyond the revisions known to the agents
			for _, k := range coordinators {
				k.start()
			}
			c.awaitPhase("node-0", "Quarantined")
			c.awaitPhase("node-1", "Quarantined")
			kvs, _, err := c.connect(e).Range(soon(t), record.RestoredPrefix, store.RangeOptions{})
			if err != nil || len(kvs) != 1 {
				t.Fatalf("%d restorations are declared, want 1: %v", len(kvs), err)
			}
			for _, node := range []string{"node-0", "node-1"} {
				programs.Eventually(t, patience, "muster reconcile "+node, func() error {
					if out, stderr, code := c.tries("reconcile", node, "--release", "--grace", "0s"); code != 0 {
						return fmt.Errorf("code %d\n%s%s", code, out, stderr)
					}
					return nil
				})
			}
			c.awaitNodes(2)
			programs.Eventually(t, patience, "the lost work is gone", func() error {
				if now := c.holdings(); len(now) != 2 {
					return fmt.Errorf("%v", sorted(now))
				}
				return nil
			})
			programs.Eventually(t, patience, "a node outside quarantine is reconciled", func() error {
				out, stderr, code := c.tries("reconcile", "node-0", "--adopt")
				if code != 0 || !strings.Contains(out+stderr, "kept") {
					return fmt.Errorf("code %d\n%s%s", code, out, stderr)
				}
				return nil
			})
			c.awaitNodes(2)
			c.submit(gang("new", 1, gpus(2)))
			c.awaitRunning("new")
		})
	}
}
