package usagetest_test

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/usage/usagetest"
	"github.com/musterd/muster/resource"
)

// start is a full hour.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ms(n int64) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }

// bigInts lets cmp compare whole numbers of any size.
var bigInts = gocmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })

// anySlice draws a slice near the window 0..400 ms; few keys, so that many overlap and
// some are the same slice.
func anySlice(t *rapid.T) history.Slice {
	from := rapid.Int64Range(-50, 420).Draw(t, "from")
	s := history.Slice{
		Tx:     resource.TxID(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "tx")),
		Member: rapid.IntRange(0, 3).Draw(t, "member"),
		Slot:   rapid.SampledFrom([]resource.Name{resource.CPU, resource.GPU}).Draw(t, "slot"),
		From:   ms(from), To: ms(from + rapid.Int64Range(0, 200).Draw(t, "length")),
		Requested: rapid.Int64Range(0, 5).Draw(t, "requested"),
		Allocated: rapid.OneOf(rapid.Int64Range(0, 5), rapid.Just(int64(1)<<50)).Draw(t, "allocated"),
		Limit:     rapid.Int64Range(0, 5).Draw(t, "limit"),
	}
	s.Tenant = resource.TenantID("tenant-" + string(s.Tx[0]%2+'0'))
	s.Namespace = string(s.Tenant) + "-ns"
	if s.Slot == resource.GPU {
		s.GPUModel = rapid.SampledFrom([]string{"", "H100"}).Draw(t, "model")
	}
	if rapid.Bool().Draw(t, "measured") && from >= 0 && !s.To.After(ms(400)) {
		used := rapid.Int64Range(0, 1000).Draw(t, "used")
		s.Measured = &used
	}
	return s
}

// naive adds millisecond by millisecond, slice by slice.
func naive(all []history.Slice, from, to time.Time) map[usagetest.Key]usagetest.Sum {
	type id struct {
		tx     resource.TxID
		member int
		slot   resource.Name
		from   time.Time
	}
	last := map[id]history.Slice{}
	for _, s := range all {
		last[id{s.Tx, s.Member, s.Slot, s.From}] = s
	}
	sums, held, used := map[usagetest.Key]usagetest.Sum{}, map[usagetest.Key][]int64{}, map[usagetest.Key][]int64{}
	for _, s := range last {
		key := usagetest.Key{Tenant: s.Tenant, Namespace: s.Namespace, Slot: s.Slot, Model: s.GPUModel}
		inside := false
		for at := s.From; at.Before(s.To); at = at.Add(time.Millisecond) {
			if at.Before(from) || !at.Before(to) {
				continue
			}
			if _, known := sums[key]; !known {
				sums[key] = usagetest.Sum{Key: key, From: from, To: to, Requested: new(big.Int), Allocated: new(big.Int), Limit: new(big.Int), Measured: new(big.Int), MeasuredOf: new(big.Int)}
				held[key] = make([]int64, to.Sub(from).Milliseconds())
			}
			sum := sums[key]
			sum.Requested.Add(sum.Requested, big.NewInt(s.Requested))
			sum.Allocated.Add(sum.Allocated, big.NewInt(s.Allocated))
			sum.Limit.Add(sum.Limit, big.NewInt(s.Limit))
			if s.Measured != nil {
				sum.MeasuredOf.Add(sum.MeasuredOf, big.NewInt(s.Allocated))
				if used[key] == nil {
					used[key] = make([]int64, len(held[key]))
				}
				used[key][at.Sub(from).Milliseconds()] += *s.Measured / s.To.Sub(s.From).Milliseconds()
			}
			held[key][at.Sub(from).Milliseconds()] += s.Allocated
			inside = true
		}
		if inside && s.Measured != nil {
			sums[key].Measured.Add(sums[key].Measured, big.NewInt(*s.Measured))
		}
	}
	for key, amounts := range held {
		sum := sums[key]
		sum.Min = slices.Min(amounts)
		sum.Levels, sum.Max, sum.P95, sum.P99 = ranked(amounts)
		if used[key] != nil {
			sum.UsedLevels, sum.UsedMax, sum.UsedP95, sum.UsedP99 = ranked(used[key])
		}
		sums[key] = sum
	}
	return sums
}

// ranked are the levels of the amounts of each millisecond, the greatest, and percentiles:
// the k-th of n is the least that k of n do not exceed.
func ranked(amounts []int64) (levels []usagetest.Level, most, p95, p99 int64) {
	slices.Sort(amounts)
	for _, a := range amounts {
		if n := len(levels); n == 0 || levels[n-1].Amount != a {
			levels = append(levels, usagetest.Level{Amount: a})
		}
		levels[len(levels)-1].For += time.Millisecond
	}
	return levels, amounts[len(amounts)-1], amounts[(len(amounts)*95+99)/100-1], amounts[(len(amounts)*99+99)/100-1]
}

func TestSumsAreThoseOfEveryMillisecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(anySlice), 0, 12).Draw(t, "slices")
		to := ms(rapid.Int64Range(1, 400).Draw(t, "to"))
		if to.Before(ms(400)) { // the part of a measured use is a rounding of its own
			for i := range all {
				all[i].Measured = nil
			}
		}
		got := usagetest.Sums(all, start, to)
		want := naive(all, start, to)
		if !slices.IsSortedFunc(got, func(a, b usagetest.Sum) int {
			return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Model, b.Model))
		}) {
			t.Errorf("sums are not in order: %+v", got)
		}
		byKey := map[usagetest.Key]usagetest.Sum{}
		for _, s := range got {
			byKey[s.Key] = s
		}
		if d := gocmp.Diff(want, byKey, bigInts); d != "" {
			t.Errorf("(-each millisecond +sums)\n%s", d)
		}
	})
}

func TestSumsOfPartsAreTheSumOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(anySlice), 0, 12).Draw(t, "slices")
		cut := ms(rapid.Int64Range(1, 399).Draw(t, "cut"))
		parts := map[usagetest.Key]*big.Int{}
		for _, part := range [][]usagetest.Sum{usagetest.Sums(all, start, cut), usagetest.Sums(all, cut, ms(400))} {
			for _, s := range part {
				if parts[s.Key] == nil {
					parts[s.Key] = new(big.Int)
				}
				parts[s.Key].Add(parts[s.Key], s.Allocated)
			}
		}
		whole := map[usagetest.Key]*big.Int{}
		for _, s := range usagetest.Sums(all, start, ms(400)) {
			whole[s.Key] = s.Allocated
		}
		if d := gocmp.Diff(whole, parts, bigInts); d != "" {
			t.Errorf("(-whole +parts)\n%s", d)
		}
	})
}

func TestRepeatedAndLateSlicesChangeNothingTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfNDistinct(rapid.Custom(anySlice), 0, 12, func(s history.Slice) string {
			return fmt.Sprintf("%s %d %s %d", s.Tx, s.Member, s.Slot, s.From.UnixMilli())
		}).Draw(t, "slices")
		again := append(slices.Clone(all), rapid.Permutation(all).Draw(t, "again")...)
		if d := gocmp.Diff(usagetest.Sums(all, start, ms(400)), usagetest.Sums(again, start, ms(400)), bigInts); d != "" {
			t.Errorf("(-once +twice)\n%s", d)
		}
	})
}

// The mistake of systems before: Σ amount × Σ duration counts every member as long as
// all of them together.
func TestMembersBesideEachOtherAreNotMultiplied(t *testing.T) {
	var all []history.Slice
	for member := range 8 {
		all = append(all, history.Slice{Tx: "a", Member: member, Slot: resource.GPU, From: start, To: start.Add(time.Hour), Allocated: 1000})
	}
	got := usagetest.Sums(all, start, start.Add(time.Hour))
	want := big.NewInt(8 * 1000 * time.Hour.Milliseconds())
	if len(got) != 1 || got[0].Allocated.Cmp(want) != 0 || got[0].Max != 8000 || got[0].Min != 8000 {
		t.Errorf("8 members of a GPU for an hour: %+v, want the integral %s and 8000 throughout", got, want)
	}
}

func TestAnIntegralBeyondInt64IsExact(t *testing.T) {
	const held = int64(1) << 50
	all := []history.Slice{
		{Tx: "a", Slot: resource.Memory, From: start, To: start.Add(time.Hour), Allocated: held},
		{Tx: "b", Slot: resource.Memory, From: start, To: start.Add(time.Hour), Allocated: held - 1},
	}
	want := new(big.Int).Mul(big.NewInt(2*held-1), big.NewInt(time.Hour.Milliseconds()))
	if got := usagetest.Sums(all, start, start.Add(time.Hour)); got[0].Allocated.Cmp(want) != 0 {
		t.Errorf("integral %s, want %s", got[0].Allocated, want)
	}
}

func TestLevelsBeyondTheRangeStayAtItsEnd(t *testing.T) {
	all := []history.Slice{
		{Tx: "a", Slot: resource.Memory, From: start, To: ms(10), Allocated: resource.Unlimited},
		{Tx: "b", Slot: resource.Memory, From: start, To: ms(5), Allocated: resource.Unlimited},
	}
	got := usagetest.Sums(all, start, ms(10))[0]
	if got.Max != resource.Unlimited || got.Min != resource.Unlimited {
		t.Errorf("levels %d..%d, want %d throughout", got.Min, got.Max, resource.Unlimited)
	}
}

func TestUtilizationIsOfWhatWasMeasured(t *testing.T) {
	half, over := int64(1000*ms(50).Sub(start).Milliseconds()), int64(3000*100)
	for name, c := range map[string]struct {
		measured    *int64
		used, waste int64
		known       bool
	}{
		"half of the time busy":   {&half, 5000, 5000, true},
		"more than was allocated": {&over, 30000, 0, true},
		"nothing measured":        {nil, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			all := []history.Slice{
				{Tx: "a", Slot: resource.CPU, From: start, To: ms(100), Allocated: 1000, Measured: c.measured},
				{Tx: "b", Slot: resource.CPU, From: start, To: ms(100), Allocated: 9000},
			}
			used, waste, known := usagetest.Sums(all, start, ms(100))[0].Utilization()
			if used != c.used || waste != c.waste || known != c.known {
				t.Errorf("used %d, waste %d, %t; want %d, %d, %t", used, waste, known, c.used, c.waste, c.known)
			}
		})
	}
}

func BenchmarkSums(b *testing.B) {
	var all []history.Slice
	for i := range 10_000 {
		from := ms(int64(i * 300))
		all = append(all, history.Slice{Tx: resource.TxID(fmt.Sprint(i)), Slot: resource.CPU, From: from, To: from.Add(time.Minute), Allocated: int64(i%7) * 500})
	}
	for b.Loop() {
		usagetest.Sums(all, start, start.Add(time.Hour))
	}
}
