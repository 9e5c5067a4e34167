package batch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/lead/batch"
	"github.com/musterd/muster/coordinator/record"
)

// write makes a write with numbers of compares and operations on keys of its own.
func write(token uint64, compares, ops int) batch.Write {
	w := batch.Write{Token: token}
	for i := range max(compares, ops) {
		key := fmt.Sprint("/registry/tx/", token, ".", i)
		if i < compares {
			w.Compares = append(w.Compares, record.Absent(key))
		}
		if i < ops {
			w.Ops = append(w.Ops, record.Put(key, []byte("x")))
		}
	}
	return w
}

func newBatcher(maxOps int) *batch.Batcher {
	return batch.New(batch.Config{Held: record.CreateRevIs(leaderKey, 1), MaxOps: maxOps, FirstReread: 10 * time.Millisecond, LastReread: time.Second})
}

func TestWritesThatWaitShareTxns(t *testing.T) {
	fence := func(w batch.Write) batch.Write { w.AnyEpoch = true; return w }
	for name, c := range map[string]struct {
		waiting []batch.Write
		want    []int // writes per Txn, of Txns with at most 8 operations
	}{
		"nothing waits":                           {nil, nil},
		"all fit one Txn":                         {[]batch.Write{write(1, 1, 2), write(2, 1, 2), write(3, 1, 2)}, []int{3}},
		"exactly as many operations as allowed":   {[]batch.Write{write(1, 0, 4), write(2, 0, 4)}, []int{2}},
		"one operation too many":                  {[]batch.Write{write(1, 0, 4), write(2, 0, 5)}, []int{1, 1}},
		"exactly as many compares as allowed":     {[]batch.Write{write(1, 4, 1), write(2, 3, 1)}, []int{2}},
		"one compare too many, with the leader's": {[]batch.Write{write(1, 4, 1), write(2, 4, 1)}, []int{1, 1}},
		"a fence at the front":                    {[]batch.Write{fence(write(1, 1, 1)), write(2, 1, 1), write(3, 1, 1)}, []int{1, 2}},
		"a fence between":                         {[]batch.Write{write(1, 1, 1), fence(write(2, 1, 1)), write(3, 1, 1), write(4, 1, 1)}, []int{1, 1, 2}},
		"two fences":                              {[]batch.Write{fence(write(1, 1, 1)), fence(write(2, 1, 1))}, []int{1, 1}},
		"a small one does not overtake":           {[]batch.Write{write(1, 0, 5), write(2, 0, 5), write(3, 0, 1)}, []int{1, 2}},
		"the same key twice":                      {[]batch.Write{write(1, 0, 1), write(2, 0, 1), write(1, 0, 2), write(3, 0, 1)}, []int{2, 2}},
		"one that fits no Txn goes alone":         {[]batch.Write{write(1, 0, 9), write(2, 0, 1)}, []int{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBatcher(8)
			for _, w := range c.waiting {
				b.Submit(w, nil)
			}
			var got []int
			under := b.Next(nil)
			for len(under) > 0 {
				if len(under) > batch.InFlight || len(got) > len(c.waiting) {
					t.Fatalf("%d Txns are under way after %v", len(under), got)
				}
				answers := b.Answered(under[0].ID, batch.StoreAnswer{Revision: 1}, nil)
				got = append(got, len(answers))
				under = b.Next(under[1:])
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("writes per Txn (-want +got):\n%s", d)
			}
		})
	}
}

// TestAWriteCostsFewAllocations: what is allocated is the Txn, which the store
// gets, and now and then the queue; not per write.
func TestAWriteCostsFewAllocations(t *testing.T) {
	const shared = 40
	round := commitRound(shared)
	round()
	if n := testing.AllocsPerRun(100, round) / shared; n > 0.5 {
		t.Errorf("%.2f allocations per write", n)
	}
}

// commitRound commits writes that share Txns.
func commitRound(shared int) func() {
	b := newBatcher(512)
	var writes []batch.Write
	for i := range shared {
		writes = append(writes, write(uint64(i), 3, 5))
	}
	var out []batch.Effect
	return func() {
		for _, w := range writes {
			out = b.Submit(w, out[:0])
		}
		out = b.Next(out[:0])
		id := out[0].ID
		out = b.Answered(id, batch.StoreAnswer{Revision: 1}, out[:0])
	}
}

// BenchmarkWrite is one write of 3 compares and 5 operations, from Submit to its
// answer.
func BenchmarkWrite(b *testing.B) {
	for _, shared := range []int{1, 10, 40} {
		b.Run(fmt.Sprintf("%d in a Txn", shared), func(b *testing.B) {
			round := commitRound(shared)
			b.ReportAllocs()
			for n := 0; n < b.N; n += shared {
				round()
			}
		})
	}
}

// Two writes share a Txn. It fails, so each is sent alone and gets its own
// answer.
func ExampleBatcher() {
	b := newBatcher(128)
	absent := batch.Write{Token: 1, Compares: []record.Compare{record.Absent("a")}, Ops: []record.Op{record.Put("a", nil)}}
	b.Submit(absent, nil)
	b.Submit(batch.Write{Token: 2, Ops: []record.Op{record.Put("b", nil)}}, nil)
	for _, step := range []func() []batch.Effect{
		func() []batch.Effect { return b.Next(nil) },
		func() []batch.Effect {
			return b.Answered(1, batch.StoreAnswer{Result: batch.CompareFailed, Revision: 6}, nil)
		},
		func() []batch.Effect {
			return b.Answered(2, batch.StoreAnswer{Result: batch.CompareFailed, Revision: 6}, nil)
		},
		func() []batch.Effect { return b.KeyRead(2, batch.Held, nil, nil) },
		func() []batch.Effect { return b.Answered(3, batch.StoreAnswer{Revision: 7}, nil) },
	} {
		for _, e := range step() {
			fmt.Println(show(e))
		}
	}
	// Output:
	// send 1: if leader,a put a,b
	// send 2: if leader,a put a
	// read the leader's key for 2 after 0s
	// answer write 1: Conflict at 6
	// send 3: if leader put b
	// answer write 2: Landed at 7
}
