package integration

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/storetest"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/etcdcluster"
	"github.com/musterd/muster/test/programs"
)

func TestANodeThatIsConfirmedDeadEndsWhatItHeldAndComesBackFree(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	c.plain("a", 3)
	c.submit(gang("j", 1, gpus(2)))
	c.awaitRunning("j")
	c.awaitConfirmed()
	// What the agent says of itself beside Ready is written once there is a lease;
	// its usage is shown before that.
	programs.Eventually(t, patience, "a heartbeat is heard, which keeps the lease", func() error {
		n, err := c.client.Nodes().Get(soon(t), "node-0")
		if err == nil && len(n.Status.Conditions) < 2 {
			err = fmt.Errorf("%+v", n.Status)
		}
		return err
	})
	for want, args := range map[string][]string{
		"node nowhere not found": {"nowhere"},
		"c1 hears its agent":     {"node-0"},
		"Wait until its lease":   {"node-0", "--confirm-dead"},
	} {
		if _, stderr, code := c.tries(append([]string{"fence"}, args...)...); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("fence %v: code %d, %swant code 1 and %q", args, code, stderr, want)
		}
	}
	for want, args := range map[string][]string{
		"want NODE;":     {"--confirm-dead"},
		"unknown flag":   {"node-0", "--confirmed"},
		"want NODE, got": {"node-0", "node-1"},
	} {
		if _, stderr, code := c.tries(append([]string{"fence"}, args...)...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("fence %v: code %d, %swant code 2 and %q", args, code, stderr, want)
		}
	}
	c.wantPhase("j", api.Running)
	before := c.incarnation("node-0")

	c.agents[0].kill()
	c.awaitPhase("node-0", "NotReady")
	if _, stderr, code := c.tries("fence", "node-0", "--confirm-dead"); code != 1 || !strings.Contains(stderr, "use force") {
		t.Errorf("while the lease lives: code %d, %s", code, stderr)
	}
	c.muster("fence", "node-0", "--force", "--confirm-dead", "--reason", "its fans")
	c.awaitPhase("node-0", "Fenced")
	programs.Eventually(t, patience, "the allocation has failed", func() error {
		a, err := c.client.Allocations(namespace).Get(soon(t), "a", sdk.GetOptions{})
		if err != nil {
			return err
		}
		if a.Status.Phase != api.Failed || !strings.HasPrefix(a.Status.Message, "NodeLost:") || !strings.Contains(a.Status.Message, "its fans") {
			return fmt.Errorf("it is %s: %s", a.Status.Phase, a.Status.Message)
		}
		return nil
	})
	programs.Eventually(t, patience, "the job waits again", func() error {
		if got := c.job("j").Status.Phase; got != api.Queued {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})

	c.agents[0].start()
	c.awaitPhase("node-0", "Ready")
	c.awaitRunning("j") // the queue goes on
	c.awaitConfirmed()
	c.awaitFreeGPUs(1, 6) // the allocation's are
	if after := c.incarnation("node-0"); after != before {
		t.Errorf("incarnation %s, was %s: its journal was lost", after, before)
	}
	c.remove("j")
	c.awaitFreeGPUs(1, 8)
}

// TestAnAgentIsAskedToEvictAndAsksAFollower: an operator's certificate, an
// agent, a coordinator that does not lead, the one that does, and all the way
// back.
func TestAnAgentIsAskedToEvictAndAsksAFollower(t *testing.T) {
	t.Parallel()
	e := etcdcluster.Start(t, etcdcluster.Options{Members: 1})
	c := newCluster(t, 1)
	coordinators := c.replicate(e, 2)
	c.secure()
	c.awaitNodes(1)
	// The agent asks the first address first that it knows: that of c1.
	second := coordinators[1]
	delete(second.settings, "tokenFile")
	second.settings.set("tls.enabled", true).set("tls.rest", true)
	second.configure(second.settings)
	second.start()
	s := c.connect(e)
	leads := func(id string) {
		t.Helper()
		programs.Eventually(t, patience, id+" leads", func() error {
			l, found, err := storetest.CurrentLeader(soon(t), s)
			if err != nil || !found || l.Address.ID != id {
				return fmt.Errorf("%v leads, %w", l, err)
			}
			return nil
		})
	}
	programs.Eventually(t, patience, "both are candidates", func() error {
		kvs, _, err := s.Range(soon(t), record.LeaderPrefix, store.RangeOptions{})
		if err != nil || len(kvs) != 2 {
			return fmt.Errorf("%d are, %w", len(kvs), err)
		}
		return nil
	})
	c.coordinator.kill()
	leads("c2")
	c.coordinator.start()
	c.awaitNodes(1)
	c.plain("a", 8)

	ann := c.certifyOperator("ann")
	conn, err := grpc.NewClient(c.agents[0].settings["listen"].(string), append(ann.DialOptions(rpcauth.NamedNode()), grpc.WithAuthority("node-0"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	agent := schedulerv1.NewNodeAgentClient(conn)
	for allocation, want := range map[string]bool{"default/none": false, "default/a": true} {
		r, err := agent.EvictAllocation(soon(t), &schedulerv1.EvictRequest{AllocationId: allocation, GracePeriodSeconds: 1, Reason: "a test"})
		if err != nil || r.GetAccepted() != want {
			t.Errorf("evict %s: %v, %v; want accepted %t", allocation, r, err, want)
		}
	}
	programs.Eventually(t, patience, "it has ended", func() error {
		a, err := c.client.Allocations(namespace).Get(soon(t), "a", sdk.GetOptions{})
		if err != nil {
			return err
		}
		if a.Status.Phase != api.Preempted {
			return fmt.Errorf("it is %s", a.Status.Phase)
		}
		return nil
	})
	leads("c2")
	c.awaitFreeGPUs(1, 8)
	for name, p := range map[string]*daemon{"c1, which forwards": c.coordinator, "c2, which leads": second} {
		if !p.process.alive() {
			t.Errorf("%s has ended", name)
		}
	}
}
