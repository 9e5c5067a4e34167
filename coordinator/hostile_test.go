package coordinator_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	health "github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// isolated is the condition of a node that is isolated, nil if it is not.
func isolated(t *testing.T, k *rig.Coordinator, node string) *api.Condition {
	t.Helper()
	n, err := k.GetNode(t.Context(), node)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(n.Status.Conditions, func(c api.Condition) bool { return c.Type == "ProtocolViolation" })
	if i < 0 {
		return nil
	}
	if !n.Spec.Unschedulable && n.Status.Phase != "ProtocolViolation" {
		t.Errorf("%s has the condition, and its phase is %s", node, n.Status.Phase)
	}
	return &n.Status.Conditions[i]
}

// lying changes every vote of one node.
func lying(c *rig.Cluster, node resource.NodeID, lie func(*musterv1.Reply)) {
	c.Tap(func(m rig.Message) bool {
		if r := m.FromAgent.GetReply(); m.Node == node && r.GetState() == musterv1.Reply_RESERVED {
			lie(r)
		}
		return true
	})
}

func TestAVoteForSomethingElseIsolatesItsNode(t *testing.T) {
	cases := map[string]struct {
		lie  func(*musterv1.Reply)
		want string // in the condition's message
	}{
		"a member below 0":    {func(r *musterv1.Reply) { r.Members[0].Member = -1 }, "-1"},
		"waits for nobody":    {func(r *musterv1.Reply) { r.State = musterv1.Reply_WAITING }, "nothing was named"},
		"no members":          {func(r *musterv1.Reply) { r.Members = nil }, "members []"},
		"another's member":    {func(r *musterv1.Reply) { r.Members[0].Member++ }, "asked for member"},
		"a member more":       {func(r *musterv1.Reply) { r.Members = append(r.Members, &musterv1.MemberAssignment{Member: 7}) }, "asked for 1"},
		"a member twice":      {func(r *musterv1.Reply) { r.Members = append(r.Members, r.Members[0]) }, "member 0 follows member 0"},
		"nothing in it":       {func(r *musterv1.Reply) { r.Members[0].Assignment = &musterv1.Assignment{} }, "millicores"},
		"a device less":       {func(r *musterv1.Reply) { a := r.Members[0].Assignment; a.Gpus = a.Gpus[1:] }, "devices, want"},
		"a device of another": {func(r *musterv1.Reply) { r.Members[0].Assignment.Gpus[0].Uuid = "GPU-foreign" }, "GPU-foreign"},
		"no incarnation":      {func(r *musterv1.Reply) { r.Incarnation = nil }, "incarnation"},
		"less memory": {func(r *musterv1.Reply) {
			r.Members[0].Assignment.Memory[0].Bytes /= 2
		}, "memory"},
	}
	broken := map[string]bool{"a member below 0": true, "a member twice": true} // the message contradicts itself
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
				k := c.Bring(2)
				epoch := k.Self().Epoch
				lying(c, "n1", test.lie)
				a := allocate(t, k, rig.Submission{Name: "a", GPUs: 2, Wait: time.Second})
				if a.Status.Phase != api.Running || a.Status.NodeID != "n2" {
					t.Errorf("%s on %s, want Running on n2", a.Status.Phase, a.Status.NodeID)
				}
				var v *api.Condition
				c.Eventually("the isolation is written", func() bool {
					v = isolated(t, k, "n1")
					return v != nil
				})
				reason := "WrongVote"
				if broken[name] {
					reason = "WrongMessage"
				}
				if v == nil || v.Reason != reason || !strings.Contains(v.Message, test.want) {
					t.Fatalf("condition %+v, want %s with %q", v, reason, test.want)
				}
				if k.Self().Epoch != epoch {
					t.Error("the term has ended")
				}
			})
		})
	}
}

// Two nodes vote for a gang, and one claims the member of the other.
func TestAVoteMovesNobodyElsesMember(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(3)
		lying(c, "n1", func(r *musterv1.Reply) { r.Members[0].Member = 1 - r.Members[0].Member })
		submit(t, k, rig.Submission{Name: "j", GPUs: 8, Members: 2, Gang: 2, Wait: time.Second})
		nodes := map[resource.NodeID]bool{}
		for _, name := range []string{"j-0", "j-1"} {
			nodes[phase(t, c, name, api.Running).Status.NodeID] = true
		}
		if len(nodes) != 2 || nodes["n1"] {
			t.Errorf("the gang runs on %v, want n2 and n3", nodes)
		}
		c.Eventually("the isolation of n1 is written", func() bool { return isolated(t, k, "n1") != nil })
	})
}

func TestAnIsolationOutlivesItsLeaderAndEndsByAnOperator(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		allocate(t, k, rig.Submission{Name: "before", GPUs: 8}) // on n1
		phase(t, c, "before", api.Running)
		f := c.StartCoordinator("c2")
		lying(c, "n2", func(r *musterv1.Reply) { r.Members = nil })
		a := allocate(t, k, rig.Submission{Name: "a", GPUs: 1, Wait: time.Second})
		if a.Status.Phase != api.Pending {
			t.Errorf("a is %s, and nobody but the liar has room", a.Status.Phase)
		}
		c.Tap(nil)
		c.Eventually("the follower shows it", func() bool { return isolated(t, f, "n2") != nil })
		k.Stop()
		c.Eventually("the other leads", func() bool { return c.Leader() == f })
		time.Sleep(time.Minute)
		if v := isolated(t, f, "n2"); v == nil || v.Reason != "WrongVote" {
			t.Fatalf("the next leader shows %+v", v)
		}
		c.Agent("n2").Restart() // it registers again
		time.Sleep(time.Minute)
		if v := isolated(t, f, "n2"); v == nil {
			t.Fatal("a registration has ended the isolation")
		}
		phase(t, c, "a", api.Pending)
		if _, err := f.SetUnschedulable(t.Context(), "n2", false); err != nil {
			t.Fatal(err)
		}
		phase(t, c, "a", api.Running)
		if v := isolated(t, f, "n2"); v != nil {
			t.Errorf("after it was let back: %+v", v)
		}
		c.Converge()
	})
}

// A workload on an isolated node goes on, and ends when its owner wants.
func TestWhatRunsOnAnIsolatedNodeCanEnd(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "runs", GPUs: 2})
		c.Converge()
		lying(c, "n1", func(r *musterv1.Reply) { r.Members = nil })
		allocate(t, k, rig.Submission{Name: "a", GPUs: 2, Wait: time.Second})
		c.Tap(nil)
		if isolated(t, k, "n1") == nil {
			t.Fatal("n1 is not isolated")
		}
		phase(t, c, "runs", api.Running)
		remove(t, k, "runs")
		phase(t, c, "runs", "")
	})
}

func TestAPanicOverAMessageEndsTheTermAndSeversItsNode(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 1}) // on n1
		c.Converge()
		epoch := k.Self().Epoch
		k.Trip("n1")
		c.Eventually("another term has begun", func() bool { return k.Leading() && k.Self().Epoch > epoch })
		v := isolated(t, k, "n1")
		if v == nil || v.Reason != "Panic" {
			t.Fatalf("condition %+v, want Panic", v)
		}
		var hellos atomic.Int32
		c.Tap(func(m rig.Message) bool {
			if m.Node == "n1" && m.ToAgent.GetHello() != nil {
				hellos.Add(1)
			}
			return true
		})
		b := allocate(t, k, rig.Submission{Name: "b", GPUs: 1, Wait: time.Minute})
		if b.Status.NodeID != "n2" {
			t.Errorf("b is %s on %q", b.Status.Phase, b.Status.NodeID)
		}
		phase(t, c, "a", api.Running)
		f := c.StartCoordinator("c2")
		k.Stop()
		c.Eventually("the other leads", func() bool { return c.Leader() == f })
		time.Sleep(5 * time.Minute)
		if n := hellos.Load(); n != 0 {
			t.Errorf("%d streams were opened to the node", n)
		}
		if _, err := f.SetUnschedulable(t.Context(), "n1", false); err != nil {
			t.Fatal(err)
		}
		c.AwaitReady(2)
		c.Converge()
	})
}

func TestGossipMovesNoStream(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		var hellos atomic.Int32
		c.Tap(func(m rig.Message) bool {
			if m.ToAgent.GetHello() != nil {
				hellos.Add(1)
			}
			return true
		})
		for range 100 {
			k.AgentSeen("n1", "n2")    // another's address
			k.AgentSeen("ghost", "n2") // nobody's id
			k.AgentSuspected("ghost", true)
			time.Sleep(100 * time.Millisecond)
		}
		if n := hellos.Load(); n != 0 {
			t.Errorf("gossip has opened %d streams", n)
		}
		list, err := k.ListNodes(t.Context())
		if err != nil || len(list.Items) != 2 {
			t.Errorf("%d nodes, %v", len(list.Items), err)
		}
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8})
		phase(t, c, "a", api.Running)
		c.Converge()
	})
}

// hung loses every reserve for a node, from now on.
func hung(c *rig.Cluster, node resource.NodeID) {
	c.Tap(func(m rig.Message) bool { return m.Node != node || m.ToAgent.GetReserve() == nil })
}

func TestANodeThatHangsDelaysOneUnit(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		hung(c, "n1")
		start := time.Now()
		first := make(chan *api.Allocation)
		go func() { first <- allocate(t, k, rig.Submission{Name: "first", GPUs: 1, Wait: time.Minute}) }()
		time.Sleep(600 * time.Millisecond) // past a quarter of the budget
		for i := range 5 {
			before := time.Now()
			a := allocate(t, k, rig.Submission{Name: fmt.Sprint("a", i), GPUs: 1, Wait: time.Minute})
			if took := time.Since(before); a.Status.NodeID != "n2" || took > 100*time.Millisecond {
				t.Errorf("a%d: %s on %q after %v, want n2 at once", i, a.Status.Phase, a.Status.NodeID, took)
			}
		}
		a := <-first
		if took := time.Since(start); a.Status.NodeID != "n2" || took > 3*time.Second {
			t.Errorf("the first: %s on %q after %v, want n2 after the vote budget", a.Status.Phase, a.Status.NodeID, took)
		}
	})
}

func TestANodeThatFailsAgainAndAgainIsSuspect(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		suspect := func() string {
			n, err := k.GetNode(t.Context(), "n1")
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range n.Status.Conditions {
				if c.Type == "Suspect" {
					return c.Reason + ": " + c.Message
				}
			}
			return ""
		}
		c.Tap(func(m rig.Message) bool {
			if r := m.FromAgent.GetReply(); r.GetState() == musterv1.Reply_RESERVED {
				no(r)
			}
			return true
		})
		allocate(t, k, rig.Submission{Name: "a", GPUs: 1, Wait: 5 * time.Second})
		if got := suspect(); !strings.Contains(got, "NotAnsweringReserves") || !strings.Contains(got, "refused although there was room") {
			t.Errorf("the condition is %q", got)
		}
		c.Tap(nil)
		phase(t, c, "a", api.Running) // nothing else fits: it goes back there
		c.Eventually("the node is no suspect after a vote", func() bool { return suspect() == "" })
		c.Converge()
	})
}

// A node that votes late each time delays a unit now and then, not each.
func TestANodeThatVotesLateIsTheLastChoice(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		c.Tap(func(m rig.Message) bool {
			if m.Node == "n1" && m.FromAgent.GetReply().GetState() == musterv1.Reply_RESERVED {
				time.Sleep(1900 * time.Millisecond)
			}
			return true
		})
		slow := 0
		for i := range 30 {
			start := time.Now()
			name := fmt.Sprint("a", i)
			allocate(t, k, rig.Submission{Name: name, GPUs: 1, Wait: time.Minute})
			if time.Since(start) > 100*time.Millisecond {
				slow++
			}
			remove(t, k, name)
			phase(t, c, name, "")
			time.Sleep(time.Second)
		}
		if slow < 1 || slow > 4 {
			t.Errorf("%d of 30 allocations waited for the late node, want a few", slow)
		}
	})
}

// A vote under a registration that the store does not have never commits.
func TestAVoteOfAnotherRegistrationIsAvoided(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		lying(c, "n1", func(r *musterv1.Reply) { r.RegisteredRevision += 1000 })
		for i := range 5 {
			start := time.Now()
			name := fmt.Sprint("a", i)
			a := allocate(t, k, rig.Submission{Name: name, GPUs: 1, Wait: time.Minute})
			if took := time.Since(start); a.Status.NodeID != "n2" || took > time.Second {
				t.Errorf("%s: %s on %q after %v, want n2", name, a.Status.Phase, a.Status.NodeID, took)
			}
			remove(t, k, name) // so that both nodes are equal again
			phase(t, c, name, "")
		}
		c.Eventually("the node is a suspect", func() bool {
			n, err := k.GetNode(t.Context(), "n1")
			return err == nil && slices.ContainsFunc(n.Status.Conditions, func(c api.Condition) bool { return c.Type == "Suspect" })
		})
	})
}

// A node that repeats a message, or sends new ones, as fast as it can delays no
// other node, and a repeated message wakes no unit.
func TestAFloodStarvesNoClient(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		c.Converge()
		generation := k.Generation()
		for range 100 {
			k.Tell(grant.HealthChanged{Node: "n1"})
		}
		synctest.Wait()
		if woken := k.Generation() - generation; woken != 0 {
			t.Errorf("100 messages without news have woken everything %d times", woken)
		}
		var told atomic.Int64
		var over atomic.Bool
		var flood sync.WaitGroup
		flood.Go(func() {
			for i := 0; !over.Load(); i++ {
				sick := map[int]grant.DeviceHealth{0: {Health: health.Tainted, Reason: fmt.Sprint(i)}}
				k.Tell(grant.HealthChanged{Node: "n1", Health: sick})
				k.Tell(grant.Replied{Node: "n1", Tx: "u.1.1.00000000000000000000000000000001", State: grant.Tombstone})
				if told.Add(2)%64 == 0 {
					time.Sleep(time.Microsecond) // the bubble's clock has to go on
				}
			}
		})
		for i := range 10 {
			before := time.Now()
			allocate(t, k, rig.Submission{Name: fmt.Sprint("a", i), GPUs: 1, Wait: time.Minute})
			if took := time.Since(before); took > 50*time.Millisecond {
				t.Errorf("an allocation took %v beside the flood", took)
			}
		}
		over.Store(true)
		flood.Wait()
		k.Tell(grant.HealthChanged{Node: "n1"})
	})
}

// An operator's cordon is not an isolation, and the store keeps both apart.
func TestACordonIsNoIsolation(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		if _, err := k.SetUnschedulable(t.Context(), "n1", true); err != nil {
			t.Fatal(err)
		}
		if v := isolated(t, k, "n1"); v != nil {
			t.Errorf("%+v", v)
		}
		kv, _, _, err := c.Store.Get(t.Context(), record.NodeSpecKey("n1"))
		if err != nil {
			t.Fatal(err)
		}
		if spec, err := record.Decode[record.NodeSpec](kv.Key, kv.Value); err != nil || spec.Violation != nil {
			t.Errorf("%v: %+v", err, spec.Violation)
		}
	})
}
