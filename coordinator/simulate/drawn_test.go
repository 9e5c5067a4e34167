package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/simulate"
	"github.com/musterd/muster/resource"
)

// drawn is a cluster and a list of pods that nobody has measured: the weights of the
// default policy were chosen on such (docs/adr/0056).
func drawn(seed uint64) ([]simulate.Node, []simulate.Pod) {
	lots := rand.New(rand.NewPCG(seed, 17))
	type kind struct {
		model     string
		gpus      int
		cpu       int // for each GPU
		nodes     int
		namedOnly int // one of so many pods asks for the model; 0: none
	}
	kinds := []kind{
		{"A", 8, 8 + 4*lots.IntN(4), 30 + lots.IntN(60), 0}, {"B", 2, 24 + 8*lots.IntN(3), 20 + lots.IntN(60), 3 + lots.IntN(6)},
		{"C", 4, 8 + 4*lots.IntN(3), 5 + lots.IntN(20), 4 + lots.IntN(9)}, {"D", 1, 16, lots.IntN(20), 12},
	}
	var nodes []simulate.Node
	for _, k := range kinds {
		for i := range k.nodes {
			nodes = append(nodes, simulate.Node{
				Name: fmt.Sprintf("%s%03d", k.model, i), CPU: resource.Millicores(1000 * k.cpu * k.gpus), Memory: resource.Bytes(48*k.gpus) << 30, GPUs: k.gpus, Model: k.model,
			})
		}
	}
	// A list has a few dozen shapes: shares of a few sizes, whole devices, hosts.
	var shares []resource.Milli
	for range 6 + lots.IntN(12) {
		shares = append(shares, resource.Milli(10*(3+lots.IntN(90))))
	}
	named, parts, many := lots.IntN(3) == 0, lots.IntN(100), lots.IntN(12)
	var pods []simulate.Pod
	for i := range 1500 {
		p := simulate.Pod{Name: fmt.Sprint("p", i)}
		switch at := lots.IntN(100); {
		case at < 12:
			p.CPU = resource.Millicores(1000 * (1 + lots.IntN(16)))
		case at < 12+parts*88/100:
			p.Share = shares[lots.IntN(len(shares))]
			p.CPU = p.CPU + resource.Millicores(int(p.Share)*(2+2*lots.IntN(6))/500*500)
		case at < 100-many:
			p.GPUs, p.CPU = 1, resource.Millicores(1000*(2+2*lots.IntN(6)))
		default:
			p.GPUs = 2 << lots.IntN(3)
			p.CPU = resource.Millicores(1000 * p.GPUs * (4 + 2*lots.IntN(3)))
		}
		p.Memory = resource.Bytes(p.CPU) << 20 * 2
		for _, k := range kinds {
			if named && p.GPUs <= 1 && p.GPUs+int(p.Share) > 0 && k.namedOnly > 0 && lots.IntN(k.namedOnly) == 0 && k.nodes > 0 {
				p.Models = []string{k.model}
				break
			}
		}
		pods = append(pods, p)
	}
	return nodes, pods
}

// TestTheDefaultPolicyOnDrawnLists: over lists that are drawn, the default allocates
// more than each other policy, and on no list much less than packed.
func TestTheDefaultPolicyOnDrawnLists(t *testing.T) {
	lists := 24
	if testing.Short() {
		lists = 4
	}
	sums := map[string]float64{}
	for seed := range lists {
		nodes, pods := drawn(uint64(seed))
		cluster, err := simulate.NewCluster(nodes)
		if err != nil {
			t.Fatal(err)
		}
		arrivals, err := simulate.Arrivals(nodes, pods, 130, int64(seed))
		if err != nil {
			t.Fatal(err)
		}
		at := map[string]float64{}
		for _, policy := range place.Policies() {
			run := cluster.Play(arrivals, policy, nil)
			at[policy] = (run.At(100) + run.At(130)) / 2
			sums[policy] += at[policy] / float64(lists)
		}
		if at[place.NameFragmentation] < at[place.NamePacked]-1 {
			t.Errorf("list %d: the default allocates %.2f %%, packed %.2f %%", seed, at[place.NameFragmentation], at[place.NamePacked])
		}
	}
	t.Logf("mean of the GPU allocated at 100 %% and 130 %%: %v", sums)
	for _, other := range []string{place.NameBalanced, place.NamePacked, place.NameSpread} {
		if sums[other] >= sums[place.NameFragmentation] {
			t.Errorf("%s allocates %.2f %%, the default %.2f %%", other, sums[other], sums[place.NameFragmentation])
		}
	}
}
