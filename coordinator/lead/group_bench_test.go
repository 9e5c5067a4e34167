package lead

import (
	"fmt"
	"github.com/musterd/muster/coordinator/lead/work"
	"testing"
)

// BenchmarkArrivalAtAGroup is the arrival of one more member at a group that has all that
// it needs and waits for room: all its units are offered anew.
func BenchmarkArrivalAtAGroup(b *testing.B) {
	for _, members := range []int{8, 64, 512} {
		rules := sceneRules()
		rules.NamespaceAllocations = 1 << 20
		x := newSceneOf(b, rules)
		var g *work.Group
		for i := range members {
			u := x.accepted(fmt.Sprint("m", i), 64, fmt.Sprintf(`"scheduling":{"gangScheduling":{"groupId":"g","minMembers":%d}},`, members))
			g = u.Group
		}
		if len(g.Units) != members || len(g.Offered) != members {
			b.Fatalf("%d units, %d offered, want %d", len(g.Units), len(g.Offered), members)
		}
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x.do(func() {
					g.SetOffered(nil)
					x.offerGroup(g)
				})
			}
		})
	}
}
