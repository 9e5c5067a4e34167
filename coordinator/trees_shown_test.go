package coordinator_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/test/rig"
)

// unordered is a status without the order of the consumers of a node.
func unordered(s api.QuotaTreeStatus) api.QuotaTreeStatus {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].Consumers = slices.Sorted(slices.Values(s.Nodes[i].Consumers))
	}
	return s
}

// TestEveryCoordinatorShowsWhereTheLeaderCountsUnits: through commits, releases, limits
// that are lowered and raised, groups that go and come, modes and elections, each
// coordinator shows the use of a tree that the leader decides by.
func TestEveryCoordinatorShowsWhereTheLeaderCountsUnits(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	moved := 0
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
				laboratory(t, c, 3, "queue")
				c.StartCoordinator("c2")
				nodes, started := lab, 2
				random := rand.New(rand.NewPCG(seed, 7))
				for step := range 30 {
					k := c.Leader()
					namespace, name := []string{"a", "b"}[random.IntN(2)], fmt.Sprint("x", random.IntN(8))
					switch random.IntN(10) {
					case 0, 1, 2, 3:
						_, _, _ = k.Allocate(t.Context(), rig.Submission{Namespace: namespace, Name: name, GPUs: 1 + random.IntN(5), Priority: int32(random.IntN(3))})
					case 4, 5:
						_, _ = k.DeleteAllocation(t.Context(), namespace, name, api.DeleteOptions{})
					case 6, 7:
						nodes = []string{fmt.Sprint("all nil ", 6+random.IntN(12)), fmt.Sprint("a all ", random.IntN(9)), fmt.Sprint("b all ", random.IntN(9))}
						if random.IntN(4) == 0 {
							nodes = nodes[:2]
						}
						plant(t, k, "Lab", nodes...)
					case 8:
						modes := []string{api.ModeNormal, api.ModeMaintenance}
						_, _ = k.PatchQuotaMode(t.Context(), api.QuotaModePatch{Mode: modes[random.IntN(2)], Reason: "drill"}, "ada")
					case 9:
						if random.IntN(2) == 0 {
							k.Crash()
							started++
							c.StartCoordinator(fmt.Sprint("c", started))
							c.AwaitReady(3)
						}
					}
					c.Eventually(fmt.Sprintf("all coordinators show the tree of the leader, step %d", step), func() bool {
						// A change to the tree as it is moves nobody; the leader answers it from its trees.
						want := unordered(plant(t, c.Leader(), "Lab", nodes...).Status)
						for _, k := range c.Coordinators() {
							if !k.Up() {
								continue
							}
							got, err := k.GetQuotaTree(t.Context(), "Lab")
							if err != nil {
								return false
							}
							if diff := gocmp.Diff(want, unordered(got.Status)); diff != "" {
								t.Logf("step %d (-leader +%s):\n%s", step, k.ID, diff)
								return false
							}
							for _, n := range got.Status.Nodes {
								moved += cmp.Compare(len(n.Borrowed), 0)
							}
						}
						return true
					})
				}
			})
		})
	}
	if moved == 0 {
		t.Error("nobody has borrowed anything; the runs are too quiet for this test")
	}
}
