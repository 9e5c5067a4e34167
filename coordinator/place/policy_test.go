package place_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
)

// emptiest is a Policy that prefers the emptiest node.
type emptiest struct{ place.Packed }

func (emptiest) Score(s *cluster.Standing, _ *cluster.Kind, _ *resource.Request) int64 {
	return int64(s.FreeGPU)
}

func TestAPolicyChoosesTheNodes(t *testing.T) {
	for name, c := range map[string]struct {
		policy place.Policy
		want   []int
	}{
		"none packs":             {nil, []int{2, 2, 2, 0}},
		"packed packs":           {place.Packed{}, []int{2, 2, 2, 0}},
		"spread spreads":         {place.Spread{}, []int{0, 1, 0, 1}},
		"another one may spread": {emptiest{}, []int{0, 1, 0, 1}},
	} {
		nodes := dgx(t, 3)
		use(nodes[2], 5)
		got := places(nodes, place.Unit{Members: 4, Request: oneGPU, Policy: c.policy})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// freeMachine is the view of a free host.
func freeMachine(tb testing.TB, profile, id string) *cluster.Node {
	tb.Helper()
	p, err := fake.Lookup(profile)
	if err != nil {
		tb.Fatal(err)
	}
	return hostNode(tb, p.Topology(), p.Inventory(id), id)
}

func hostNode(tb testing.TB, topology *numa.Topology, inventory *devices.Inventory, id string) *cluster.Node {
	tb.Helper()
	host, err := fit.NewHost(topology, inventory, fit.Reserved{})
	if err != nil {
		tb.Fatal(err)
	}
	return &cluster.Node{ID: resource.NodeID(id), Ready: true, Host: host, Free: host.NewFree()}
}

// policies are all policies, the default after it has learned from members like these.
func policies(state *cluster.State, members ...place.Unit) map[string]place.Policy {
	var learner place.Learner
	for _, u := range members {
		u.Members = 64
		learner.Observe(&u)
	}
	all := map[string]place.Policy{}
	for _, name := range place.Policies() {
		all[name] = learner.Policy(name, state)
	}
	return all
}

func TestWorkWithoutDevicesGoesToNodesWithout(t *testing.T) {
	for name := range policies(&cluster.State{}) {
		if name == place.NameBalanced {
			continue // it may use the CPU of a node whose devices are in use
		}
		gpus := freeMachine(t, "dgx-a100", "gpus")
		state := cluster.NewState(gpus, hostNode(t, gpus.Host.Topology(), &devices.Inventory{}, "plain"))
		policy := policies(state, place.Unit{Request: oneGPU})[name]
		members, ok := place.Place(state, place.Unit{Members: 1, Request: resource.Request{CPU: 1000}, Policy: policy})
		if !ok || members[0].Node.ID != "plain" {
			t.Errorf("%s: placed %t on %v", name, ok, members)
		}
	}
}

func TestBalancedUsesAmountsInStep(t *testing.T) {
	nodes := dgx(t, 2)
	state := cluster.NewState(nodes...)
	start := func(n string, r resource.Request) {
		u := place.Unit{Members: 1, Request: r, Constraints: constraint.Compile(constraint.Spec{NodeSelector: map[string]string{"name": n}})}
		if _, ok := place.Place(state, u); !ok {
			t.Fatalf("no place on %s", n)
		}
	}
	for _, n := range nodes {
		state.Relabel(n, map[string]string{"name": string(n.ID)}, nil)
	}
	start("node-00000", resource.Request{GPUs: 6, Memory: 1536 * gib})      // CPU is left
	start("node-00001", resource.Request{CPU: 192_000, Memory: 1536 * gib}) // devices are left
	for _, c := range []struct {
		request resource.Request
		want    resource.NodeID
	}{
		{resource.Request{CPU: 32_000}, "node-00000"},
		{resource.Request{GPUs: 2}, "node-00001"},
	} {
		members, ok := place.Place(state, place.Unit{Members: 1, Request: c.request, Policy: place.Balanced{}})
		if !ok || members[0].Node.ID != c.want {
			t.Errorf("%+v: placed %t on %v, want %s", c.request, ok, members, c.want)
		}
	}
}

// TestTheDefaultFollowsTheMix: a share of 300 breaks 600 that the mix has use for, or
// takes the 300 that are left of another device.
func TestTheDefaultFollowsTheMix(t *testing.T) {
	share := func(milli int) place.Unit {
		return place.Unit{Members: 1, Request: resource.Request{GPUShare: resource.Milli(milli), CPU: 1000}}
	}
	used := [2][]place.Unit{{{Members: 2, Request: oneGPU}, share(400)}, {share(700)}} // 600 and 300 are left
	for name, c := range map[string]struct {
		mix  []place.Unit
		want map[string]resource.NodeID // by policy
	}{
		"a mix of 600 spares the 600 of node-00000": {
			mix:  []place.Unit{share(600), share(300), share(600)},
			want: map[string]resource.NodeID{place.NamePacked: "node-00000", place.NameFragmentation: "node-00001"},
		},
		"a mix of 300 has the same use for both, and the fuller node is better": {
			mix:  []place.Unit{share(300)},
			want: map[string]resource.NodeID{place.NamePacked: "node-00000", place.NameFragmentation: "node-00000"},
		},
	} {
		for policy, want := range c.want {
			state := cluster.NewState(dgx(t, 2)...)
			for i, n := range state.Nodes() {
				state.Relabel(n, map[string]string{"n": fmt.Sprint(i)}, nil)
				for _, u := range used[i] {
					u.Constraints = constraint.Compile(constraint.Spec{NodeSelector: map[string]string{"n": fmt.Sprint(i)}})
					if _, ok := place.Place(state, u); !ok {
						t.Fatal("no place")
					}
				}
			}
			u := share(300)
			u.Policy = policies(state, c.mix...)[policy]
			members, ok := place.Place(state, u)
			if !ok || members[0].Node.ID != want {
				t.Errorf("%s: %s: placed %t on %v, want %s", name, policy, ok, members, want)
			}
		}
	}
}

func TestTheDefaultSparesAModelThatAloneServesPartOfTheMix(t *testing.T) {
	for _, asked := range []int{0, 64} {
		state := cluster.NewState(dgx(t, 1)...)
		h100 := freeMachine(t, "dgx-h100", "z-hopper")
		state.Insert(h100)
		only := place.Unit{Request: oneGPU, Constraints: constraint.Compile(constraint.Spec{
			NodeSelector: map[string]string{"nvidia.com/gpu.product": h100.Kind().Product},
		})}
		var learner place.Learner
		any := place.Unit{Members: 64, Request: oneGPU}
		learner.Observe(&any)
		if only.Members = asked; asked > 0 {
			learner.Observe(&only)
		}
		members, ok := place.Place(state, place.Unit{Members: 1, Request: oneGPU, Policy: learner.Policy("", state)})
		want := resource.NodeID("z-hopper") // the better fit
		if asked > 0 {
			want = "node-00000"
		}
		if !ok || members[0].Node.ID != want {
			t.Errorf("%d members ask for the model of z-hopper: placed %t on %v, want %s", asked, ok, members, want)
		}
	}
}

// TestAPreferenceOutweighsEachPolicy: one point is more than any score.
func TestAPreferenceOutweighsEachPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := cluster.NewState(drawNodes(t)...)
		all := policies(state, drawUnit(t), drawUnit(t))
		name := rapid.SampledFrom(place.Policies()).Draw(t, "policy")
		var scores []int64
		for range 3 {
			r := drawRequest(t)
			for _, n := range state.Nodes() {
				if n.Kind() != nil && n.MayFit(&r) {
					scores = append(scores, all[name].Score(&n.Standing, n.Kind(), &r))
				}
			}
		}
		for _, a := range scores {
			for _, b := range scores {
				if all[name].Prefer(a, 1) <= all[name].Prefer(b, 0) {
					t.Fatalf("%s: %d with one point is not above %d", name, a, b)
				}
			}
		}
	})
}

// TestRatingsThatAreRememberedChooseTheBestNode: of the nodes that take the member, the
// one with the greatest score, then the lowest ID.
func TestRatingsThatAreRememberedChooseTheBestNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := cluster.NewState(drawNodes(t)...)
		var learner place.Learner
		for range 8 {
			u := drawUnit(t)
			u.Members = 64
			learner.Observe(&u)
		}
		for range 8 {
			u := drawUnit(t)
			u.Members, u.Policy = 1, learner.Policy("", state)
			var want *cluster.Node
			var best int64
			for _, n := range state.Nodes() {
				var a resource.Assignment
				if !n.Open() || !u.Constraints.Allows(n.Labels) || !n.Host.Assign(n.Free, u.Request, &a) {
					continue
				}
				score := u.Policy.Prefer(u.Policy.Score(&n.Standing, n.Kind(), &u.Request), u.Constraints.Preference(n.Labels))
				if want == nil || score > best {
					want, best = n, score
				}
			}
			members, ok := place.Place(state, u)
			if ok != (want != nil) || ok && members[0].Node != want {
				t.Fatalf("placed %t on %v, want %v", ok, members, want)
			}
		}
	})
}

func TestTheDefaultPacksUntilItHasLearned(t *testing.T) {
	var learner place.Learner
	state := cluster.NewState(dgx(t, 1)...)
	u := place.Unit{Members: 63, Request: oneGPU}
	learner.Observe(&u)
	if _, is := learner.Policy("", state).(place.Packed); !is {
		t.Error("63 members are enough")
	}
	u.Members = 1
	learner.Observe(&u)
	policy, is := learner.Policy(place.NameFragmentation, state).(*place.Fragmentation)
	if !is {
		t.Fatal("64 members are not enough")
	}
	if learner.Policy("", state) != place.Policy(policy) {
		t.Error("the policy changes while neither the mix nor the nodes do")
	}
	state.Insert(freeMachine(t, "dgx-h100", "z"))
	if learner.Policy("", state) == place.Policy(policy) {
		t.Error("the prices do not follow the nodes")
	}
}

// TestAForkChoosesTheSameNodes: the answers of muster why are made on forks of the
// leader's state, which remember no ratings of the leader.
func TestAForkChoosesTheSameNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := cluster.NewState(drawNodes(t)...)
		all := policies(state, drawUnit(t), drawUnit(t))
		for range 6 {
			u := drawUnit(t)
			u.Policy = all[rapid.SampledFrom(place.Policies()).Draw(t, "policy")]
			fork := state.Snapshot().Fork()
			got, gotOK := place.Place(fork, u)
			want, wantOK := place.Place(state, u)
			if gotOK != wantOK || len(got) != len(want) {
				t.Fatalf("the fork places %t, the state %t", gotOK, wantOK)
			}
			for i := range want {
				if got[i].Node.ID != want[i].Node.ID {
					t.Fatalf("member %d: the fork chooses %s, the state %s", i, got[i].Node.ID, want[i].Node.ID)
				}
			}
		}
	})
}
