package place_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// spread is a Policy that prefers the emptiest node.
type spread struct{ place.Packed }

func (spread) Score(s *cluster.Standing, _ *resource.Request) int64 { return int64(s.FreeGPU) }

func TestAPolicyChoosesTheNodes(t *testing.T) {
	for name, c := range map[string]struct {
		policy place.Policy
		want   []int
	}{
		"none packs":             {nil, []int{2, 2, 2, 0}},
		"Packed packs":           {place.Packed{}, []int{2, 2, 2, 0}},
		"another one may spread": {spread{}, []int{0, 1, 0, 1}},
	} {
		nodes := dgx(t, 3)
		use(nodes[2], 5)
		got := places(nodes, place.Unit{Members: 4, Request: oneGPU, Policy: c.policy})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
