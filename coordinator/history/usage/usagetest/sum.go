// Package usagetest computes the use and the cost of slices in memory, exactly. The
// warehouse computes the same sums by SQL; the tests of both compare the sums.
//
// A sum holds the integral, Σ amount × duration of each slice: never the product of two
// sums, which would count every member as long as all of them together (FIELD-NOTES 2).
// Integrals pass the range of int64 (a day of a terabyte is 10^20 byte milliseconds): they
// are whole numbers of any size; no float is used. The package reads no database and
// serves tests alone.
package usagetest

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// Key tells sums apart. Model is "" where the slot has no models, or the member's is not
// known.
type Key struct {
	Tenant    resource.TenantID
	Namespace string
	Slot      resource.Name
	Model     string
}

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Tenant, o.Tenant), cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Slot, o.Slot), cmp.Compare(k.Model, o.Model))
}

// Sum is the use of a slot within From..To. Integrals are base units times
// milliseconds.
//
// Invariant: Min <= P95 <= P99 <= Max; the times of Levels add up to To - From, and
// their amounts times times to Allocated; Measured <= MeasuredOf where no
// measurement exceeds its allocation.
type Sum struct {
	Key
	From, To time.Time

	Requested, Allocated, Limit *big.Int
	// Measured is the integral of the measured use, and MeasuredOf the integral of
	// the amounts allocated in the measured slices: only these two can be compared.
	Measured, MeasuredOf *big.Int

	// The least, the most and the percentiles of the amount held by all members
	// together, by time: P95 is the least amount not exceeded in 95 % of the time.
	// A time without a slice counts as 0. The levels are below 2^63 base units; beyond
	// they stay there.
	Min, Max, P95, P99 int64
	// Levels are the amounts held, ascending, each with its time.
	Levels []Level
	// UsedLevels are the same of the use, which is even within a slice; nil without a
	// measurement. A time without a measured slice counts as 0. The others follow from them.
	UsedLevels                []Level
	UsedMax, UsedP95, UsedP99 int64
}

// Level is an amount and how long just so much was held.
type Level struct {
	Amount int64
	For    time.Duration
}

// Sums adds up the parts of the slices within from..to, for each key with a part
// there, ascending by key. Slices of one key (Tx, Member, Slot, From) count once: the
// last of them. The bounds are whole milliseconds.
//
// A measured slice only partly within counts with the same part of its use,
// rounded down.
func Sums(all []history.Slice, from, to time.Time) []Sum {
	groups := map[Key][]history.Slice{}
	for _, s := range latest(all) {
		if s, inside := clip(s, from, to); inside {
			key := Key{s.Tenant, s.Namespace, s.Slot, s.GPUModel}
			groups[key] = append(groups[key], s)
		}
	}
	sums := make([]Sum, 0, len(groups))
	for key, group := range groups {
		sums = append(sums, sumOf(key, group, from, to))
	}
	slices.SortFunc(sums, func(a, b Sum) int { return a.compare(b.Key) })
	return sums
}

// latest keeps the last slice of each key (Tx, Member, Slot, From).
func latest(all []history.Slice) []history.Slice {
	type key struct {
		tx     resource.TxID
		member int
		slot   resource.Name
		from   int64
	}
	place := make(map[key]int, len(all))
	kept := make([]history.Slice, 0, len(all))
	for _, s := range all {
		k := key{s.Tx, s.Member, s.Slot, s.From.UnixMilli()}
		if i, known := place[k]; known {
			kept[i] = s
			continue
		}
		place[k] = len(kept)
		kept = append(kept, s)
	}
	return kept
}

// clip is the part of a slice within from..to; false where the slice is outside.
func clip(s history.Slice, from, to time.Time) (history.Slice, bool) {
	whole := s.To.Sub(s.From).Milliseconds()
	if s.From.Before(from) {
		s.From = from
	}
	if s.To.After(to) {
		s.To = to
	}
	part := s.To.Sub(s.From).Milliseconds()
	if part <= 0 {
		return s, false
	}
	if s.Measured != nil && part < whole {
		used := new(big.Int).Mul(big.NewInt(*s.Measured), big.NewInt(part))
		inside := used.Quo(used, big.NewInt(whole)).Int64()
		s.Measured = &inside
	}
	return s, true
}

// sumOf adds up the slices of a key within from..to.
func sumOf(key Key, group []history.Slice, from, to time.Time) Sum {
	sum := Sum{
		Key: key, From: from, To: to,
		Requested: new(big.Int), Allocated: new(big.Int), Limit: new(big.Int), Measured: new(big.Int), MeasuredOf: new(big.Int),
	}
	for _, s := range group {
		addProduct(sum.Requested, s.Requested, s)
		addProduct(sum.Allocated, s.Allocated, s)
		addProduct(sum.Limit, s.Limit, s)
		if s.Measured != nil {
			sum.Measured.Add(sum.Measured, big.NewInt(*s.Measured))
			addProduct(sum.MeasuredOf, s.Allocated, s)
		}
	}
	sum.Levels = levelsOf(group, from, to)
	sum.Min, sum.Max = sum.Levels[0].Amount, sum.Levels[len(sum.Levels)-1].Amount
	sum.P95, sum.P99 = percentile(sum.Levels, 95), percentile(sum.Levels, 99)
	var used []history.Slice
	for _, s := range group {
		if s.Measured != nil {
			s.Allocated = *s.Measured / s.To.Sub(s.From).Milliseconds()
			used = append(used, s)
		}
	}
	if len(used) > 0 {
		sum.UsedLevels = levelsOf(used, from, to)
		sum.UsedMax = sum.UsedLevels[len(sum.UsedLevels)-1].Amount
		sum.UsedP95, sum.UsedP99 = percentile(sum.UsedLevels, 95), percentile(sum.UsedLevels, 99)
	}
	return sum
}

// addProduct adds the amount times the duration of the slice.
func addProduct(to *big.Int, amount int64, s history.Slice) {
	product := big.NewInt(amount)
	to.Add(to, product.Mul(product, big.NewInt(s.To.Sub(s.From).Milliseconds())))
}

// levelsOf is how long the slices together held which amount within from..to, ascending
// by amount. There is always a level, for from lies before to.
func levelsOf(group []history.Slice, from, to time.Time) []Level {
	changes := map[int64]*big.Int{from.UnixMilli(): new(big.Int), to.UnixMilli(): new(big.Int)}
	change := func(at time.Time, amount int64) {
		ms := at.UnixMilli()
		if changes[ms] == nil {
			changes[ms] = new(big.Int)
		}
		changes[ms].Add(changes[ms], big.NewInt(amount))
	}
	for _, s := range group {
		change(s.From, s.Allocated)
		change(s.To, -s.Allocated)
	}
	instants := make([]int64, 0, len(changes))
	for ms := range changes {
		instants = append(instants, ms)
	}
	slices.Sort(instants)
	times, held := map[int64]int64{}, new(big.Int)
	for i, ms := range instants[:len(instants)-1] {
		held.Add(held, changes[ms])
		times[saturated(held)] += instants[i+1] - ms
	}
	levels := make([]Level, 0, len(times))
	for amount, ms := range times {
		levels = append(levels, Level{amount, time.Duration(ms) * time.Millisecond})
	}
	slices.SortFunc(levels, func(a, b Level) int { return cmp.Compare(a.Amount, b.Amount) })
	return levels
}

// saturated is a number held within the range of int64.
func saturated(n *big.Int) int64 {
	if n.IsInt64() {
		return n.Int64()
	}
	return resource.Unlimited
}

// percentile is the least amount not exceeded in so many percent of the time.
func percentile(levels []Level, percent int64) int64 {
	var whole, passed time.Duration
	for _, l := range levels {
		whole += l.For
	}
	for _, l := range levels {
		passed += l.For
		if int64(passed/time.Millisecond)*100 >= int64(whole/time.Millisecond)*percent {
			return l.Amount
		}
	}
	return levels[len(levels)-1].Amount
}

// Utilization is the used part of the allocated amounts, and the rest, in
// hundredths of a percent rounded to the nearest: 6667 is 66.67 %. known is false where
// no slice was measured. More than was allocated may be used: waste is never below 0.
func (s Sum) Utilization() (used, waste int64, known bool) {
	if s.MeasuredOf.Sign() <= 0 {
		return 0, 0, false
	}
	used = saturated(nearest(new(big.Int).Mul(s.Measured, big.NewInt(10_000)), s.MeasuredOf))
	return used, max(0, 10_000-used), true
}

// nearest is n/d, rounded to the nearest whole number; half of one goes up. Neither is
// negative, and d is not 0.
func nearest(n, d *big.Int) *big.Int {
	twice := new(big.Int).Lsh(n, 1)
	return twice.Quo(twice.Add(twice, d), new(big.Int).Lsh(d, 1))
}
