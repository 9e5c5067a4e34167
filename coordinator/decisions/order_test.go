package decisions

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// both is a room and the tracker that follows it.
type both struct {
	t       *rapid.T
	room    *sched.Room
	tracker *Tracker
	log     []Record
	held    map[string]Why
	fails   bool
}

func (b *both) Held(path string) Evidence { return Evidence{Why: b.held[path]} }

func (b *both) Asleep(*sched.Class, *sched.Evidence) (string, func() string) {
	return "", func() string { return "" }
}

func (b *both) Try(k queue.Key, _ bool) *sched.Evidence {
	if b.fails = !b.fails; b.fails {
		return &sched.Evidence{Code: sched.NoPlace}
	}
	b.place(k)
	return nil
}

func (b *both) Wait(string, *sched.Evidence) {}

// place compares what is said of a placement with what is seen by looking at each
// unit of the room.
func (b *both) place(k queue.Key) {
	var want Counts
	keys := b.room.Order().Head(b.room.Order().Len())
	position := 1
	for _, o := range keys {
		if o == k {
			break
		}
		position++
		switch {
		case b.room.Offered(o.Path):
			want.Asleep++
		case b.held[o.Path] == AwaitsGang:
			want.AwaitsGang++
		default:
			want.BeingWritten++
		}
	}
	at := len(b.log)
	b.tracker.Placed(Placement{Key: k, Tx: resource.TxID(fmt.Sprint("tx", at)), Kind: Plain})
	if p := b.log[at].Place; p.Position != position || p.Ahead != want {
		b.t.Fatalf("%s is placed at position %d with %s ahead, want %d with %s", k.Path, p.Position, p.Ahead, position, want)
	}
	b.room.Remove(k)
}

// state compares a State with each unit of the room.
func (b *both) state() {
	b.tracker.state(false)
	s := b.log[len(b.log)-1].State
	got := map[string]string{}
	for _, w := range s.Waiting {
		switch {
		case w.Class > 0:
			for _, c := range s.Classes {
				if c.ID == w.Class {
					got[w.Unit] = fmt.Sprint(c.Request.GPUs, c.Priority, c.Sleep != nil)
				}
			}
		case w.Why > 0:
			got[w.Unit] = string(s.Evidence[w.Why-1].Why)
		}
	}
	want := map[string]string{}
	for _, k := range b.room.Order().Head(b.room.Order().Len()) {
		if want[k.Path] = string(b.held[k.Path]); b.room.Offered(k.Path) {
			c := b.room.ClassOf(k.Path)
			want[k.Path] = fmt.Sprint(c.Demand().Request.GPUs, c.Priority, c.Evidence() != nil)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Fatalf("the state (-room +log):\n%s", diff)
	}
}

func (b *both) step(k queue.Key) {
	switch rapid.IntRange(0, 9).Draw(b.t, "step") {
	case 0, 1, 2, 3:
		demand := place.Unit{Members: 1, Request: resource.Request{GPUs: rapid.IntRange(1, 3).Draw(b.t, "GPUs")}}
		b.room.Offer(k, sched.Traits{Demand: fmt.Sprint(demand.Request.GPUs), Namespace: "ns", Priority: k.Priority}, &demand)
	case 4, 5:
		b.held[k.Path] = rapid.SampledFrom([]Why{AwaitsGang, BeingWritten}).Draw(b.t, "why")
		b.room.Hold(k)
	case 6:
		b.room.Remove(k)
	case 7:
		b.room.All()
	case 8:
		b.state()
	default:
		b.room.Pass(rapid.IntRange(1, 5).Draw(b.t, "tries"), b)
	}
}

// TestTheTrackerAgreesWithTheRoom: positions, counts and States are those of the
// room that the tracker follows.
func TestTheTrackerAgreesWithTheRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &both{t: t, room: sched.NewRoom(), held: map[string]Why{}}
		var keys []queue.Key
		for priority := range int32(3) {
			for counter := range uint64(15) {
				keys = append(keys, queue.Key{Priority: 1 - priority, Epoch: 7, Counter: counter + 1, Path: fmt.Sprintf("ns/alloc/u%d-%d/0", priority, counter)})
			}
		}
		b.tracker = NewTracker(7, b.room, b, func(r Record) bool { b.log = append(b.log, r); return false })
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			b.step(rapid.SampledFrom(keys).Draw(t, "unit"))
		}
		b.state()
	})
}
