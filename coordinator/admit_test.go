package coordinator_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
	"github.com/musterd/muster/wire"
)

// claims makes the claims of an agent's streams about its host.
func claims(c *rig.Cluster, node resource.NodeID, change func(*grant.Host)) {
	c.Tap(func(m rig.Message) bool {
		if hello := m.FromAgent.GetHello(); hello != nil && m.Node == node {
			h, err := wire.FromHost(hello.GetHost())
			if err != nil {
				panic(err)
			}
			change(&h)
			hello.Host = wire.ToHost(h)
		}
		return true
	})
}

// hardwareOf gives a host the hardware of a profile.
func hardwareOf(t *testing.T, deps *agent.Deps, node resource.NodeID, profile string) {
	t.Helper()
	p, err := fake.Lookup(profile)
	if err != nil {
		t.Error(err)
		return
	}
	deps.Discovered.Topology, deps.Discovered.Inventory, deps.HostLike = p.Topology(), p.Inventory(string(node)), nil
}

// The attack S9: n3 claims by its file, its host name and its stream to be n1,
// and gets nothing of the work that is pinned there.
func TestAHostThatTakesAnothersNameGetsNoWorkPinnedThere(t *testing.T) {
	name := map[string]string{"kubernetes.io/hostname": "n1", "muster.dev/node": "n1"}
	o := rig.Options{Equip: func(config *agent.Config, deps *agent.Deps) {
		if config.Node == "n3" {
			config.Labels = name
			deps.Discovered.Host.Hostname = "n1"
		}
	}}
	bubble(t, o, func(t *testing.T, c *rig.Cluster) {
		claims(c, "n3", func(h *grant.Host) { h.Hostname, h.Labels = "n1", name })
		k := c.Bring(3)
		if _, err := k.SetUnschedulable(t.Context(), "n1", true); err != nil {
			t.Fatal(err)
		}
		for selector := range name {
			a := allocate(t, k, rig.Submission{Name: "by-" + selector[:6], GPUs: 1, NodeSelector: map[string]string{selector: "n1"}, Wait: time.Minute})
			if a.Status.Phase != api.Pending {
				t.Errorf("pinned by %s: %s on %s", selector, a.Status.Phase, a.Status.NodeID)
			}
		}
		n := nodeOf(t, k, "n3")
		if n.Metadata.Labels["kubernetes.io/hostname"] != "n3" || n.Metadata.Labels["muster.dev/node"] != "n3" {
			t.Errorf("n3 has the labels %v", n.Metadata.Labels)
		}
		if got := condition(n, "LabelsIgnored"); got.Status != "True" || !containsAll(got.Message, "kubernetes.io/hostname", "muster.dev/node") {
			t.Errorf("condition %+v", got)
		}
		if _, err := k.SetUnschedulable(t.Context(), "n1", false); err != nil {
			t.Fatal(err)
		}
		for selector := range name {
			if a := phase(t, c, "by-"+selector[:6], api.Running); a.Status.NodeID != "n1" {
				t.Errorf("pinned by %s: on %s", selector, a.Status.NodeID)
			}
		}
		c.Converge()
	})
}

func condition(n *api.Node, kind string) api.Condition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return api.Condition{}
}

func containsAll(text string, parts ...string) bool {
	for _, p := range parts {
		if !contains(fmt.Errorf("%s", text), p) {
			return false
		}
	}
	return true
}

// A stream's labels are nobody's: neither do they select the node, nor do they
// hide the labels in the store.
func TestLabelsOfAStreamSelectNothing(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		claims(c, "n1", func(h *grant.Host) { h.Labels = map[string]string{"zone": "secret"} })
		k := c.Bring(1)
		a := allocate(t, k, rig.Submission{Name: "a", GPUs: 1, NodeSelector: map[string]string{"zone": "secret"}, Wait: time.Minute})
		if _, has := nodeOf(t, k, "n1").Metadata.Labels["zone"]; has || a.Status.Phase != api.Pending {
			t.Errorf("the label is there: %t; a is %s", has, a.Status.Phase)
		}
	})
}

func TestAStreamThatTellsOfMoreThanIsRegisteredGetsNoWork(t *testing.T) {
	o := rig.Options{Equip: func(config *agent.Config, deps *agent.Deps) {
		hardwareOf(t, deps, config.Node, "gpu2")
		config.ReservedMemory = 1 << 30
	}}
	large, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		claim func(*grant.Host)
		want  string // in the condition's message
	}{
		"more devices and CPUs":      {func(h *grant.Host) { h.Topology, h.Inventory = large.Topology(), large.Inventory("n1") }, "nvidia.com/gpu 2 → 8"},
		"other devices":              {func(h *grant.Host) { h.Inventory.Devices[1].Model = "NVIDIA H100" }, `model "NVIDIA H100" 0 → 1`},
		"less kept for the system":   {func(h *grant.Host) { h.ReservedMemory = 0 }, "memory "},
		"less than is registered":    {func(h *grant.Host) { h.ReservedMemory = 2 << 30 }, ""},
		"exactly what is registered": {func(*grant.Host) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, o, func(t *testing.T, cluster *rig.Cluster) {
				claims(cluster, "n1", c.claim)
				k := cluster.StartCoordinator("c1")
				cluster.StartAgent("n1")
				cluster.Eventually("the node has registered and is connected", func() bool {
					n, err := k.GetNode(t.Context(), "n1")
					return err == nil && (n.Status.Phase == "Ready" || condition(n, "Ready").Reason == "HostDiffers")
				})
				a := allocate(t, k, rig.Submission{Name: "a", GPUs: 1, Wait: time.Minute})
				ready := condition(nodeOf(t, k, "n1"), "Ready")
				if c.want == "" {
					if a.Status.Phase != api.Running {
						t.Errorf("a is %s: %+v", a.Status.Phase, ready)
					}
					return
				}
				if a.Status.Phase != api.Pending || ready.Reason != "HostDiffers" || !containsAll(ready.Message, c.want) {
					t.Errorf("a is %s: %+v", a.Status.Phase, ready)
				}
				e, err := k.ExplainAllocation(t.Context(), rig.Namespace, "a", service.ExplainOptions{Operator: true})
				if err != nil || len(e.Nodes) != 1 || len(e.Nodes[0].Reasons) == 0 || !containsAll(e.Nodes[0].Reasons[0].Detail, c.want) {
					t.Errorf("%v, explained by %+v", err, e)
				}
				cluster.Tap(nil) // the next stream claims the truth
				k.Disconnect()
				phase(t, cluster, "a", api.Running)
				cluster.Converge()
			})
		})
	}
}

func TestGrowthTakesNoWorkUntilItIsApproved(t *testing.T) {
	var mu sync.Mutex
	profile := "gpu2"
	grow := func(to string) {
		mu.Lock()
		defer mu.Unlock()
		profile = to
	}
	o := rig.Options{ApproveGrowth: true, Equip: func(config *agent.Config, deps *agent.Deps) {
		mu.Lock()
		defer mu.Unlock()
		hardwareOf(t, deps, config.Node, profile)
	}}
	bubble(t, o, func(t *testing.T, c *rig.Cluster) {
		k := c.StartCoordinator("c1")
		n1 := c.StartAgent("n1")
		is := func(phase string) func() bool {
			return func() bool {
				n, err := c.Leader().GetNode(t.Context(), "n1")
				return err == nil && n.Status.Phase == phase
			}
		}
		c.Eventually("the first registration is approved", is("Ready"))
		allocate(t, k, rig.Submission{Name: "a", GPUs: 1, Wait: time.Minute})
		grow("dgx-a100")
		n1.Reboot()
		c.Eventually("the node awaits approval", is("AwaitingApproval"))
		n := nodeOf(t, k, "n1")
		if got := condition(n, "AwaitingApproval"); got.Status != "True" || got.Reason != "CapacityGrew" || !containsAll(got.Message, "nvidia.com/gpu 2 → 8") {
			t.Errorf("condition %+v", got)
		}
		b := allocate(t, k, rig.Submission{Name: "b", GPUs: 1, Wait: time.Minute})
		if b.Status.Phase != api.Pending {
			t.Errorf("b is %s", b.Status.Phase)
		}
		phase(t, c, "a", api.Running)
		e, err := k.ExplainAllocation(t.Context(), rig.Namespace, "b", service.ExplainOptions{Operator: true})
		if err != nil || len(e.Nodes) != 1 || len(e.Nodes[0].Reasons) == 0 || !containsAll(e.Nodes[0].Reasons[0].Detail, "muster node approve n1") {
			t.Errorf("%v, explained by %+v", err, e)
		}

		c.Eventually("the node is counted", func() bool { return gauge(t, k, "muster_nodes_awaiting_approval") == 1 })

		grow("gpu2") // back to the approved hardware
		n1.Reboot()
		phase(t, c, "b", api.Running)
		c.Eventually("the node is counted no more", func() bool { return gauge(t, k, "muster_nodes_awaiting_approval") == 0 })

		grow("dgx-a100")
		n1.Reboot()
		c.Eventually("the node awaits approval again", is("AwaitingApproval"))
		k.Crash()
		k = c.StartCoordinator("c2")
		c.Eventually("and does under the next leader", is("AwaitingApproval"))
		_, err = k.ApproveNode(t.Context(), "n1", api.ApproveOptions{ResourceVersion: n.Metadata.ResourceVersion})
		refused(t, err, 409, "look at the node")
		_, err = k.ApproveNode(t.Context(), "n9", api.ApproveOptions{})
		refused(t, err, 404, "node n9 not found")
		large := allocate(t, k, rig.Submission{Name: "c", GPUs: 4, Wait: time.Minute})
		if large.Status.Phase != api.Pending {
			t.Errorf("c is %s", large.Status.Phase)
		}
		n = nodeOf(t, k, "n1")
		if n, err = k.ApproveNode(t.Context(), "n1", api.ApproveOptions{ResourceVersion: n.Metadata.ResourceVersion}); err != nil || n.Status.Phase != "Ready" {
			t.Fatalf("%v, %+v", err, n)
		}
		phase(t, c, "c", api.Running)
		n1.Reboot()
		c.Eventually("it stays approved", is("Ready"))
		c.Converge()
	})
}

// gauge reads a metric of a coordinator.
func gauge(t *testing.T, k *rig.Coordinator, name string) float64 {
	t.Helper()
	families, err := k.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

func set(pairs ...string) api.MapPatch {
	p := api.MapPatch{Set: map[string]*string{}}
	for i := 0; i < len(pairs); i += 2 {
		p.Set[pairs[i]] = &pairs[i+1]
	}
	return p
}

func TestOperatorsLabelsAndTaintsDecideWhereWorkGoes(t *testing.T) {
	o := rig.Options{Equip: func(config *agent.Config, _ *agent.Deps) { config.Labels = map[string]string{"zone": "a"} }}
	bubble(t, o, func(t *testing.T, c *rig.Cluster) {
		k := c.StartCoordinator("c1")
		c.Leader()
		follower := c.StartCoordinator("c2")
		c.StartAgent("n1")
		c.StartAgent("n2")
		c.AwaitReady(2)
		inB := map[string]string{"zone": "b"}
		allocate(t, k, rig.Submission{Name: "a", GPUs: 1, NodeSelector: inB})
		phase(t, c, "a", api.Pending)
		n, err := k.PatchNode(t.Context(), "n2", api.NodePatch{Labels: set("zone", "b"), Annotations: set("owner", "ml")})
		if err != nil || n.Metadata.Labels["zone"] != "b" || n.Metadata.Annotations["owner"] != "ml" {
			t.Fatalf("%v, %+v", err, n)
		}
		if a := phase(t, c, "a", api.Running); a.Status.NodeID != "n2" {
			t.Errorf("a is on %s", a.Status.NodeID)
		}
		taints := []api.Taint{{Key: "team", Value: "vision", Effect: "NoSchedule"}}
		if n, err = k.PatchNode(t.Context(), "n2", api.NodePatch{Taints: &taints}); err != nil {
			t.Fatal(err)
		}
		b := allocate(t, k, rig.Submission{Name: "b", GPUs: 1, NodeSelector: inB, Wait: time.Minute})
		if b.Status.Phase != api.Pending {
			t.Errorf("b is %s", b.Status.Phase)
		}
		n = nodeOf(t, k, "n2")
		shown, err := follower.GetNode(t.Context(), "n2")
		if err != nil {
			t.Fatal(err)
		}
		for what, pair := range map[string][2]any{
			"labels": {n.Metadata.Labels, shown.Metadata.Labels}, "annotations": {n.Metadata.Annotations, shown.Metadata.Annotations},
			"taints": {n.Spec.Taints, shown.Spec.Taints}, "version": {n.Metadata.ResourceVersion, shown.Metadata.ResourceVersion},
		} {
			if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
				t.Errorf("%s at the follower (-leader +follower):\n%s", what, diff)
			}
		}
		_, err = follower.PatchNode(t.Context(), "n2", api.NodePatch{Labels: set("zone", "c")})
		refused(t, err, 503, "does not lead") // its REST API passes the patch on

		k.Crash() // operators' settings survive leaders, and registrations
		c.Eventually("the follower leads", func() bool { return c.Leader() == follower })
		c.Agent("n2").Reboot()
		c.Eventually("n2 is back", func() bool {
			n, err := follower.GetNode(t.Context(), "n2")
			return err == nil && n.Status.Phase == "Ready" && n.Metadata.Labels["zone"] == "b" && len(n.Spec.Taints) == 1
		})
		phase(t, c, "b", api.Pending)
		if _, err := follower.PatchNode(t.Context(), "n2", api.NodePatch{Taints: &[]api.Taint{}}); err != nil {
			t.Fatal(err)
		}
		phase(t, c, "b", api.Running)
		n, err = follower.PatchNode(t.Context(), "n2", api.NodePatch{Labels: api.MapPatch{Set: map[string]*string{"zone": nil}}})
		if err != nil || n.Metadata.Labels["zone"] != "a" {
			t.Errorf("%v, without the operators' label the agent's is %q", err, n.Metadata.Labels["zone"])
		}
		c.Converge()
	})
}

func TestAPatchIsRefused(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		n := nodeOf(t, k, "n1")
		for i := range api.MaxLabels {
			if _, err := k.PatchNode(t.Context(), "n1", api.NodePatch{Labels: set(fmt.Sprintf("k%d", i), "v")}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := k.PatchNode(t.Context(), "n1", api.NodePatch{Labels: set("one", "more")})
		refused(t, err, 422, "65 entries, the limit is 64")
		_, err = k.PatchNode(t.Context(), "n1", api.NodePatch{Labels: set("k1", "w"), ResourceVersion: n.Metadata.ResourceVersion})
		refused(t, err, 409, "look at the node and ask again")
		_, err = k.PatchNode(t.Context(), "n9", api.NodePatch{Labels: set("k1", "w")})
		refused(t, err, 404, "node n9 not found")
		n = nodeOf(t, k, "n1")
		if _, err = k.PatchNode(t.Context(), "n1", api.NodePatch{Labels: set("k1", "w"), ResourceVersion: n.Metadata.ResourceVersion}); err != nil {
			t.Error(err)
		}
	})
}

func TestAPatchWithoutAnAnswerLands(t *testing.T) {
	for _, fault := range []rig.Fault{rig.Lost, rig.AnswerLost} {
		bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
			k := c.Bring(1)
			choose, _ := rig.Once(fault, func(x record.Txn) bool { return rig.Touches(x, record.NodeSpecKey("n1")) })
			k.Gate.OnTxn(choose)
			for _, zone := range []string{"a", "b"} {
				if n, err := k.PatchNode(t.Context(), "n1", api.NodePatch{Labels: set("zone", zone)}); err != nil || n.Metadata.Labels["zone"] != zone {
					t.Errorf("%v, %+v", err, n)
				}
			}
			c.Converge()
		})
	}
}

// All settings that operators make at one time are there, and registrations
// that come between remove none of them.
func TestPatchesAtOneTimeAndRegistrationsLoseNothing(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				if i%10 == 0 {
					c.Agent("n1").Reboot()
				}
				if _, err := k.PatchNode(t.Context(), "n1", api.NodePatch{Labels: set(fmt.Sprintf("k%d", i), "v")}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		c.Converge()
		for i := range 40 {
			if n := nodeOf(t, k, "n1"); n.Metadata.Labels[fmt.Sprintf("k%d", i)] != "v" {
				t.Fatalf("k%d is missing in %v", i, n.Metadata.Labels)
			}
		}
	})
}

// A specification that another coordinator has written, at a registration that
// it served, wakes the units that it helps (Q9).
func TestASpecificationFromElsewhereWakesWhatWaits(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		a := allocate(t, k, rig.Submission{Name: "a", GPUs: 1, NodeSelector: map[string]string{"zone": "b"}, Wait: time.Minute})
		if a.Status.Phase != api.Pending {
			t.Fatalf("a is %s", a.Status.Phase)
		}
		key := record.NodeSpecKey("n1")
		kv, _, _, err := c.Store.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := record.Decode[record.NodeSpec](key, kv.Value)
		if err != nil {
			t.Fatal(err)
		}
		spec.Labels = map[string]string{"zone": "b"}
		if _, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(key, record.MustEncode(spec))}}); err != nil {
			t.Fatal(err)
		}
		phase(t, c, "a", api.Running)
	})
}

func TestADeletedNodeForgetsWhatOperatorsSet(t *testing.T) {
	bubble(t, rig.Options{Heartbeat: 10 * time.Second}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		if _, err := k.PatchNode(t.Context(), "n2", api.NodePatch{Labels: set("zone", "b"), Annotations: set("owner", "ml")}); err != nil {
			t.Fatal(err)
		}
		c.Agent("n2").Stop()
		c.Eventually("the node is deleted", func() bool {
			_, err := k.DeleteNode(t.Context(), "n2", api.Preconditions{})
			return err == nil
		})
		c.Agent("n2").Start()
		c.Eventually("it is back", func() bool {
			k.AgentSeen("n2", "n2") // as gossip reports again and again
			n, err := k.GetNode(t.Context(), "n2")
			return err == nil && n.Status.Phase == "Ready"
		})
		if n := nodeOf(t, k, "n2"); n.Metadata.Labels["zone"] != "" || len(n.Metadata.Annotations) != 0 || len(n.Status.OperatorLabels) != 0 {
			t.Errorf("%+v", n.Metadata)
		}
	})
}

// An operator's change that meets a newer specification reads it, and the room
// that the newer one opens is used at once, however late the watch is.
func TestASpecificationThatAChangeHasReadWakesWhatWaits(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 1, NodeSelector: map[string]string{"zone": "b"}})
		phase(t, c, "a", api.Pending)
		c.OnStep(func(s rig.Step) error {
			if strings.HasPrefix(s.Name, "watch ") && !s.After {
				pass(time.Hour)
			}
			return nil
		})
		key := record.NodeSpecKey("n1")
		kv, _, _, err := c.Store.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := record.Decode[record.NodeSpec](key, kv.Value)
		if err != nil {
			t.Fatal(err)
		}
		spec.Labels = map[string]string{"zone": "b"}
		if _, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(key, record.MustEncode(spec))}}); err != nil {
			t.Fatal(err)
		}
		if _, err := k.PatchNode(t.Context(), "n1", api.NodePatch{Annotations: set("owner", "ml")}); rig.Code(err) != 503 { // it is done, and cannot be shown
			t.Fatal(err)
		}
		phase(t, c, "a", api.Running)
		c.OnStep(nil)
	})
}
