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

// naive is the queue as sorted slices.
type naive struct {
	keys   []Key
	parked map[Key]bool
}

func (n *naive) push(k Key) {
	if i, found := slices.BinarySearchFunc(n.keys, k, Compare); !found {
		n.keys = slices.Insert(n.keys, i, k)
	}
	delete(n.parked, k)
}

func (n *naive) remove(k Key) {
	n.keys = slices.DeleteFunc(n.keys, func(o Key) bool { return o == k })
	delete(n.parked, k)
}

func (n *naive) park(k Key) {
	if slices.Contains(n.keys, k) {
		n.parked[k] = true
	}
}

func (n *naive) active() []Key {
	return slices.DeleteFunc(slices.Clone(n.keys), func(k Key) bool { return n.parked[k] })
}

// compare compares all that the queue tells with the naive one.
func (n *naive) compare(t *rapid.T, q *Queue) {
	want := n.active()
	if diff := cmp.Diff(paths(want), paths(q.Active())); diff != "" {
		t.Fatalf("active (-want +got):\n%s", diff)
	}
	if q.HasActive() != (len(want) > 0) || q.Len() != len(n.keys) {
		t.Fatalf("HasActive %v, Len %d; want %d active of %d", q.HasActive(), q.Len(), len(want), len(n.keys))
	}
	head := rapid.IntRange(0, len(n.keys)+1).Draw(t, "head")
	if diff := cmp.Diff(paths(n.keys[:min(head, len(n.keys))]), paths(q.Head(head))); diff != "" {
		t.Fatalf("the first %d (-want +got):\n%s", head, diff)
	}
}

// The queue holds exactly what sorted slices hold.
func TestAgainstSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		n := naive{parked: map[Key]bool{}}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			k := Key{Priority: rapid.Int32Range(-1, 2).Draw(t, "priority"), Epoch: 1, Counter: rapid.Uint64Range(0, 15).Draw(t, "counter")}
			k.Path = fmt.Sprintf("%d-%d", k.Counter, k.Priority)
			switch rapid.IntRange(0, 7).Draw(t, "operation") {
			case 0, 1, 2:
				q.Push(k)
				n.push(k)
			case 3:
				q.Remove(k)
				n.remove(k)
			case 4, 5:
				q.Park(k)
				n.park(k)
			case 6:
				q.Wake()
				clear(n.parked)
			case 7: // a pass in vain
				n.compare(t, &q)
				for _, k := range q.Active() {
					q.Park(k)
					n.park(k)
				}
				n.compare(t, &q)
			}
			if got, want := q.Position(k), slices.Index(n.keys, k)+1; got != want {
				t.Fatalf("position %d of %v, want %d", got, k, want)
			}
		}
		n.compare(t, &q)
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
	q.Park(a)
	q.Push(a)
	q.Remove(b)
	q.Remove(a)
	q.Remove(a)
	q.Push(b)
	if diff := cmp.Diff(counted{[]string{"a", "b"}, []string{"a"}}, o, cmp.AllowUnexported(counted{})); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}
