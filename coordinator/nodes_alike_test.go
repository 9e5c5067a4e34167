package coordinator_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/rig"
)

// versioned is what a coordinator shows of nodes and allocations, by kind, name and
// resourceVersion.
func versioned(t *testing.T, k *rig.Coordinator, into map[string]any) {
	t.Helper()
	nodes, err := k.ListNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		n := nodes.Items[i]
		n.Status.Allocations, n.Status.Available, n.Status.NUMANodes = nil, nil, nil // of the transactions' keys
		for d := range n.Status.Devices {
			n.Status.Devices[d].Free = 0
		}
		note(t, into, "node "+n.Metadata.Name+" at "+n.Metadata.ResourceVersion, &n)
	}
	work, err := k.ListAllocations(t.Context(), "", service.Page[api.Allocation]{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range work.Items {
		a := work.Items[i]
		a.Status.QueuePosition = 0 // computed at the read
		note(t, into, "allocation "+a.Metadata.Name+" at "+a.Metadata.ResourceVersion, &a)
	}
}

// note fails where the same version was shown with another content.
func note(t *testing.T, into map[string]any, version string, object any) {
	t.Helper()
	if before, seen := into[version]; seen {
		if diff := cmp.Diff(before, object); diff != "" {
			t.Fatalf("%s has two contents (-before +now):\n%s", version, diff)
		}
	}
	into[version] = object
}

// TestNodesAreAlikeAtEveryCoordinator: whatever happens to agents, links, devices and
// leaders, one resourceVersion of a node or of an allocation has one content, whoever
// answers and whenever; and once nothing is under way, all coordinators answer alike.
func TestNodesAreAlikeAtEveryCoordinator(t *testing.T) {
	reasons, lost := map[string]bool{}, 0
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 28))
			replaced := map[string]int{} // how many cards of each host were replaced
			equip := func(c *agent.Config, d *agent.Deps) {
				inventory := *d.Discovered.Inventory
				inventory.Devices = slices.Clone(inventory.Devices)
				for at := range replaced[string(c.Node)] {
					inventory.Devices[at].UUID += "-new"
				}
				d.Discovered.Inventory = &inventory
			}
			bubble(t, rig.Options{Equip: equip, Heartbeat: 5 * time.Second}, func(t *testing.T, c *rig.Cluster) {
				c.Bring(3)
				c.StartCoordinator("c2")
				c.StartCoordinator("c3")
				c.Eventually("all are ready", func() bool {
					for _, k := range c.Coordinators() {
						if k.Ready(t.Context()) != nil {
							return false
						}
					}
					return true
				})
				seen := map[string]any{}
				look := func() {
					synctest.Wait()
					for _, k := range c.Coordinators() {
						if k.Up() && k.Ready(t.Context()) == nil {
							versioned(t, k, seen)
						}
					}
				}
				for range 40 {
					node := fmt.Sprint("n", 1+random.IntN(3))
					a, k := c.Agents()[random.IntN(3)], c.Coordinators()[random.IntN(3)]
					switch random.IntN(9) {
					case 0:
						_, _, _ = k.Allocate(t.Context(), rig.Submission{Name: fmt.Sprint("x", random.IntN(5)), GPUs: 1 + random.IntN(4)})
					case 1:
						_, _ = k.DeleteAllocation(t.Context(), rig.Namespace, fmt.Sprint("x", random.IntN(5)), api.DeleteOptions{})
					case 2:
						cordoned := random.IntN(2) == 0
						_, _ = k.PatchNode(t.Context(), node, api.NodePatch{Unschedulable: &cordoned})
					case 3: // a restart of the process
						a.Kill()
						a.Start()
					case 4: // the host boots, with other cards perhaps
						a.Kill()
						replaced[string(a.Node)] = random.IntN(4)
						a.Reboot()
					case 5:
						c.Cut(string(a.Node), k.ID)
					case 6:
						c.Heal(string(a.Node), k.ID)
					case 7:
						if k == c.Leader() && random.IntN(2) == 0 {
							k.Disconnect()
						}
					case 8:
						<-time.NewTimer(time.Duration(random.IntN(60_000)) * time.Millisecond).C
					}
					look()
					<-time.NewTimer(time.Duration(random.IntN(1500)) * time.Millisecond).C
					look()
				}
				for _, o := range seen {
					switch o := o.(type) {
					case *api.Node:
						reasons[o.Status.Conditions[0].Reason] = true
					case *api.Allocation:
						for _, condition := range o.Status.Conditions {
							if condition.Type == "DeviceLost" {
								lost++
							}
						}
					}
				}
				for _, a := range c.Agents() {
					for _, k := range c.Coordinators() {
						c.Heal(string(a.Node), k.ID)
					}
				}
				var diff string
				c.Eventually("all coordinators answer alike", func() bool {
					synctest.Wait()
					var all []map[string]any
					for _, k := range c.Coordinators() {
						if k.Ready(t.Context()) != nil {
							return false
						}
						all = append(all, map[string]any{})
						versioned(t, k, all[len(all)-1])
					}
					diff = cmp.Diff(all[0], all[1]) + cmp.Diff(all[0], all[2])
					return diff == ""
				})
			})
		})
	}
	var all []string
	for r := range reasons {
		all = append(all, r)
	}
	if !reasons["AgentReady"] || !reasons["NewIncarnation"] || !reasons["AgentUnreachable"] || lost == 0 {
		t.Errorf("nodes were shown as %s, and %d allocations with a lost device; the runs are too quiet for this test", strings.Join(all, ", "), lost)
	}
}
