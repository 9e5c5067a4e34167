package usage

import (
	"cmp"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// Marks divide an hour: the measured use of a member is told apart by no shorter
// interval.
const (
	Mark = 5 * time.Minute
	Hour = time.Hour
	Day  = 24 * time.Hour
)

// Slices are the intervals of a grant from its commit up to an instant, or up to the end of a
// member or of the grant, in base units. An interval ends at every full hour (UTC) and
// nowhere else. What the exits of a grant that has ended say of its use is spread evenly
// over the slices of the member. The slices ascend by member, slot and instant. A grant
// without a commit has none.
//
// Instants are whole milliseconds; a finer part is cut off.
func Slices(g history.Grant, upto time.Time) []history.Slice {
	if g.Committed.IsZero() {
		return nil
	}
	var all []history.Slice
	final := finalUse(g)
	for _, m := range g.Members {
		from, to := millis(g.Committed), millis(earliest(farAway, g.Ended, m.Ended))
		if to.Equal(farAway) {
			to = millis(upto)
		}
		used, measured := final[m.Index]
		for _, slot := range slots(m) {
			pieces := hoursOf(sliceOf(g, m, slot), from, to)
			if counter, counted := counterOf(used, slot); measured && counted {
				spread(pieces, 0, counter)
			}
			all = append(all, pieces...)
		}
	}
	return all
}

// millis cuts an instant to whole milliseconds.
func millis(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// earliest is the first of an instant and those others that are set.
func earliest(at time.Time, others ...time.Time) time.Time {
	for _, o := range others {
		if !o.IsZero() && o.Before(at) {
			at = o
		}
	}
	return at
}

// slots are the names of which the member requests or holds an amount, ascending.
func slots(m history.Member) []resource.Name {
	names := map[resource.Name]bool{}
	for _, v := range []resource.Vector{m.Requested, m.Allocated} {
		for name, amount := range v {
			if amount > 0 {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// sliceOf is a slice of the member's slot without its interval.
func sliceOf(g history.Grant, m history.Member, slot resource.Name) history.Slice {
	s := history.Slice{
		Tx: g.Tx, Member: m.Index, Unit: g.Unit, Namespace: g.Namespace, Tenant: g.Tenant, Node: m.Node, Slot: slot,
		Requested: m.Requested[slot], Allocated: m.Allocated[slot], Limit: m.Limits[slot],
	}
	if hasModel(slot) {
		s.GPUModel = m.GPUModel
	}
	return s
}

// hasModel reports whether a slot is of GPUs or their instances: only these have sums
// for each model.
func hasModel(slot resource.Name) bool {
	return slot == resource.GPU || resource.IsGPUModel(slot) || isInstance(slot)
}

func isInstance(slot resource.Name) bool {
	_, mig, err := slot.MIGProfile()
	return mig && err == nil
}

// hoursOf cuts from..to at full hours.
func hoursOf(like history.Slice, from, to time.Time) (pieces []history.Slice) {
	for from.Before(to) {
		like.From, like.To = from, earliest(to, from.Truncate(Hour).Add(Hour))
		pieces = append(pieces, like)
		from = like.To
	}
	return pieces
}

// counterOf is the counter of a slot; false where nothing measures the slot.
func counterOf(u history.Use, slot resource.Name) (counter int64, counted bool) {
	switch {
	case slot == resource.CPU:
		return u.CPUMillis, true
	case hasModel(slot) && u.BusyMillis != nil:
		return *u.BusyMillis, true
	}
	return 0, false
}

// perCount is one count of a slot's counter in base units times milliseconds.
func perCount(slot resource.Name) int64 {
	switch {
	case slot == resource.CPU:
		return 1000 // millicores
	case slot == resource.GPU || resource.IsGPUModel(slot):
		return int64(resource.WholeDevice)
	}
	return 1
}

// Used is the use that so many counts of a slot's counter are, in base units times
// milliseconds.
func Used(slot resource.Name, counts int64) int64 {
	return resource.SaturatingMul(counts, perCount(slot))
}

// spread divides the growth of a counter over pieces that follow each other, by their
// length: the use of an interval that nobody has seen from within counts as even. The
// differences add up without a rest.
func spread(pieces []history.Slice, before, after int64) {
	if len(pieces) == 0 {
		return
	}
	from, to := pieces[0].From.UnixMilli(), pieces[len(pieces)-1].To.UnixMilli()
	last := before
	for i := range pieces {
		part := new(big.Int).Mul(big.NewInt(after-before), big.NewInt(pieces[i].To.UnixMilli()-from))
		counter := before + part.Quo(part, big.NewInt(to-from)).Int64()
		used := Used(pieces[i].Slot, counter-last)
		pieces[i].Measured, pieces[i].Counter = &used, &counter
		last = counter
	}
}

// ended is the part of a member's exit that is counted.
type ended struct {
	Member int `json:"member"`
	Use    *struct {
		CPUMillis int64 `json:"cpuMillis"`
		Devices   []struct {
			BusyMillis int64 `json:"busyMillis"`
		} `json:"devices"`
	} `json:"use"`
}

// finalUse is the use of each member, by its index, that the exits of a grant that has
// ended have. A member without a measurement has none. Memory is not among them: its
// integral is not measured.
func finalUse(g history.Grant) map[int]history.Use {
	var exits []ended
	if g.Ended.IsZero() || json.Unmarshal(g.Exits, &exits) != nil {
		return nil
	}
	final := map[int]history.Use{}
	for _, e := range exits {
		if e.Use == nil || e.Use.CPUMillis < 0 {
			continue
		}
		u := history.Use{Tx: g.Tx, Member: e.Member, CPUMillis: e.Use.CPUMillis}
		for _, d := range e.Use.Devices {
			u.AddDevice(d.BusyMillis)
		}
		final[e.Member] = u
	}
	return final
}

// sliceKey tells slices apart, as the warehouse does.
type sliceKey struct {
	tx     resource.TxID
	member int
	slot   resource.Name
	from   int64
}

func keyOf(s history.Slice) sliceKey { return sliceKey{s.Tx, s.Member, s.Slot, s.From.UnixMilli()} }

func compareSlices(a, b history.Slice) int {
	return cmp.Or(cmp.Compare(a.Tx, b.Tx), cmp.Compare(a.Member, b.Member), cmp.Compare(a.Slot, b.Slot), a.From.Compare(b.From))
}

func compareCuts(a, b history.Cut) int {
	return cmp.Or(cmp.Compare(a.Tx, b.Tx), cmp.Compare(a.Member, b.Member), cmp.Compare(a.Slot, b.Slot), a.At.Compare(b.At))
}

// earliestCuts keeps the earliest cut of each slot of a member; they ascend.
func earliestCuts(all []history.Cut) []history.Cut {
	return slices.CompactFunc(all, func(a, b history.Cut) bool { return a.Tx == b.Tx && a.Member == b.Member && a.Slot == b.Slot })
}

// latest keeps the last slice of each key.
func latest(all []history.Slice) []history.Slice {
	place := make(map[sliceKey]int, len(all))
	kept := make([]history.Slice, 0, len(all))
	for _, s := range all {
		if i, known := place[keyOf(s)]; known {
			kept[i] = s
			continue
		}
		place[keyOf(s)] = len(kept)
		kept = append(kept, s)
	}
	return kept
}
