package lead

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/grant"
)

// TestAnAgentIsSentTheKubeletsPool: an agent hears of the operators' part of the pool when
// it changes, and when it connects and follows another one, which the store may have had
// before it was restored.
func TestAnAgentIsSentTheKubeletsPool(t *testing.T) {
	sent := func(x *scene) (list []grant.KubeletPool) {
		for _, e := range x.left {
			if pool, is := e.Command.(grant.KubeletPool); is && e.Node == "n1" {
				list = append(list, pool)
			}
		}
		return list
	}
	uuid := newScene(t).hosts["n1"].Host.Inventory.Devices[0].UUID
	wish := grant.KubeletPool{Add: []string{uuid}}
	for name, c := range map[string]struct {
		patched  bool // to the wish
		follows  grant.KubeletPool
		patch    *api.KubeletPatch // after the connection
		wantSent []grant.KubeletPool
	}{
		"nobody has a wish":                       {},
		"the agent follows the wish":              {patched: true, follows: wish},
		"the agent has lost its journal":          {patched: true, wantSent: []grant.KubeletPool{wish}},
		"the store has lost the wish":             {follows: wish, wantSent: []grant.KubeletPool{{}}},
		"the agent follows a wish of before":      {patched: true, follows: grant.KubeletPool{Remove: []string{uuid}}, wantSent: []grant.KubeletPool{wish}},
		"an operator adds a device":               {patch: &api.KubeletPatch{Add: &wish.Add}, wantSent: []grant.KubeletPool{wish}},
		"an operator adds a device that is there": {patched: true, follows: wish, patch: &api.KubeletPatch{Add: &wish.Add}},
		"an operator withdraws the wish":          {patched: true, follows: wish, patch: &api.KubeletPatch{Add: &[]string{}}, wantSent: []grant.KubeletPool{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			patch := func(p api.KubeletPatch) {
				x.ask(PatchNode{Node: "n1", Patch: api.NodePatch{Kubelet: p}})
				x.answers()
			}
			if c.patched {
				patch(api.KubeletPatch{Add: &wish.Add})
			}
			hello := x.hosts["n1"]
			hello.Occupancy.KubeletPool = c.follows
			x.clear()
			x.hear(hello)
			if c.patch != nil {
				patch(*c.patch)
			}
			if diff := cmp.Diff(c.wantSent, sent(x), cmp.Comparer(grant.KubeletPool.Equal)); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}
