package coordinator_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// decideBan writes an administrator's decision, as coordinator/enroll does.
func decideBan(t *testing.T, c *rig.Cluster, node resource.NodeID, b record.Ban) {
	t.Helper()
	b.At, b.Generation = "2026-01-02T03:04:05Z", time.Now().UnixMilli()
	if _, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.BanKey(node), record.MustEncode(b))}}); err != nil {
		t.Fatal(err)
	}
}

// shownBanned checks a coordinator's view of a node.
func shownBanned(t *testing.T, c *rig.Cluster, k *rig.Coordinator, node string, want bool) {
	t.Helper()
	c.Eventually(k.ID+" shows whether "+node+" is banned", func() bool {
		n, err := k.GetNode(t.Context(), node)
		return err == nil && (n.Status.Phase == "Banned") == want
	})
	n, err := k.GetNode(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	has := false
	for _, o := range n.Status.Conditions {
		if o.Type == "Banned" {
			has = true
			if o.Status != "True" || o.Message != "an administrator (ann) banned it: hostile" || o.LastTransitionTime != "2026-01-02T03:04:05Z" {
				t.Errorf("%s shows %+v", k.ID, o)
			}
		}
	}
	if has != want || want && (ready(n).Status != "False" || ready(n).Reason != "Banned") {
		t.Errorf("%s shows %s: %+v, banned %t", k.ID, node, n.Status.Conditions, want)
	}
}

func TestABannedNodeTakesNoWorkAndIsNotDialled(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		follower := c.StartCoordinator("c2")
		on := allocateOn(t, c, rig.Submission{Name: "a", GPUs: 4})
		decideBan(t, c, on, record.Ban{Banned: true, By: "ann", Reason: "hostile"})
		for _, each := range []*rig.Coordinator{k, follower} {
			shownBanned(t, c, each, string(on), true)
		}
		if got := phase(t, c, "a", api.Running); got.Status.NodeID != on {
			t.Errorf("what runs there moved to %s", got.Status.NodeID)
		}
		if other := allocateOn(t, c, rig.Submission{Name: "b", GPUs: 4}); other == on {
			t.Error("a banned node takes new work")
		}
		var messages atomic.Int64
		c.Tap(func(m rig.Message) bool {
			if m.Node == on {
				messages.Add(1)
			}
			return true
		})
		k.AgentSeen(on, string(on)) // gossip reports it: nobody dials it
		time.Sleep(time.Minute)
		shownBanned(t, c, k, string(on), true)

		k.Stop() // a failover keeps the ban
		c.Eventually("the other leads", func() bool { return c.Leader() == follower })
		shownBanned(t, c, follower, string(on), true)
		time.Sleep(time.Minute)
		n, err := follower.GetNode(t.Context(), string(on))
		if err != nil || strings.Contains(ready(n).Message, "AgentReady") {
			t.Errorf("%v: %+v", err, n.Status)
		}
		if other := allocateOn(t, c, rig.Submission{Name: "d", GPUs: 4}); other == on {
			t.Error("the next leader gives it new work")
		}
		if n := messages.Load(); n > 0 {
			t.Errorf("%d messages between leaders and the banned node", n)
		}

		decideBan(t, c, on, record.Ban{By: "ann"})
		shownBanned(t, c, follower, string(on), false)
		c.AwaitReady(2)
		if back := allocateOn(t, c, rig.Submission{Name: "e", GPUs: 4}); back != on {
			t.Errorf("what fits there alone runs on %s", back)
		}
		c.Converge()
	})
}

func TestADeletedNodeLosesItsCertificate(t *testing.T) {
	bubble(t, beating, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		enrolled := record.Enrolled{Keys: []string{"ab"}, Issuer: "00", Expires: "2126-01-02T03:04:05Z", Enrolled: "2026-01-02T03:04:05Z", Generation: 7}
		if _, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(record.EnrolledKey("n1"), record.MustEncode(enrolled))}}); err != nil {
			t.Fatal(err)
		}
		lose(t, c, "n1")
		if _, err := k.DeleteNode(t.Context(), "n1", api.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		kv, found, _, err := c.Store.Get(t.Context(), record.EnrolledKey("n1"))
		if err != nil || !found {
			t.Fatalf("found %t, %v", found, err)
		}
		got, err := record.Decode[record.Enrolled](kv.Key, kv.Value)
		if err != nil || got.Ended == "" || len(got.Keys) != 0 || got.Generation <= 7 || got.Expires != enrolled.Expires {
			t.Errorf("left: %+v, %v", got, err)
		}
	})
}
