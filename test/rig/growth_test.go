package rig_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// growing is a cluster of a single host, which finds a part of a DGX.
type growing struct {
	*rig.Cluster
	t     *testing.T
	gpus  atomic.Int32 // found by the host
	other atomic.Bool  // the last of them is of another model
}

// runGrowing runs a test with a host of 2 GPUs, under approval of growth.
func runGrowing(t *testing.T, test func(g *growing)) {
	synctest.Test(t, func(t *testing.T) {
		g := &growing{t: t}
		g.gpus.Store(2)
		profile, err := fake.Lookup("dgx-a100")
		if err != nil {
			t.Fatal(err)
		}
		g.Cluster = rig.New(t, rig.Options{ApproveGrowth: true, Equip: func(_ *agent.Config, deps *agent.Deps) {
			inventory, n := profile.Inventory("n1"), int(g.gpus.Load())
			inventory.Devices, inventory.Links = inventory.Devices[:n], inventory.Links[:n]
			for i := range inventory.Links {
				inventory.Links[i] = inventory.Links[i][:n]
			}
			if g.other.Load() {
				inventory.Devices[n-1].Model = "NVIDIA H100"
			}
			topology := profile.Topology()
			if n > 2 {
				topology.Nodes[0].Hugepages = map[int]int64{2048: 1024}
				topology.Nodes[1].Memory += 512 << 30
			}
			deps.Discovered.Topology, deps.Discovered.Inventory, deps.HostLike = topology, inventory, nil
		}})
		g.StartCoordinator("c1")
		g.StartAgent("n1")
		g.AwaitReady(1)
		test(g)
		g.Converge()
	})
}

func (g *growing) node() *api.Node {
	g.t.Helper()
	n, err := g.Leader().GetNode(g.t.Context(), "n1")
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

// boots starts the host with so many GPUs, and waits for the phase.
func (g *growing) boots(gpus int32, phase string) {
	g.t.Helper()
	g.gpus.Store(gpus)
	before := *g.node().Status.Incarnation
	g.Agent("n1").Reboot()
	g.Eventually("n1 has registered anew and is "+phase, func() bool {
		n, err := g.Leader().GetNode(g.t.Context(), "n1")
		return err == nil && n.Status.Phase == phase && *n.Status.Incarnation != before && n.Status.Conditions[0].Status == "True"
	})
}

// submit submits an allocation of a wanted phase.
func (g *growing) submit(name, requests string, want api.Phase) {
	g.t.Helper()
	document := []byte(`{"metadata":{"name":"` + name + `"},"spec":{"resources":{"requests":{` + requests + `}}}}`)
	doc, status := api.DecodeAllocation(document)
	if status != nil {
		g.t.Fatal(status)
	}
	a, err := g.Leader().CreateAllocation(g.t.Context(), service.Create{Namespace: rig.Namespace, Document: document, Wait: time.Minute, Repeated: new(bool)}, doc)
	if err != nil || a.Status.Phase != want {
		g.t.Fatalf("%s is %+v, want %s: %v", name, a, want, err)
	}
}

func (g *growing) becomes(name string, want api.Phase) {
	g.t.Helper()
	g.Eventually(name+" is "+string(want), func() bool {
		a, err := g.Leader().GetAllocation(g.t.Context(), rig.Namespace, name, 0)
		return err == nil && a.Status.Phase == want
	})
}

func (g *growing) gives(gpus, pages string) {
	g.t.Helper()
	g.Eventually("n1 gives "+gpus+" GPUs and "+pages+" huge pages", func() bool {
		v := g.node().Status.Allocatable
		return v[resource.GPU] == gpus && v["hugepages-2Mi"] == pages
	})
}

func (g *growing) approve() {
	g.t.Helper()
	if _, err := g.Leader().ApproveNode(g.t.Context(), "n1", api.ApproveOptions{ResourceVersion: g.node().Metadata.ResourceVersion}); err != nil {
		g.t.Fatal(err)
	}
}

func TestAHostThatGrewGivesTheApprovedPartUntilTheRestIsApproved(t *testing.T) {
	runGrowing(t, func(g *growing) {
		small := g.node().Status.Allocatable[resource.Memory]
		g.submit("before", `"nvidia.com/gpu":"1"`, api.Running)
		g.boots(8, "AwaitingApproval")
		g.becomes("before", api.Running)
		g.gives("2", "")
		n := g.node()
		if got := n.Status.Allocatable[resource.Memory]; got != small {
			g.t.Errorf("%s of memory are given, want the approved %s", got, small)
		}
		if ready := n.Status.Conditions[0]; !strings.Contains(ready.Message, "nvidia.com/gpu 2 → 8") || !strings.Contains(ready.Message, "muster node approve n1") {
			g.t.Errorf("Ready is %+v, want the difference and the command", ready)
		}
		g.submit("within", `"nvidia.com/gpu":"1"`, api.Running)
		g.submit("beyond", `"nvidia.com/gpu":"1"`, api.Pending)
		g.submit("pages", `"cpu":"1","hugepages-2Mi":"2Mi"`, api.Pending)
		for name, want := range map[string]string{"pages": "2Gi of the node are withheld until an operator approves its growth", "beyond": "6 matching GPUs are unhealthy, or withheld until an operator approves"} {
			e, err := g.Leader().ExplainAllocation(g.t.Context(), rig.Namespace, name, service.ExplainOptions{Operator: true})
			if err != nil || len(e.Nodes) != 1 || len(e.Nodes[0].Reasons) == 0 || !strings.Contains(e.Nodes[0].Reasons[0].Detail, want) {
				g.t.Errorf("%v, %s is explained by %+v; want %q", err, name, e, want)
			}
		}

		g.Leader().Crash() // the next leader gives the same part
		g.StartCoordinator("c2")
		g.Eventually("n1 is connected to the next leader", func() bool { return g.node().Status.Phase == "AwaitingApproval" })
		g.boots(8, "AwaitingApproval") // and so after the same registration again
		g.gives("2", "")
		g.becomes("beyond", api.Pending)
		if _, err := g.Leader().DeleteAllocation(g.t.Context(), rig.Namespace, "within", api.DeleteOptions{}); err != nil {
			g.t.Fatal(err)
		}
		g.becomes("beyond", api.Running)
		g.submit("more", `"nvidia.com/gpu":"5"`, api.Pending)

		g.approve()
		g.gives("8", "2Gi")
		g.becomes("more", api.Running)
		g.becomes("pages", api.Running)
		g.boots(8, "Ready")
		g.boots(8, "Ready")
		g.becomes("more", api.Running)
	})
}

func TestAHostWithSomeDevicesOfAnotherModelGivesTheApprovedOnes(t *testing.T) {
	runGrowing(t, func(g *growing) {
		g.other.Store(true)
		g.boots(2, "AwaitingApproval")
		g.gives("1", "")
		g.submit("a", `"nvidia.com/gpu":"1"`, api.Running)
		g.submit("b", `"nvidia.com/gpu":"1"`, api.Pending)
		if d := g.node().Status.Devices; d[0].Withheld || !d[1].Withheld || d[0].Free != 0 {
			g.t.Errorf("devices %+v: want the first used, and the other model withheld", d)
		}
		g.other.Store(false) // the approved device is back
		g.boots(2, "Ready")
		g.becomes("b", api.Running)
	})
}

// Each registration is held to the approval and to the limit, not to the registration before.
func TestAHostThatGrowsAndShrinksGivesTheLeastOfApprovedFoundAndLimit(t *testing.T) {
	runGrowing(t, func(g *growing) {
		limit := func(gpus string) {
			patch, status := api.DecodeNodeStatusPatch("", []byte(`{"status":{"allocatable":{"nvidia.com/gpu":`+gpus+`}}}`))
			if status != nil {
				g.t.Fatal(status)
			}
			if _, err := g.Leader().PatchNodeStatus(g.t.Context(), "n1", patch); err != nil {
				g.t.Fatal(err)
			}
		}
		for _, c := range []struct {
			found int32
			phase string
			limit string // "" keeps the limit
			gives string
		}{
			{8, "AwaitingApproval", "", "2"},
			{1, "Ready", "", "1"}, // less than was approved
			{2, "Ready", "", "2"},
			{8, "AwaitingApproval", `"1"`, "1"},
			{8, "AwaitingApproval", `"5"`, "2"}, // no limit approves
			{8, "AwaitingApproval", "null", "2"},
			{4, "AwaitingApproval", "", "2"},
		} {
			g.boots(c.found, c.phase)
			if c.limit != "" {
				limit(c.limit)
			}
			v := g.node().Status.Allocatable
			if v[resource.GPU] != c.gives {
				g.t.Errorf("with %d GPUs and the limit %s the node gives %s, want %s", c.found, c.limit, v[resource.GPU], c.gives)
			}
		}
		g.approve()
		g.boots(3, "Ready")
		g.boots(4, "Ready")
		g.boots(5, "AwaitingApproval")
		g.boots(4, "Ready")
	})
}

// An approval below the held amounts ends no work. A creation may expect less capacity than
// the host uses.
func TestWorkBeyondTheApprovedPartStays(t *testing.T) {
	runGrowing(t, func(g *growing) {
		for _, name := range []string{"a", "b"} {
			g.submit(name, `"nvidia.com/gpu":"1"`, api.Running)
		}
		key := record.NodeSpecKey("n1")
		kv, _, _, err := g.Store.Get(g.t.Context(), key)
		if err != nil {
			g.t.Fatal(err)
		}
		spec, err := record.Decode[record.NodeSpec](key, kv.Value)
		if err != nil {
			g.t.Fatal(err)
		}
		spec.Approved.Amounts[resource.GPU] = 1000
		if _, err := g.Store.Txn(g.t.Context(), record.Txn{Then: []record.Op{record.Put(key, record.MustEncode(spec))}}); err != nil {
			g.t.Fatal(err)
		}
		g.gives("1", "")
		g.submit("c", `"nvidia.com/gpu":"1"`, api.Pending)
		g.becomes("a", api.Running)
		g.becomes("b", api.Running)
		ends := func(name string) {
			if _, err := g.Leader().DeleteAllocation(g.t.Context(), rig.Namespace, name, api.DeleteOptions{}); err != nil {
				g.t.Fatal(err)
			}
		}
		ends("a") // b holds the approved GPU
		g.Eventually("the GPU of a is free and withheld", func() bool {
			d := g.node().Status.Devices
			return d[0].Free+d[1].Free == resource.WholeDevice && d[0].Withheld == (d[0].Free > 0) && d[1].Withheld == (d[1].Free > 0)
		})
		g.becomes("c", api.Pending)
		ends("b")
		g.becomes("c", api.Running)
		g.approve()
		g.gives("2", "")
	})
}
