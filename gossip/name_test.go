package gossip_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/gossip/digest"
	"github.com/musterd/muster/resource"
)

func TestACoordinatorsNameInTheRings(t *testing.T) {
	long := strings.Repeat("head-", 12) + "a"
	for name, c := range map[string]struct{ id, want string }{
		"is its id behind a prefix":          {"head-1", "coordinator_head-1"},
		"of a long id ends in its hash":      {long, "coordinator_" + long[:42] + "_e7f275b2"},
		"of another long id ends in another": {long[:60] + "b", "coordinator_" + long[:42] + "_015157a1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gossip.CoordinatorName(c.id); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Whatever the ids are, no agent has a coordinator's name, and no coordinator
// has another's.
func TestNamesInTheRingsAreDistinct(t *testing.T) {
	ids := rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		one, other := ids.Draw(t, "one"), ids.Draw(t, "other")
		a, b := gossip.CoordinatorName(one), gossip.CoordinatorName(other)
		if a == one || a == other || (a == b) != (one == other) {
			t.Errorf("the coordinators %s and %s are named %s and %s", one, other, a, b)
		}
		if err := digest.ValidNodeID(resource.NodeID(a)); err != nil {
			t.Error(err)
		}
	})
}
