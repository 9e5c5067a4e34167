package scheduling_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// wideShare is how many worlds are compared for each wide one.
const wideShare = 50

// wideWorld is a cluster of 50 to 150 nodes, many of them equal, twice.
type wideWorld struct {
	world
	table constraint.Table
	old   []*cluster.Node
	state *cluster.State
	kinds []*fit.Host
}

// makeWideWorld makes the wide world of a seed. Few have nodes of more than two
// kinds.
func makeWideWorld(seed uint64) *wideWorld {
	w := &wideWorld{world: world{lot: rand.New(rand.NewPCG(seed, 21))}, state: cluster.NewState()}
	all := hosts()
	for range 1 + w.lot.IntN(2+w.lot.IntN(2)) {
		w.kinds = append(w.kinds, all[w.lot.IntN(len(all))])
	}
	for i := range 50 + w.lot.IntN(100) {
		host := w.kinds[w.lot.IntN(len(w.kinds))]
		n := &cluster.Node{ID: resource.NodeID(fmt.Sprintf("n%03d", i)), Ready: true, Host: host, Free: host.NewFree()}
		n.Refresh()
		w.nodes = append(w.nodes, n)
	}
	w.old = w.copyNodes()
	for _, n := range w.copyNodes() {
		w.state.Insert(n)
	}
	for range 10 {
		w.change()
	}
	for i := range w.old {
		w.relabel(i)
	}
	return w
}

// change changes a fact of a node in both.
func (w *wideWorld) change() {
	i, yes := w.lot.IntN(len(w.old)), w.oneIn(2)
	was, now := w.old[i], w.state.Nodes()[i]
	switch w.lot.IntN(6) {
	case 0:
		was.Ready = yes
		w.state.SetReady(now, yes)
	case 1:
		was.Unschedulable = yes
		w.state.SetUnschedulable(now, yes)
	case 2:
		was.Suspect = yes
		w.state.SetSuspect(now, yes)
	case 3:
		was.Tripped = yes
		w.state.SetTripped(now, yes)
	case 4:
		was.Free.Unhealthy = w.lot.Uint64() & w.lot.Uint64() & 0xff
		was.Refresh()
		w.state.SetUnhealthy(now, was.Free.Unhealthy)
	case 5:
		w.relabel(i)
	}
}

// relabel labels a node in both, some by their own names, and taints a few.
func (w *wideWorld) relabel(i int) {
	labels := map[string]string{"zone": string(rune('a' + w.lot.IntN(4))), "gen": fmt.Sprint(w.lot.IntN(4))}
	if w.oneIn(2) {
		labels["name"] = string(w.old[i].ID)
	}
	var taints []constraint.Taint
	if w.oneIn(10) {
		taints = []constraint.Taint{{Key: "team", Value: string(rune('x' + w.lot.IntN(2))), Effect: constraint.NoSchedule}}
	}
	w.old[i].Labels = w.table.Intern(labels, taints)
	w.state.Relabel(w.state.Nodes()[i], labels, taints)
}

// constrained draws a unit, half of them with constraints.
func (w *wideWorld) constrained() place.Unit {
	u := place.Unit{Members: 1 + w.lot.IntN(1+w.lot.IntN(40)), Request: w.request()}
	if w.oneIn(5) {
		u.Avoid = map[resource.NodeID]int{}
		for range 1 + w.lot.IntN(3) {
			u.Avoid[w.old[w.lot.IntN(len(w.old))].ID] = 1 + w.lot.IntN(2)
		}
	}
	if w.oneIn(2) {
		return u
	}
	zone, node := string(rune('a'+w.lot.IntN(5))), string(w.old[w.lot.IntN(len(w.old))].ID)
	var spec constraint.Spec
	switch w.lot.IntN(8) {
	case 0:
		spec.NodeSelector = map[string]string{"name": node}
	case 1, 2:
		spec.NodeSelector = map[string]string{"zone": zone}
	case 3:
		spec.Required = []constraint.Term{{{Key: "name", Operator: constraint.In, Values: []string{node}}}}
	case 4:
		spec.Required = []constraint.Term{{{Key: "gen", Operator: constraint.Gt, Values: []string{"1"}}}, {{Key: "zone", Operator: constraint.In, Values: []string{zone}}}}
	}
	for range w.lot.IntN(3) {
		spec.Preferred = append(spec.Preferred, constraint.Preference{
			Weight: int32(1 + w.lot.IntN(3)), Term: constraint.Term{{Key: "zone", Operator: constraint.In, Values: []string{string(rune('a' + w.lot.IntN(5)))}}},
		})
	}
	if w.oneIn(2) {
		spec.Tolerations = []constraint.Toleration{{Key: "team", AnyValue: w.oneIn(2), Value: "x"}}
	}
	u.Constraints = constraint.Compile(spec)
	return u
}

// TestPlacesEqualThoseBeforeTheIndex compares places in clusters that are wide
// enough for many equal nodes and for nodes that differ in one thing.
func TestPlacesEqualThoseBeforeTheIndex(t *testing.T) {
	placed, refused := 0, 0
	for seed := range *worlds / wideShare {
		w := makeWideWorld(seed)
		for range 40 {
			if comparePlaces(t, w.old, w.state, w.constrained(), !w.oneIn(4)) {
				placed++
			} else {
				refused++
			}
			if t.Failed() {
				t.Fatalf("wide seed %d", seed)
			}
			if w.oneIn(2) {
				w.change()
			}
		}
	}
	t.Logf("%d placed, %d refused", placed, refused)
	if placed < refused/10 || refused < placed/10 {
		t.Errorf("%d placed, %d refused: the worlds test one side alone", placed, refused)
	}
}
