package place_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// TestRelationsAgreeWithBruteForce compares the rules about other units with an oracle
// that counts all occupants anew for each node and each member. Between the questions
// occupants come, go and leave, and nodes get other labels, so that the counts of the
// State have to follow.
func TestRelationsAgreeWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawRelated(t)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1, 2:
				w.setOccupant(t)
			case 3:
				w.removeOccupant(t)
			case 4:
				w.relabel(t)
			}
			w.ask(t)
		}
	})
}

// related is a cluster and its occupants, kept twice.
type related struct {
	state     *cluster.State
	occupants map[string]*cluster.Occupant
	labels    map[resource.NodeID]map[string]string
}

func drawRelated(t *rapid.T) *related {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	host, err := fit.NewHost(profile.Topology(), profile.Inventory("n"), fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	w := &related{state: cluster.NewState(), occupants: map[string]*cluster.Occupant{}, labels: map[resource.NodeID]map[string]string{}}
	for i := range rapid.IntRange(1, 7).Draw(t, "nodes") {
		n := &cluster.Node{ID: resource.NodeID(rune('a' + i)), Host: host, Free: host.NewFree(), Ready: rapid.IntRange(0, 9).Draw(t, "ready") > 0}
		w.state.Insert(n)
		w.relabelTo(n, drawLabels(t, n.ID))
		var a resource.Assignment
		if gpus := rapid.IntRange(0, 8).Draw(t, "used"); gpus > 0 && host.Assign(n.Free, resource.Request{GPUs: gpus, CPU: 1000}, &a) {
			if err := w.state.Take(n, a); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}

func drawLabels(t *rapid.T, id resource.NodeID) map[string]string {
	labels := map[string]string{"host": string(id)}
	for _, key := range []string{"rack", "zone"} {
		if v := rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, key); v != "" {
			labels[key] = v
		}
	}
	return labels
}

func (w *related) relabelTo(n *cluster.Node, labels map[string]string) {
	w.state.Relabel(n, labels, nil)
	w.labels[n.ID] = labels
}

func (w *related) relabel(t *rapid.T) {
	n := rapid.SampledFrom(w.state.Nodes()).Draw(t, "node")
	w.relabelTo(n, drawLabels(t, n.ID))
}

func drawSubject(t *rapid.T) *constraint.Subject {
	s := &constraint.Subject{
		Namespace: rapid.SampledFrom([]string{"ml", "ml", "ml", "web"}).Draw(t, "namespace"),
		Group:     rapid.SampledFrom([]string{"g1", "g2"}).Draw(t, "group"),
		Labels:    constraint.LabelsOf(map[string]string{"app": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app")}),
	}
	var spec constraint.RelationSpec
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		near := constraint.Near{TopologyKey: rapid.SampledFrom([]string{"host", "rack", "zone"}).Draw(t, "key")}
		switch rapid.IntRange(0, 2).Draw(t, "selects") {
		case 0:
			near.Selector.OwnGroup = true
		case 1:
			near.Selector.Match = expressions("app", "In", "a")
		}
		switch rapid.IntRange(0, 4).Draw(t, "rule") {
		case 0:
			spec.Affinity = append(spec.Affinity, near)
		case 1:
			spec.AntiAffinity = append(spec.AntiAffinity, near)
		case 2:
			spec.Preferred = append(spec.Preferred, constraint.WeightedNear{Weight: int32(rapid.SampledFrom([]int{-20, 30}).Draw(t, "weight")), Near: near})
		default:
			spec.Spread = append(spec.Spread, constraint.Spread{
				MaxSkew: int32(rapid.IntRange(1, 2).Draw(t, "skew")), TopologyKey: near.TopologyKey, Selector: near.Selector, Required: rapid.Bool().Draw(t, "required"),
			})
		}
	}
	s.Relations = constraint.CompileRelations(spec)
	return s
}

func (w *related) setOccupant(t *rapid.T) {
	o := &cluster.Occupant{Unit: rapid.SampledFrom([]string{"u1", "u2", "u3", "u4"}).Draw(t, "unit"), Subject: drawSubject(t)}
	o.Status = rapid.SampledFrom([]cluster.Status{cluster.Evictable, cluster.Starting, cluster.Leaving, cluster.Displaced}).Draw(t, "status")
	for _, n := range w.state.Nodes() {
		if rapid.IntRange(0, 2).Draw(t, "on "+string(n.ID)) == 0 {
			o.Nodes, o.Counts = append(o.Nodes, n.ID), append(o.Counts, int32(rapid.IntRange(1, 2).Draw(t, "members")))
		}
	}
	if old := w.occupants[o.Unit]; old != nil && rapid.Bool().Draw(t, "same unit") {
		o.Subject = old.Subject
	}
	w.occupants[o.Unit] = o
	w.state.SetOccupant(o)
}

func (w *related) removeOccupant(t *rapid.T) {
	unit := rapid.SampledFrom([]string{"u1", "u2", "u3", "u4"}).Draw(t, "gone")
	delete(w.occupants, unit)
	w.state.RemoveOccupant(unit)
}

// ask places a unit, by the code and by the oracle, on the State or on a fork of it.
func (w *related) ask(t *rapid.T) {
	u := place.Unit{Members: rapid.IntRange(1, 4).Draw(t, "members"), Request: resource.Request{GPUs: rapid.IntRange(1, 4).Draw(t, "gpus"), CPU: 1000}, Subject: drawSubject(t)}
	if rapid.IntRange(0, 3).Draw(t, "constrained") == 0 {
		u.Constraints = constraint.Compile(constraint.Spec{NodeSelector: map[string]string{"zone": "x"}})
	}
	if rapid.IntRange(0, 3).Draw(t, "without") == 0 {
		u.Without = []string{"u1"}
	}
	state := w.state
	if rapid.IntRange(0, 3).Draw(t, "fork") == 0 {
		state = state.Snapshot().Fork()
	}
	want, founds := w.oracle(state, u)
	mark := state.Checkpoint()
	got, ok := place.Place(state, u)
	state.Rollback(mark)
	switch names := nodesOf(got); {
	case want == nil && ok && founds && u.Members > 1:
		w.verify(t, state, u, names) // another domain than the best node's had room
	case (want != nil) != ok || want != nil && !slices.Equal(names, want):
		t.Fatalf("%s: placed on %v, the oracle says %v", describeSubject(u.Subject), names, want)
	}
}

func nodesOf(choices []place.Choice) []resource.NodeID {
	var names []resource.NodeID
	for _, c := range choices {
		names = append(names, c.Node.ID)
	}
	return names
}

func describeSubject(s *constraint.Subject) string {
	return fmt.Sprintf("%s/%s %s: %s", s.Namespace, s.Group, strings.TrimSpace(s.Labels.Text()), s.Relations.Key())
}

// oracle places each member on the best node that the rules admit; founds says that
// the first member was free to choose a domain for the others.
func (w *related) oracle(state *cluster.State, u place.Unit) (names []resource.NodeID, founds bool) {
	mark := state.Checkpoint()
	defer state.Rollback(mark)
	for i := range u.Members {
		var best *cluster.Node
		var rank int64
		for _, n := range state.Nodes() {
			var a resource.Assignment
			if !n.Open() || !u.Constraints.Allows(n.Labels) || !state.Assign(n, &u.Request, &a) {
				continue
			}
			admitted, first := w.admits(u, names, n.ID)
			founds = founds || i == 0 && first && len(u.Subject.Relations.Affinity()) > 0
			if !admitted {
				continue
			}
			if r := w.rank(u, names, n); best == nil || r > rank {
				best, rank = n, r
			}
		}
		if best == nil {
			return nil, founds
		}
		var a resource.Assignment
		if !state.Assign(best, &u.Request, &a) || state.Take(best, a) != nil {
			panic("no room")
		}
		names = append(names, best.ID)
	}
	return names, founds
}

// verify checks members that were placed one after the other.
func (w *related) verify(t *rapid.T, state *cluster.State, u place.Unit, names []resource.NodeID) {
	for i, name := range names {
		if admitted, _ := w.admits(u, names[:i], name); !admitted {
			t.Fatalf("%s: member %d of %v may not go to %s", describeSubject(u.Subject), i, names, name)
		}
	}
}

// count counts members in the domain of a node that are selected: those that run or
// are about to, with leaving also those on their way out. at limits the nodes that count.
func (w *related) count(u place.Unit, planned []resource.NodeID, key string, node resource.NodeID, leaving bool, selects func(*constraint.Subject) bool, at func(resource.NodeID) bool) (n int) {
	domain, in := w.labels[node][key]
	same := func(id resource.NodeID) bool {
		v, has := w.labels[id][key]
		return in && has && v == domain && (at == nil || at(id))
	}
	for name, o := range w.occupants {
		if slices.Contains(u.Without, name) || !selects(o.Subject) || o.IsLeaving() && !leaving {
			continue
		}
		for i, id := range o.Nodes {
			if same(id) {
				n += int(o.Counts[i])
			}
		}
	}
	for _, id := range planned {
		if selects(u.Subject) && same(id) {
			n++
		}
	}
	return n
}

// admits reports whether the rules let the next member onto a node.
func (w *related) admits(u place.Unit, planned []resource.NodeID, node resource.NodeID) (admitted, founds bool) {
	own := u.Subject
	near := own.Relations.Affinity()
	selectedByAll := func(s *constraint.Subject) bool {
		for i := range near {
			if !near[i].Selection.Selects(own, s) {
				return false
			}
		}
		return true
	}
	founds = selectedByAll(own)
	for _, rule := range near {
		for id := range w.labels {
			founds = founds && w.count(u, planned, rule.TopologyKey, id, false, selectedByAll, nil) == 0
		}
	}
	for _, rule := range near {
		if _, has := w.labels[node][rule.TopologyKey]; !has || !founds && w.count(u, planned, rule.TopologyKey, node, false, selectedByAll, nil) == 0 {
			return false, founds
		}
	}
	for _, rule := range own.Relations.AntiAffinity() {
		if w.count(u, planned, rule.TopologyKey, node, true, func(s *constraint.Subject) bool { return rule.Selection.Selects(own, s) }, nil) > 0 {
			return false, founds
		}
	}
	for name, o := range w.occupants {
		for _, rule := range o.Subject.Relations.AntiAffinity() {
			if slices.Contains(u.Without, name) || !rule.Selection.Selects(o.Subject, own) {
				continue
			}
			if w.count(u, nil, rule.TopologyKey, node, true, func(s *constraint.Subject) bool { return s == o.Subject }, nil) > 0 {
				return false, founds
			}
		}
	}
	for _, rule := range own.Relations.Spread() {
		if !rule.Required {
			continue
		}
		if skew, in := w.skew(u, planned, rule, node); !in || skew > int(rule.MaxSkew) {
			return false, founds
		}
	}
	return true, founds
}

// skew is that of a node's domain with one more member there.
func (w *related) skew(u place.Unit, planned []resource.NodeID, rule constraint.SpreadRule, node resource.NodeID) (skew int, in bool) {
	selects := func(s *constraint.Subject) bool { return rule.Selection.Selects(u.Subject, s) }
	at := func(id resource.NodeID) bool {
		if !u.Constraints.Matches(w.state.Node(id).Labels) {
			return false
		}
		for _, r := range u.Subject.Relations.Spread() {
			counts := r.Required && rule.Required || r.TopologyKey == rule.TopologyKey && r.Required == rule.Required
			if _, has := w.labels[id][r.TopologyKey]; counts && !has {
				return false
			}
		}
		return true
	}
	least := -1
	for id := range w.labels {
		if !at(id) {
			continue
		}
		if n := w.count(u, planned, rule.TopologyKey, id, false, selects, at); least < 0 || n < least {
			least = n
		}
	}
	if skew = w.count(u, planned, rule.TopologyKey, node, false, selects, at) - max(0, least); selects(u.Subject) && rule.Required {
		skew++
	}
	_, in = w.labels[node][rule.TopologyKey]
	return skew, in
}

func (w *related) points(u place.Unit, planned []resource.NodeID, node resource.NodeID) (sum int64) {
	for _, p := range u.Subject.Relations.Preferred() {
		if w.count(u, planned, p.TopologyKey, node, false, func(s *constraint.Subject) bool { return p.Selection.Selects(u.Subject, s) }, nil) > 0 {
			sum += p.Weight
		}
	}
	for _, rule := range u.Subject.Relations.Spread() {
		if rule.Required {
			continue
		}
		if skew, in := w.skew(u, planned, rule, node); in {
			sum -= min(100, 10*int64(skew))
		} else {
			sum -= 100
		}
	}
	return sum
}

func (w *related) rank(u place.Unit, planned []resource.NodeID, n *cluster.Node) int64 {
	var policy place.Packed
	return policy.Prefer(policy.Score(&n.Standing, n.Kind(), &u.Request), w.points(u, planned, n.ID))
}
