package decisions

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/resource"
)

// both does the same with the tracker and with the naive one.
type both struct {
	t          *rapid.T
	tracker    *Tracker
	naive      *naive
	keys       []queue.Key // of units that may wait, in order
	generation uint64
	txs        int
}

// taker returns a sink that wants the State after every few records.
func taker(log *[]string, every int) func(Record) bool {
	return func(r Record) bool {
		*log = append(*log, string(Encode(r)))
		return len(*log)%every == 0
	}
}

func (b *both) skip(k queue.Key) {
	e := Evidence{Why: rapid.SampledFrom(append(whys[1:], Infeasible, Infeasible, OverQuota)).Draw(b.t, "why")}
	e.Subject = rapid.SampledFrom([]string{"", "s"}).Draw(b.t, "subject")
	b.tracker.Skipped(k, e, func() string { return k.Path })
	b.naive.skipped(k, e, func() string { return k.Path })
}

// pass skips units in order, most of them with the same evidence.
func (b *both) pass() {
	e := Evidence{Why: rapid.SampledFrom([]Why{Infeasible, OverQuota, AwaitsGang}).Draw(b.t, "why of all")}
	only := rapid.IntRange(0, 4).Draw(b.t, "only each")
	for _, u := range slices.Clone(b.naive.waiting) {
		if only > 0 && int(u.key.Counter)%(only+1) == 0 {
			continue
		}
		b.tracker.Skipped(u.key, e, nil)
		b.naive.skipped(u.key, e, nil)
	}
}

func (b *both) place(k queue.Key) {
	b.txs++
	p := Placement{Key: k, Tx: resource.TxID(fmt.Sprint("tx", b.txs)), Kind: Plain}
	b.tracker.Placed(p)
	b.naive.placed(p)
}

func (b *both) step() {
	k := rapid.SampledFrom(b.keys).Draw(b.t, "unit")
	switch rapid.IntRange(0, 9).Draw(b.t, "step") {
	case 0, 1, 2:
		b.tracker.Arrived(k)
		b.naive.arrived(k)
	case 3, 4:
		b.skip(k)
	case 5:
		b.pass()
	case 6:
		b.generation++
		b.tracker.Freed(b.generation)
		b.naive.generation = b.generation
	case 7:
		b.tracker.Left(k)
		b.naive.left(k)
	case 8:
		b.place(k)
	default:
		tx := resource.TxID(fmt.Sprint("tx", b.txs))
		b.tracker.Committed(tx, 9)
		b.naive.committed(tx, 9)
	}
}

// The tracker says byte for byte what one says that looks at each unit.
func TestTrackerAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := both{t: t, generation: 1}
		for priority := range int32(3) {
			for counter := range uint64(15) {
				k := queue.Key{Priority: 1 - priority, Epoch: 7, Counter: counter + 1, Path: fmt.Sprintf("ns/alloc/u%d-%d/0", priority, counter)}
				b.keys = append(b.keys, k)
			}
		}
		waiting := b.keys[:rapid.IntRange(0, len(b.keys)).Draw(t, "wait at first")]
		every := rapid.IntRange(2, 40).Draw(t, "a state after")
		var got, want []string
		b.tracker = NewTracker(7, 1, waiting, taker(&got, every))
		b.naive = newNaive(7, 1, waiting, taker(&want, every))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			b.step()
		}
		b.tracker.Flush()
		b.naive.flush()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("records (-naive +tree):\n%s", diff)
		}
	})
}
