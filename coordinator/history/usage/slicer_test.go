package usage_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/resource"
)

// kept are slices as a table keeps them: the last of each key, without empty ones.
type kept map[string]history.Slice

func (k kept) write(all []history.Slice) {
	for _, s := range all {
		key := fmt.Sprintf("%s %d %s %s", s.Tx, s.Member, s.Slot, s.From)
		if k[key] = s; !s.To.After(s.From) {
			delete(k, key)
		}
	}
}

func TestALiveGrantIsOneRowAnHourThatGrows(t *testing.T) {
	s, table := usage.NewSlicer(nil, start), kept{}
	g := grantOf(start.Add(10*time.Minute), time.Time{})
	g.Members[0].Allocated = resource.Vector{resource.CPU: 1000}
	g.Members[0].Requested = nil
	table.write(s.Follow(history.Batch{At: g.Committed, Grants: []history.Grant{g}}))
	for minute := 11; minute <= 130; minute++ {
		table.write(s.Follow(history.Batch{At: start.Add(time.Duration(minute) * time.Minute)}))
	}
	want := kept{}
	want.write(usage.Slices(g, nil, start.Add(130*time.Minute)))
	if d := gocmp.Diff(want, table); d != "" || len(table) != 3 {
		t.Errorf("%d rows (-want +got)\n%s", len(table), d)
	}
}

func TestWhatWasMeasuredComesWithTheEnd(t *testing.T) {
	g := grantOf(start, start.Add(100*time.Second))
	g.Exits = json.RawMessage(`[{"member":0,"reason":"Completed","use":{"cpuMillis":50000,"peakMemory":1,"devices":[{"uuid":"GPU-1","busyMillis":25000}]}}]`)
	s := usage.NewSlicer(nil, start)
	got := map[resource.Name]int64{}
	for _, slice := range s.Follow(history.Batch{At: g.Ended, Grants: []history.Grant{g}}) {
		got[slice.Slot] += *slice.Measured
	}
	want := map[resource.Name]int64{resource.CPU: 50_000 * 1000, resource.GPU: 25_000 * 1000}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestExitsThatCannotBeReadMeasureNothing(t *testing.T) {
	for _, exits := range []string{"", "{", `[{"member":7,"use":{"cpuMillis":1}}]`, `[{"member":0,"use":{"cpuMillis":-1}}]`, `[{"member":0}]`} {
		g := grantOf(start, start.Add(time.Minute))
		g.Exits = json.RawMessage(exits)
		if got := usage.FinalUse(g); len(got) != 0 {
			t.Errorf("%q measures %v", exits, got)
		}
	}
}

// anyBatches draws the changes of a few grants in an order in which a store could have
// them: instants may lie a little before those of the batch before.
func anyBatches(t *rapid.T) ([]history.Batch, map[resource.TxID]history.Grant) {
	final, live := map[resource.TxID]history.Grant{}, []resource.TxID{}
	var batches []history.Batch
	at := start
	for i := range rapid.IntRange(1, 25).Draw(t, "batches") {
		at = at.Add(time.Duration(rapid.SampledFrom([]int64{0, 1, 1000, 299_999, 300_000, 3_600_000, 9_000_000}).Draw(t, "pause")) * time.Millisecond)
		b := history.Batch{At: at}
		switch action := rapid.IntRange(0, 2).Draw(t, "action"); {
		case action == 0 || len(live) == 0:
			g := grantOf(at.Add(-time.Duration(rapid.SampledFrom([]int64{0, 0, 2000, 4_000_000}).Draw(t, "late"))*time.Millisecond), time.Time{})
			g.Tx = resource.TxID(fmt.Sprint("tx", i))
			final[g.Tx], live = g, append(live, g.Tx)
			b.Grants = append(b.Grants, g)
		case action == 1:
			g := final[live[0]]
			g.Ended = at.Add(-time.Duration(rapid.SampledFrom([]int64{0, 0, 2000, 4_000_000}).Draw(t, "late")) * time.Millisecond)
			if g.Ended.Before(g.Committed) {
				g.Ended = g.Committed
			}
			if rapid.Bool().Draw(t, "measured") {
				g.Exits = json.RawMessage(`[{"member":0,"use":{"cpuMillis":777}}]`)
			}
			final[g.Tx], live = g, live[1:]
			b.Grants = append(b.Grants, g)
		}
		batches = append(batches, b)
	}
	return batches, final
}

func TestSlicesOfBatchesAreThoseOfTheGrantsAtTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batches, final := anyBatches(t)
		table, s := kept{}, usage.NewSlicer(nil, start)
		open := map[resource.TxID]history.Grant{}
		for _, b := range batches {
			for _, g := range b.Grants {
				open[g.Tx] = g
				if !g.Ended.IsZero() {
					delete(open, g.Tx)
				}
			}
			table.write(s.Follow(b))
			if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
				upto := s.Upto()
				var live []history.Grant
				for _, g := range open {
					live = append(live, g)
				}
				s = usage.NewSlicer(live, upto)
			}
		}
		want := kept{}
		for _, g := range final {
			upto := s.Upto()
			if !g.Ended.IsZero() {
				upto = g.Ended
			}
			want.write(usage.Slices(g, usage.FinalUse(g), upto))
		}
		if d := gocmp.Diff(want, table); d != "" {
			t.Errorf("(-grants +batches)\n%s", d)
		}
	})
}
