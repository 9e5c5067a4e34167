package cluster_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/resource"
)

// unitsOf names occupants, ascending.
func unitsOf(all iter.Seq[*cluster.Occupant]) []string {
	var units []string
	for o := range all {
		units = append(units, o.Unit)
	}
	slices.Sort(units)
	return units
}

// TestOccupantsAgreeWithAMap sets and removes occupants at random, beside a map that
// each question scans; some go on with a fork, which makes its indexes later.
func TestOccupantsAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &cluster.State{}
		model := map[string]cluster.Occupant{}
		news := map[string]bool{}
		left := func(o cluster.Occupant) bool { return o.Status == cluster.Leaving || o.Status == cluster.Displaced }
		mayGo := func(o cluster.Occupant) bool { return o.Status == cluster.Evictable && !o.Pinned }
		name := func(t *rapid.T) string { return fmt.Sprint("u", rapid.IntRange(0, 4).Draw(t, "unit")) }
		where := func(keep func(cluster.Occupant) bool) []string {
			var units []string
			for _, unit := range slices.Sorted(maps.Keys(model)) {
				if keep(model[unit]) {
					units = append(units, unit)
				}
			}
			return units
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				o := cluster.Occupant{
					Unit: name(t), Priority: int32(rapid.IntRange(-1, 2).Draw(t, "priority")), Pinned: rapid.IntRange(0, 3).Draw(t, "pinned") == 0,
					Nodes:  rapid.SampledFrom([][]resource.NodeID{{"a"}, {"a", "b"}, {"b"}}).Draw(t, "nodes"),
					Status: rapid.SampledFrom([]cluster.Status{cluster.Evictable, cluster.Contested, cluster.Claimed, cluster.Leaving, cluster.Displaced}).Draw(t, "status"),
				}
				before, known := model[o.Unit]
				if mayGo(o) && (!known || !mayGo(before)) || known && left(before) && !left(o) {
					news[o.Unit] = true
				}
				model[o.Unit] = o
				s.SetOccupant(&o)
			},
			"remove": func(t *rapid.T) {
				unit := name(t)
				if o, known := model[unit]; known && left(o) {
					news[unit] = true
				}
				delete(model, unit)
				s.RemoveOccupant(unit)
			},
			"go on with a fork": func(*rapid.T) {
				s = s.Snapshot().Fork()
				clear(news)
			},
			"news": func(t *rapid.T) {
				if diff := cmp.Diff(slices.Sorted(maps.Keys(news)), s.TakeOccupantNews()); diff != "" {
					t.Fatalf("news (-want +got):\n%s", diff)
				}
				clear(news)
			},
			"": func(t *rapid.T) {
				same := func(by string, want []string, got iter.Seq[*cluster.Occupant]) {
					if diff := cmp.Diff(want, unitsOf(got)); diff != "" {
						t.Fatalf("%s (-want +got):\n%s", by, diff)
					}
				}
				same("all", where(func(cluster.Occupant) bool { return true }), s.Occupants())
				for _, id := range []resource.NodeID{"a", "b", "c"} {
					same("on "+string(id), where(func(o cluster.Occupant) bool { return slices.Contains(o.Nodes, id) }), s.OccupantsOf(id))
				}
				for status := cluster.Evictable; status <= cluster.Displaced; status++ {
					same(status.String(), where(func(o cluster.Occupant) bool { return o.Status == status }), s.WithStatus(status))
				}
				for p := int32(-2); p < 4; p++ {
					want := len(where(func(o cluster.Occupant) bool { return mayGo(o) && o.Priority < p })) > 0
					if got := s.HasEvictableBelow(p); got != want {
						t.Fatalf("somebody below %d may give way: %t, want %t", p, got, want)
					}
				}
				for unit, want := range model {
					if got := s.Occupant(unit); got == nil || !cmp.Equal(*got, want) {
						t.Fatalf("%s is %+v, want %+v", unit, got, want)
					}
				}
			},
		})
	})
}
