package warehousetest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/mem"
	"github.com/musterd/muster/resource"
)

// testCuts writes random cuts and slices of two members: the slices, the last counters of
// live grants and the hours that have to be summed up anew are those of the oracle.
func testCuts(t *testing.T, dsn string) {
	w, oracle, random := Open(t, dsn), mem.New(), rand.New(rand.NewPCG(7, 7))
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var grants []history.Grant
	for i, end := range []time.Time{{}, noon.Add(5 * time.Hour)} {
		grants = append(grants, history.Grant{
			Tx: resource.TxID(fmt.Sprint("t", i)), Unit: "u", Committed: noon, Ended: end, Signaled: noon, Revision: 1,
			Members: []history.Member{{Allocated: resource.Vector{"cpu": 1000, "memory": 1 << 30}, Requested: resource.Vector{"cpu": 1000, "memory": 1 << 30}}},
		})
	}
	both := func(b history.Batch) {
		b.After, b.Upto = 0, 0
		if err := oracle.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		Write(t, w, b)
	}
	both(history.Batch{Grants: grants})
	slot := func() resource.Name { return []resource.Name{"cpu", "memory"}[random.IntN(2)] }
	tx := func() resource.TxID { return grants[random.IntN(len(grants))].Tx }
	for range 60 {
		var b history.Batch
		if random.IntN(2) == 0 {
			b.Cuts = append(b.Cuts, history.Cut{Tx: tx(), Slot: slot(), At: noon.Add(time.Duration(random.IntN(240)) * time.Minute)})
		}
		for range random.IntN(4) {
			from := random.IntN(48) * 5
			s := history.Slice{Tx: tx(), Unit: "u", Tenant: "a", Slot: slot(), Allocated: 1000, From: noon.Add(time.Duration(from) * time.Minute)}
			s.To = s.From.Add(time.Duration(random.IntN(61-from%60)) * time.Minute)
			if random.IntN(2) == 0 {
				used, counter := random.Int64N(1000)*1000, random.Int64N(1000)
				s.Measured, s.Counter = &used, &counter
			}
			b.Slices = append(b.Slices, s)
		}
		both(b)
		if _, err := w.SQL().Exec("DELETE FROM usage_dirty"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := w.All(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var want []history.Slice
	for _, s := range oracle.Rows().Slices {
		want = append(want, s)
	}
	if diff := gocmp.Diff(ordered(want), ordered(got.Slices), equal); diff != "" {
		t.Errorf("slices (-oracle +database)\n%s", diff)
	}
	if got.Grants[0].Signaled != noon {
		t.Errorf("the signal is %s, want %s", got.Grants[0].Signaled, noon)
	}
	last, err := w.LastCounted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want, err = oracle.LastCounted(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range want { // the part that the contract asks for
		s := want[i]
		want[i] = history.Slice{Tx: s.Tx, Member: s.Member, Slot: s.Slot, From: s.From, To: s.To, Measured: s.Measured, Counter: s.Counter}
	}
	if diff := gocmp.Diff(ordered(want), ordered(last), equal); diff != "" || len(last) == 0 {
		t.Errorf("last counters (-oracle +database)\n%s", diff)
	}
	both(history.Batch{Cuts: []history.Cut{{Tx: "t1", Slot: "cpu", At: noon}}})
	hours := map[time.Time]bool{}
	for _, s := range got.Slices {
		if s.Tx == "t1" && s.Slot == "cpu" && s.To.After(s.From) {
			hours[s.From.Truncate(time.Hour)] = true
		}
	}
	if n := Count(t, w, "SELECT count(*) FROM usage_dirty"); n != int64(len(hours)) || n == 0 {
		t.Errorf("a cut marks %d hours, want %d", n, len(hours))
	}
}

func ordered(list []history.Slice) []history.Slice {
	slices.SortFunc(list, func(a, b history.Slice) int {
		return cmp.Or(cmp.Compare(a.Tx, b.Tx), cmp.Compare(a.Slot, b.Slot), a.From.Compare(b.From))
	})
	return list
}
