package queue

import (
	"fmt"
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
	if diff := cmp.Diff([]string{"urgent", "early", "late", "newer-epoch"}, paths(q.Head(9))); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	late := Key{Epoch: 1, Counter: 2, Path: "late"}
	if got := q.Position(late); got != 3 {
		t.Errorf("position of late is %d, want 3", got)
	}
}

// The queue holds exactly what a sorted slice holds.
func TestAgainstASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		var naive []Key
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			k := Key{Priority: rapid.Int32Range(-1, 2).Draw(t, "priority"), Epoch: 1, Counter: rapid.Uint64Range(0, 15).Draw(t, "counter")}
			k.Path = fmt.Sprintf("%d-%d", k.Counter, k.Priority)
			i, found := slices.BinarySearchFunc(naive, k, Compare)
			switch remove := rapid.IntRange(0, 2).Draw(t, "remove") == 0; {
			case remove:
				if q.Remove(k); found {
					naive = slices.Delete(naive, i, i+1)
				}
			default:
				if q.Push(k); !found {
					naive = slices.Insert(naive, i, k)
				}
			}
			if got, want := q.Position(k), slices.Index(naive, k)+1; got != want {
				t.Fatalf("position %d of %v, want %d", got, k, want)
			}
			head := rapid.IntRange(0, len(naive)+1).Draw(t, "head")
			if diff := cmp.Diff(paths(naive[:min(head, len(naive))]), paths(q.Head(head))); diff != "" || q.Len() != len(naive) {
				t.Fatalf("%d units, want %d; the first %d (-want +got):\n%s", q.Len(), len(naive), head, diff)
			}
		}
	})
}

// counted is an observer.
type counted struct{ arrived, left []string }

func (c *counted) Arrived(k Key) { c.arrived = append(c.arrived, k.Path) }
func (c *counted) Left(k Key)    { c.left = append(c.left, k.Path) }

func TestObserverSeesEachChangeOnce(t *testing.T) {
	var q Queue
	var o counted
	q.Observe(&o)
	a, b := Key{Path: "a"}, Key{Path: "b"}
	q.Push(a)
	q.Push(a)
	q.Push(a)
	q.Remove(b)
	q.Remove(a)
	q.Remove(a)
	q.Push(b)
	if diff := cmp.Diff(counted{[]string{"a", "b"}, []string{"a"}}, o, cmp.AllowUnexported(counted{})); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}
