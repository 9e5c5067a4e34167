package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

func contains(err error, part string) bool { return err != nil && strings.Contains(err.Error(), part) }

func TestACordonedNodeKeepsWhatRunsAndTakesNothingNew(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 4})
		n, err := k.SetUnschedulable(t.Context(), "n1", true)
		if err != nil || !n.Spec.Unschedulable {
			t.Fatalf("%v, %+v", err, n)
		}
		b := allocate(t, k, rig.Submission{Name: "b", GPUs: 4, Wait: time.Second})
		if b.Status.Phase != api.Pending {
			t.Errorf("b is %s", b.Status.Phase)
		}
		e, err := k.ExplainAllocation(t.Context(), rig.Namespace, "b", service.ExplainOptions{Operator: true})
		if err != nil || len(e.Nodes) != 1 || len(e.Nodes[0].Reasons) == 0 || e.Nodes[0].Reasons[0].Code != resource.ReasonCordoned {
			t.Errorf("%v, %+v", err, e)
		}
		k.Crash() // it stays cordoned under the next leader, and through a restart of the agent
		c.Agent("n1").Reboot()
		k = c.StartCoordinator("c2")
		c.Eventually("the agent is back", func() bool {
			n, err := c.Leader().GetNode(t.Context(), "n1")
			return err == nil && n.Status.Phase == "Ready" && n.Spec.Unschedulable
		})
		phase(t, c, "a", api.Running)
		phase(t, c, "b", api.Pending)
		if n, err = k.SetUnschedulable(t.Context(), "n1", false); err != nil || n.Spec.Unschedulable {
			t.Fatalf("%v, %+v", err, n)
		}
		phase(t, c, "b", api.Running)
		c.Converge()
		_, err = k.SetUnschedulable(t.Context(), "n9", true)
		refused(t, err, 404, "node n9 not found")
	})
}

func TestACordonWithoutAnAnswerLands(t *testing.T) {
	for _, fault := range []rig.Fault{rig.Lost, rig.AnswerLost} {
		bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
			k := c.Bring(1)
			choose, _ := rig.Once(fault, func(x record.Txn) bool { return rig.Touches(x, record.NodeSpecKey("n1")) })
			k.Gate.OnTxn(choose)
			for _, cordoned := range []bool{true, false} {
				if n, err := k.SetUnschedulable(t.Context(), "n1", cordoned); err != nil || n.Spec.Unschedulable != cordoned {
					t.Errorf("%v, %+v", err, n)
				}
			}
			c.Converge()
		})
	}
}

func TestANodeThatRegisteredWithAFollowerIsKnownToTheLeader(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.StartCoordinator("c2") // agents ask c1 first
		c.Leader()
		c.StartCoordinator("c1")
		c.StartAgent("n1")
		c.AwaitReady(1)
		var n *api.Node
		c.Eventually("the leader knows the node's capacity", func() bool {
			var err error
			n, err = k.GetNode(t.Context(), "n1")
			return err == nil && n.Status.Capacity[resource.GPU] == "8"
		})
		if n, err := k.SetUnschedulable(t.Context(), "n1", true); err != nil || !n.Spec.Unschedulable {
			t.Errorf("%v, %+v", err, n)
		}
		c.Agent("n1").Reboot() // it registers anew, with the follower
		c.Eventually("the node is back", func() bool {
			n, err := k.GetNode(t.Context(), "n1")
			return err == nil && n.Status.Phase == "Ready" && n.Spec.Unschedulable
		})
		if n, err := k.SetUnschedulable(t.Context(), "n1", false); err != nil || n.Spec.Unschedulable {
			t.Errorf("%v, %+v", err, n)
		}
		// A registration that the leader does not know yet does not keep it
		// from a cordon.
		key := record.NodeSpecKey("n1")
		kv, _, _, err := c.Store.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(key, kv.Value)}}); err != nil {
			t.Fatal(err)
		}
		for _, cordoned := range []bool{true, false} {
			if n, err := k.SetUnschedulable(t.Context(), "n1", cordoned); err != nil || n.Spec.Unschedulable != cordoned {
				t.Errorf("%v, %+v", err, n)
			}
		}
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8, Wait: time.Minute})
		c.Converge()
	})
}

func TestAnExplanationCountsWhatIsShort(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 4})
		submit(t, k, rig.Submission{Name: "gang", GPUs: 8, Members: 3, Gang: 3, Policy: "Never"})
		e, err := k.ExplainJob(t.Context(), rig.Namespace, "gang", service.ExplainOptions{Operator: true})
		if err != nil {
			t.Fatal(err)
		}
		if e.Phase != api.Queued || e.Queue.Position != 1 || e.Queue.OverallLength != 1 || e.Members != 3 || e.Fit != 1 || e.Attempts == 0 || len(e.Quota) != 0 {
			t.Errorf("%+v", e)
		}
		want := "default/gang wants 3 members at once, each with 8 GPUs, 8 CPUs and 8Gi of memory: 1 of 3 members fit: " +
			"12 GPUs short (24 wanted, 12 free) on the 2 nodes that may take it."
		if diff := cmp.Diff(want, e.Summary); diff != "" {
			t.Errorf("summary (-want +got):\n%s", diff)
		}
		var fits []int
		for _, n := range e.Nodes {
			fits = append(fits, n.Fit)
		}
		if len(fits) != 1 || fits[0] != 1 || e.Nodes[0].Count != 2 {
			t.Errorf("nodes %+v", e.Nodes)
		}
		if e, err = k.ExplainAllocation(t.Context(), rig.Namespace, "a", service.ExplainOptions{Operator: true}); err != nil || !strings.HasPrefix(e.Summary, "default/a runs on n") {
			t.Errorf("%v, %+v", err, e)
		}
	})
}
