package queue

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func paths(keys []Key) []string {
	var p []string
	for _, k := range keys {
		p = append(p, k.Path)
	}
	return p
}

func TestOrder(t *testing.T) {
	var q Queue
	q.Push(Key{Priority: 0, Epoch: 1, Counter: 1, Path: "early"})
	q.Push(Key{Priority: 0, Epoch: 2, Counter: 1, Path: "newer-epoch"})
	q.Push(Key{Priority: 9, Epoch: 3, Counter: 1, Path: "urgent"})
	q.Push(Key{Priority: 0, Epoch: 1, Counter: 2, Path: "late"})
	if diff := cmp.Diff([]string{"urgent", "early", "late", "newer-epoch"}, paths(q.Active())); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	late := Key{Epoch: 1, Counter: 2, Path: "late"}
	if got := q.Position(late); got != 3 {
		t.Errorf("position of late is %d, want 3", got)
	}
	q.Park(late)
	if diff := cmp.Diff([]string{"urgent", "early", "newer-epoch"}, paths(q.Active())); diff != "" {
		t.Errorf("after Park (-want +got):\n%s", diff)
	}
	q.Wake()
	if got := len(q.Active()); got != 4 {
		t.Errorf("%d active after Wake, want 4", got)
	}
}

// The queue holds exactly what a naive sorted set holds.
func TestAgainstNaiveSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		all, parked := map[Key]bool{}, map[Key]bool{}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			k := Key{Priority: rapid.Int32Range(0, 2).Draw(t, "prio"), Counter: rapid.Uint64Range(0, 3).Draw(t, "counter")}
			k.Path = string(rune('a'+k.Counter)) + string('a'+k.Priority)
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				q.Push(k)
				all[k] = true
				delete(parked, k)
			case 1:
				q.Remove(k)
				delete(all, k)
				delete(parked, k)
			case 2:
				q.Park(k)
				if all[k] {
					parked[k] = true
				}
			case 3:
				q.Wake()
				clear(parked)
			}
			var want []Key
			for k := range all {
				if !parked[k] {
					want = append(want, k)
				}
			}
			slices.SortFunc(want, Compare)
			if diff := cmp.Diff(paths(want), paths(q.Active())); diff != "" {
				t.Fatalf("active (-want +got):\n%s", diff)
			}
			if q.HasActive() != (len(want) > 0) || q.Len() != len(all) {
				t.Fatalf("HasActive %v, Len %d; want %d active of %d", q.HasActive(), q.Len(), len(want), len(all))
			}
		}
	})
}
