package failpoints_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// ringed runs a test on a cluster whose parts know each other through gossip
// alone.
func ringed(t *testing.T, test func(*testing.T, *rig.Cluster)) {
	t.Helper()
	bubble(t, rig.Options{Rings: true, Poll: time.Second, Heartbeat: 10 * time.Second}, test)
}

// seen is a member's state in the serf ring, as a coordinator sees it.
func seen(k *rig.Coordinator, member string) gossip.Status {
	for _, m := range k.Rings.Serf.Members() {
		if m.Name == member {
			return m.Status
		}
	}
	return ""
}

// sessions counts the sessions that leaders open from now on.
func sessions(c *rig.Cluster) *atomic.Int32 {
	var n atomic.Int32
	c.OnStep(func(s rig.Step) error {
		if s.Name == "tell hello" && !s.After {
			n.Add(1)
		}
		return nil
	})
	return &n
}

func TestEverybodyIsFoundThroughTags(t *testing.T) {
	ringed(t, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(3)
		w := newClient(t, c)
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 3, Gang: 3})
		w.runs("g")
		c.Eventually("every digest has come to the coordinator", func() bool {
			full := 0
			for _, d := range k.Rings.Capacity.Digests() {
				if strings.HasPrefix(string(d.NodeID), "n") {
					full++
				}
			}
			return full == 3
		})
		c.StartCoordinator("c2")
		k.Crash()
		if c.Leader().ID != "c2" {
			t.Errorf("%s leads", c.Leader().ID)
		}
		c.AwaitReady(3)
		w.settle()
	})
}

func TestAnAgentThatGossipBelievesDeadKeepsAllItHas(t *testing.T) {
	ringed(t, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		w := newClient(t, c)
		w.create(rig.Submission{Name: "g", GPUs: 1, Members: 2, Gang: 2})
		w.runs("g")
		c.Converge()
		opened, before := sessions(c), len(c.Records())
		for _, other := range []string{"c1", "n2"} {
			c.CutGossip("n1", other)
			c.CutGossip(other, "n1")
		}
		c.Eventually("the ring believes n1 dead", func() bool { return seen(k, "n1") == gossip.Failed })
		pass(10 * time.Minute)
		node, err := k.GetNode(t.Context(), "n1")
		if err != nil || node.Status.Phase != "Ready" || opened.Load() != 0 || len(c.Records()) != before || c.Aborted() != 0 {
			t.Errorf("n1 is %+v, %v; %d sessions were opened anew, %d of %d records, %d aborted", node.Status.Phase, err, opened.Load(), len(c.Records()), before, c.Aborted())
		}
		for i, want := range []string{"n2", "n1"} { // where it would fit best goes last
			name := fmt.Sprint("more", i)
			w.create(rig.Submission{Name: name, GPUs: 6})
			w.runs(name)
			if a, err := k.GetAllocation(t.Context(), rig.Namespace, name, 0); err != nil || string(a.Status.NodeID) != want {
				t.Errorf("%s is on %s, want %s; %v", name, a.Status.NodeID, want, err)
			}
		}
		for _, other := range []string{"c1", "n2"} {
			c.HealGossip("n1", other)
			c.HealGossip(other, "n1")
		}
		c.Eventually("the ring sees n1 again", func() bool { return seen(k, "n1") == gossip.Alive })
		w.settle()
	})
}

func TestGossipThatIsTornInTwoChangesNothing(t *testing.T) {
	ringed(t, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(4)
		f := c.StartCoordinator("c2")
		c.Eventually("the ring is whole", func() bool { return seen(k, "c2") == gossip.Alive && seen(f, "n4") == gossip.Alive })
		opened := sessions(c)
		near, far := []string{"c1", "n1", "n2"}, []string{"c2", "n3", "n4"}
		for _, a := range near {
			for _, b := range far {
				c.CutGossip(a, b)
				c.CutGossip(b, a)
			}
		}
		c.Eventually("each half believes the other dead", func() bool { return seen(k, "n4") == gossip.Failed && seen(f, "n1") == gossip.Failed })
		w := newClient(t, c)
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 4, Gang: 4})
		w.runs("g")
		pass(5 * time.Minute)
		if opened.Load() != 0 || c.Aborted() != 0 {
			t.Errorf("%d sessions were opened anew, %d attempts aborted", opened.Load(), c.Aborted())
		}
		for _, a := range near {
			for _, b := range far {
				c.HealGossip(a, b)
				c.HealGossip(b, a)
			}
		}
		c.Eventually("the ring is whole again", func() bool { return seen(k, "n4") == gossip.Alive && seen(f, "n1") == gossip.Alive })
		w.settle()
	})
}

func TestGossipThatFlapsAndLosesPacketsChangesNothing(t *testing.T) {
	for name, oneWay := range map[string]bool{"both ways": false, "one way": true} {
		t.Run(name, func(t *testing.T) {
			ringed(t, func(t *testing.T, c *rig.Cluster) {
				k := c.Bring(3)
				c.Lose(20, 1)
				opened := sessions(c)
				w := newClient(t, c)
				for i := range 20 {
					c.CutGossip("n1", "c1")
					if !oneWay {
						c.CutGossip("c1", "n1")
					}
					pass(7 * time.Second)
					c.HealGossip("n1", "c1")
					c.HealGossip("c1", "n1")
					pass(3 * time.Second)
					if i%5 == 0 {
						name := "g" + string(rune('a'+i))
						w.create(rig.Submission{Name: name, GPUs: 2, Members: 3, Gang: 3})
						w.runs(name)
					}
				}
				if opened.Load() != 0 || c.Aborted() != 0 {
					t.Errorf("%d sessions were opened anew, %d attempts aborted", opened.Load(), c.Aborted())
				}
				c.Lose(0, 1)
				c.Eventually("the ring sees n1", func() bool { return seen(k, "n1") == gossip.Alive })
				w.settle()
			})
		})
	}
}

func TestAnAgentThatComesBackIsFoundAgain(t *testing.T) {
	ringed(t, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		w := newClient(t, c)
		w.create(rig.Submission{Name: "g", GPUs: 8, Members: 2, Gang: 2})
		w.runs("g")
		c.Agent("n1").Crash()
		c.Eventually("the ring believes n1 dead", func() bool { return seen(k, "n1") == gossip.Failed })
		a, err := k.GetJob(t.Context(), rig.Namespace, "g", 0)
		if err != nil || a.Status.Phase != api.Running {
			t.Errorf("%v, %+v", err, a)
		}
		c.Agent("n1").Start()
		c.Agent(resource.NodeID("n2")).PowerCycle()
		w.settle()
	})
}
