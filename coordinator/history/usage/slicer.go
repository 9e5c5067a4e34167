package usage

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// Kept is how long raw slices are kept. An end changes no slice that lies further back.
const Kept = 60 * Day

// Slicer makes the slices of the grants that it follows. A live grant has slices up to
// the last mark (5 minutes) that the batches passed; the last of them begins at the full
// hour or at the commit and grows from mark to mark under its key, so that an hour of a
// grant in which nothing changes is one row for each slot.
//
// One goroutine at a time may use a Slicer. It holds the live grants.
type Slicer struct {
	live map[resource.TxID]history.Grant
	upto time.Time // the mark up to which the slices of live grants are made
}

// NewSlicer continues at a position: live are the grants without an end, and upto is
// what Upto returned there. The zero time makes the slices of each grant anew from its
// commit on, which changes no sum.
func NewSlicer(live []history.Grant, upto time.Time) *Slicer {
	s := &Slicer{live: map[resource.TxID]history.Grant{}, upto: upto.UTC()}
	for _, g := range live {
		if g.Ended.IsZero() {
			s.live[g.Tx] = g
		}
	}
	return s
}

// Upto is the mark up to which live grants have slices.
func (s *Slicer) Upto() time.Time { return s.upto }

// Follow takes the grants of the next batch and returns the slices to write with it,
// ascending by transaction, member, slot and instant. A batch without rows moves the
// time alone.
func (s *Slicer) Follow(b history.Batch) []history.Slice {
	var all []history.Slice
	for _, g := range b.Grants {
		all = append(all, s.take(g)...)
	}
	if mark := b.At.UTC().Truncate(Mark); mark.After(s.upto) {
		for _, g := range s.live {
			from := latestOf(s.upto.Add(-time.Millisecond).Truncate(Hour), mark.Add(-Kept).Truncate(Hour))
			all = append(all, slicesFrom(g, nil, from, mark)...)
		}
		s.upto = mark
	}
	all = latest(all)
	slices.SortFunc(all, compareSlices)
	return all
}

// take follows one grant.
func (s *Slicer) take(g history.Grant) []history.Slice {
	before, known := s.live[g.Tx]
	upto := s.upto
	if g.Ended.IsZero() {
		s.live[g.Tx] = g
		if known && sameHoldings(before, g) {
			return nil
		}
	} else {
		delete(s.live, g.Tx)
		upto = g.Ended
	}
	from := s.upto.Add(-Kept).Truncate(Hour)
	after := slicesFrom(g, FinalUse(g), from, upto)
	if !known {
		// An earlier writer may have made slices of it while it ran.
		before = g
		before.Ended = time.Time{}
		return append(Change(slicesFrom(before, nil, from, s.upto), after), after...)
	}
	return Change(slicesFrom(before, nil, from, s.upto), after)
}

// sameHoldings reports whether two rows of one live grant have the same slices.
func sameHoldings(a, b history.Grant) bool {
	return a.Committed.Equal(b.Committed) && slices.EqualFunc(a.Members, b.Members, func(a, b history.Member) bool {
		return a.Index == b.Index && a.Node == b.Node && a.GPUModel == b.GPUModel && a.Ended.Equal(b.Ended) &&
			maps.Equal(a.Requested, b.Requested) && maps.Equal(a.Allocated, b.Allocated) && maps.Equal(a.Limits, b.Limits)
	})
}

// slicesFrom are the slices that begin at a full hour or behind it.
func slicesFrom(g history.Grant, measured Measured, from, upto time.Time) []history.Slice {
	return slices.DeleteFunc(Slices(g, measured, upto), func(s history.Slice) bool { return s.From.Before(from) })
}

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func compareSlices(a, b history.Slice) int {
	return cmp.Or(cmp.Compare(a.Tx, b.Tx), cmp.Compare(a.Member, b.Member), cmp.Compare(a.Slot, b.Slot), a.From.Compare(b.From))
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

// FinalUse is the use that the agents measured in all, from the exits of a grant that
// has ended: processor time, and the time that devices were busy. A member without a
// measurement has none. Memory is not among them: its integral is not measured.
func FinalUse(g history.Grant) Measured {
	var exits []ended
	if g.Ended.IsZero() || json.Unmarshal(g.Exits, &exits) != nil {
		return nil
	}
	measured := Measured{}
	for _, e := range exits {
		i := slices.IndexFunc(g.Members, func(m history.Member) bool { return m.Index == e.Member })
		if e.Use == nil || i < 0 || e.Use.CPUMillis < 0 {
			continue
		}
		used := resource.Vector{resource.CPU: resource.SaturatingMul(e.Use.CPUMillis, 1000)}
		var busy int64
		for _, d := range e.Use.Devices {
			busy = resource.SaturatingAdd(busy, max(0, d.BusyMillis))
		}
		for slot := range g.Members[i].Allocated {
			switch {
			case slot == resource.GPU:
				used[slot] = resource.SaturatingMul(busy, int64(resource.WholeDevice))
			case hasModel(slot):
				used[slot] = busy
			}
		}
		measured[e.Member] = []Sample{{At: earliest(g.Ended, g.Members[i].Ended), Used: used}}
	}
	return measured
}
