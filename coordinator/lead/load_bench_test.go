package lead

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// waitingUnits are the keys of that many units that wait, of 32 demands, in the
// order in which the store lists them.
func waitingUnits(b *testing.B, count int) (in Loaded) {
	b.Helper()
	x := newScene(b)
	x.running("first", 8, "")
	x.running("second", 8, "")
	like := x.accepted("like", 8, `"priority":3,`)
	kv, _, _, err := x.kv.Get(b.Context(), like.Record.Path().Key())
	if err != nil || !like.Queued {
		b.Fatal("it does not wait: ", err)
	}
	rec, err := record.Decode[record.Unit](kv.Key, kv.Value)
	if err != nil {
		b.Fatal(err)
	}
	for i := range count {
		r := rec
		r.Name, r.UID = fmt.Sprintf("w%06d", i), resource.UnitUID(fmt.Sprintf("%s-%d", rec.UID, i))
		r.Sequence.Counter += uint64(i) + 1
		document := strings.Replace(string(rec.Document), `"name":"like"`, fmt.Sprintf(`"name":%q`, r.Name), 1)
		r.Document = []byte(strings.Replace(document, `"nvidia.com/gpu":"8"`, fmt.Sprintf(`"memory":"%dGi","nvidia.com/gpu":"8"`, 1+i%32), 1))
		in.Units = append(in.Units, record.KV{Key: r.Path().Key(), Value: record.MustEncode(r), ModRev: kv.ModRev})
		in.Orders = append(in.Orders, record.KV{Key: r.Order().Key(), Value: record.MustEncode(record.Order{UnitUID: r.UID}), ModRev: kv.ModRev})
	}
	kvs, _, err := x.kv.Range(b.Context(), record.NodesPrefix, store.RangeOptions{})
	if err != nil {
		b.Fatal(err)
	}
	in.Nodes = kvs
	return in
}

// BenchmarkLoad is a term's beginning with units that wait: Load, and the first
// pass, which finds no place for any of them.
func BenchmarkLoad(b *testing.B) {
	for _, waiting := range []int{1_000, 16_000, 100_000} {
		b.Run(fmt.Sprint("waiting=", waiting), func(b *testing.B) {
			in := waitingUnits(b, waiting)
			b.ReportAllocs()
			for b.Loop() {
				l := NewLeader(Beginning{Rules: Rules{Id: "c1"}, Epoch: 2, MaxOps: 128})
				out, err := l.Load(l.post.Now(), in, nil)
				if err != nil {
					b.Fatal(err)
				}
				l.Pass(l.post.Now(), out)
				if _, _, _, queued := l.Sizes(); queued != waiting {
					b.Fatalf("%d units wait, want %d", queued, waiting)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(waiting), "µs/unit")
		})
	}
}
