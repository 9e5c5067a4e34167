package usage_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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

// write does as the warehouse does: cuts first.
func (k kept) write(cuts []history.Cut, all []history.Slice) {
	for _, c := range cuts {
		for key, s := range k {
			switch {
			case s.Tx != c.Tx || s.Member != c.Member || s.Slot != c.Slot || !s.To.After(c.At):
			case s.From.Before(c.At):
				s.To = c.At
				k[key] = s
			default:
				delete(k, key)
			}
		}
	}
	for _, s := range all {
		k[fmt.Sprintf("%s %d %s %s", s.Tx, s.Member, s.Slot, s.From)] = s
	}
}

// of are the slices of one slot of a grant, ascending.
func (k kept) of(tx resource.TxID, slot resource.Name) (list []history.Slice) {
	for _, s := range k {
		if s.Tx == tx && s.Slot == slot {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b history.Slice) int { return a.From.Compare(b.From) })
	return list
}

// last are the last slices that have a counter, as a new Slicer reads them.
func (k kept) last() (list []history.Slice) {
	newest := map[string]history.Slice{}
	for _, s := range k {
		key := fmt.Sprint(s.Tx, s.Member, s.Slot)
		if was, known := newest[key]; s.Counter != nil && (!known || s.From.After(was.From)) {
			newest[key] = s
		}
	}
	return slices.Collect(maps.Values(newest))
}

func minute(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

func cpu(tx resource.TxID, at time.Time, millis int64) []history.Use {
	return []history.Use{{Tx: tx, At: at, CPUMillis: millis}}
}

func TestALiveGrantIsOneRowAnHourThatGrows(t *testing.T) {
	s, table := usage.NewSlicer(nil, nil, start), kept{}
	g := grantOf(start.Add(10*time.Minute), time.Time{})
	g.Members[0].Allocated = resource.Vector{resource.CPU: 1000}
	g.Members[0].Requested = nil
	table.write(s.Follow(history.Batch{At: g.Committed, Grants: []history.Grant{g}}))
	for n := 11; n <= 130; n++ {
		table.write(s.Follow(history.Batch{At: minute(n)}))
	}
	want := kept{}
	want.write(nil, usage.Slices(g, minute(130)))
	if d := gocmp.Diff(want, table); d != "" || len(table) != 3 {
		t.Errorf("%d rows (-want +got)\n%s", len(table), d)
	}
}

// measuredRows words the slices of CPU of a grant: minutes, and the CPU milliseconds.
func measuredRows(k kept) []string {
	var rows []string
	for _, s := range k.of("tx", resource.CPU) {
		used := "?"
		if s.Measured != nil {
			used = fmt.Sprint(*s.Measured / 1000)
		}
		rows = append(rows, fmt.Sprintf("%g-%g: %s", s.From.Sub(start).Minutes(), s.To.Sub(start).Minutes(), used))
	}
	return rows
}

func TestCountersBecomeSlices(t *testing.T) {
	type step struct {
		minute int
		use    int64 // heard half a minute before; 0: none
	}
	for name, c := range map[string]struct {
		steps []step
		want  []string
	}{
		"a use that does not change is one slice":        {[]step{{5, 100}, {10, 200}, {15, 300}}, []string{"0-15: 300"}},
		"a use that changes has a slice for each mark":   {[]step{{5, 100}, {10, 300}, {15, 301}}, []string{"0-5: 100", "5-10: 200", "10-15: 1"}},
		"a full hour cuts":                               {[]step{{55, 550}, {60, 600}, {65, 650}}, []string{"0-60: 600", "60-65: 50"}},
		"marks without a counter wait for one":           {[]step{{5, 100}, {10, 0}, {15, 0}}, []string{"0-5: 100", "5-15: ?"}},
		"and get an even part of what came":              {[]step{{5, 100}, {10, 0}, {15, 400}}, []string{"0-5: 100", "5-15: 300"}},
		"over full hours too":                            {[]step{{50, 100}, {55, 0}, {60, 0}, {65, 0}, {70, 500}}, []string{"0-50: 100", "50-60: 200", "60-70: 200"}},
		"a counter that has fallen says nothing":         {[]step{{5, 100}, {10, 50}, {15, 200}}, []string{"0-5: 100", "5-15: 100"}},
		"the last slice goes on where the use is as was": {[]step{{5, 100}, {10, 0}, {15, 300}}, []string{"0-15: 300"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, table := usage.NewSlicer(nil, nil, start), kept{}
			table.write(s.Follow(history.Batch{At: start, Grants: []history.Grant{grantOf(start, time.Time{})}}))
			for _, x := range c.steps {
				if x.use > 0 {
					s.Hear(cpu("tx", minute(x.minute).Add(-30*time.Second), x.use))
				}
				table.write(s.Follow(history.Batch{At: minute(x.minute)}))
			}
			if d := gocmp.Diff(c.want, measuredRows(table)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestWhatWasMeasuredComesWithTheEnd(t *testing.T) {
	g := grantOf(start, start.Add(100*time.Second))
	g.Exits = json.RawMessage(`[{"member":0,"reason":"Completed","use":{"cpuMillis":50000,"peakMemory":1,"devices":[{"uuid":"GPU-1","busyMillis":25000}]}}]`)
	s := usage.NewSlicer(nil, nil, start)
	got := map[resource.Name]int64{}
	cuts, all := s.Follow(history.Batch{At: g.Ended, Grants: []history.Grant{g}})
	for _, slice := range all {
		got[slice.Slot] += *slice.Measured
	}
	want := map[resource.Name]int64{resource.CPU: 50_000 * 1000, resource.GPU: 25_000 * 1000}
	if d := gocmp.Diff(want, got); d != "" || len(cuts) != 0 {
		t.Errorf("cuts %v (-want +got)\n%s", cuts, d)
	}
}

// TestAnEndThatIsToldAgain: the slices of a member become shorter, however late the earlier
// end is known, and whoever has written the slices.
func TestAnEndThatIsToldAgain(t *testing.T) {
	for name, later := range map[string]bool{"the same slicer": false, "a slicer that begins later": true} {
		s, table := usage.NewSlicer(nil, nil, start), kept{}
		g := grantOf(start.Add(10*time.Minute), time.Time{})
		table.write(s.Follow(history.Batch{At: g.Committed, Grants: []history.Grant{g}}))
		for n := 11; n <= 130; n++ {
			table.write(s.Follow(history.Batch{At: minute(n)}))
		}
		g.Ended = minute(131)
		table.write(s.Follow(history.Batch{At: g.Ended, Grants: []history.Grant{g}}))
		if later {
			s = usage.NewSlicer(nil, nil, minute(135))
		}
		g.Members[0].Ended = minute(130).Add(30 * time.Second)
		table.write(s.Follow(history.Batch{At: minute(140), Grants: []history.Grant{g}}))
		want := kept{}
		want.write(nil, usage.Slices(g, minute(140)))
		if d := gocmp.Diff(want, table); d != "" || len(table) == 0 {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
	}
}

func TestExitsThatCannotBeReadMeasureNothing(t *testing.T) {
	for _, exits := range []string{"", "{", `[{"member":7,"use":{"cpuMillis":1}}]`, `[{"member":0,"use":{"cpuMillis":-1}}]`, `[{"member":0}]`} {
		g := grantOf(start, start.Add(time.Minute))
		g.Exits = json.RawMessage(exits)
		for _, s := range usage.Slices(g, minute(60)) {
			if s.Measured != nil || s.Counter != nil {
				t.Errorf("%q measures %v", exits, s)
			}
		}
	}
}

// TestShortGrantsCutNothing: a cut costs the database a look for slices.
func TestShortGrantsCutNothing(t *testing.T) {
	s := usage.NewSlicer(nil, nil, start)
	for n := range 50 {
		at := start.Add(time.Duration(n) * time.Minute)
		g := grantOf(at, time.Time{})
		began, _ := s.Follow(history.Batch{At: at, Grants: []history.Grant{g}})
		g.Ended = at.Add(20 * time.Second)
		if cuts, _ := s.Follow(history.Batch{At: g.Ended, Grants: []history.Grant{g}}); len(began)+len(cuts) > 0 {
			t.Fatalf("minute %d: cuts %v and %v", n, began, cuts)
		}
	}
}

// world draws what happens to a few grants, and follows it with one Slicer after the other.
type world struct {
	at      time.Time
	slicer  *usage.Slicer
	table   kept
	grants  map[resource.TxID]history.Grant
	counter map[resource.TxID]int64 // the newest that was drawn
	exact   map[resource.TxID]bool  // Σ measured is the final counter
}

func (w *world) live() (list []history.Grant) {
	for _, tx := range slices.Sorted(maps.Keys(w.grants)) {
		if g := w.grants[tx]; g.Ended.IsZero() {
			list = append(list, g)
		}
	}
	return list
}

// begin commits a grant, at times a while ago.
func (w *world) begin(t *rapid.T, n int) history.Grant {
	g := grantOf(w.at.Add(-lateness(t)), time.Time{})
	g.Tx = resource.TxID(fmt.Sprint("tx", n))
	return g
}

func (w *world) end(t *rapid.T, g history.Grant) history.Grant {
	g.Ended = w.at.Add(-lateness(t))
	if g.Ended.Before(g.Committed) {
		g.Ended = g.Committed
	}
	if rapid.Bool().Draw(t, "final") {
		w.counter[g.Tx] += rapid.Int64Range(0, 100).Draw(t, "rest")
		g.Exits = json.RawMessage(fmt.Sprintf(`[{"member":0,"use":{"cpuMillis":%d}}]`, w.counter[g.Tx]))
		w.exact[g.Tx] = true
	}
	return g
}

func lateness(t *rapid.T) time.Duration {
	return time.Duration(rapid.SampledFrom([]int64{0, 0, 0, 2000, 400_000, 4_000_000}).Draw(t, "late")) * time.Millisecond
}

// step is one batch.
func (w *world) step(t *rapid.T, n int) {
	w.at = w.at.Add(time.Duration(rapid.SampledFrom([]int64{0, 1, 1000, 20_000, 299_999, 300_000, 3_600_000, 9_000_000}).Draw(t, "pause")) * time.Millisecond)
	b, live := history.Batch{At: w.at}, w.live()
	switch action := rapid.IntRange(0, 5).Draw(t, "action"); {
	case action == 0 || len(live) == 0:
		b.Grants = append(b.Grants, w.begin(t, n))
	case action == 1:
		b.Grants = append(b.Grants, w.end(t, live[0]))
	case action < 5:
		g := rapid.SampledFrom(live).Draw(t, "member")
		w.counter[g.Tx] += rapid.SampledFrom([]int64{0, 1, 50, 1 << 40}).Draw(t, "more")
		w.slicer.Hear(cpu(g.Tx, w.at, w.counter[g.Tx]))
	}
	for _, g := range b.Grants {
		w.grants[g.Tx] = g
	}
	w.table.write(w.slicer.Follow(b))
	switch rapid.IntRange(0, 9).Draw(t, "restart") {
	case 0:
		w.slicer = usage.NewSlicer(w.live(), w.table.last(), w.slicer.Upto())
	case 1:
		w.slicer = usage.NewBlindSlicer(w.live(), w.slicer.Upto())
	case 2: // as after a restored store
		w.slicer = usage.NewSlicer(w.live(), w.table.last(), time.Time{})
	}
}

func newWorld() *world {
	return &world{start, usage.NewSlicer(nil, nil, start), kept{}, map[resource.TxID]history.Grant{}, map[resource.TxID]int64{}, map[resource.TxID]bool{}}
}

// TestSlicesHoldEachInstantOnceAndAllThatWasMeasured: whatever was lost, however often the
// slicer began again and however late an end came, the slices of a grant cover it from its
// commit to its end without an overlap, and hold its whole use.
func TestSlicesHoldEachInstantOnceAndAllThatWasMeasured(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		for n := range rapid.IntRange(1, 40).Draw(t, "batches") {
			w.step(t, n)
		}
		w.at = w.at.Add(usage.Mark)
		w.table.write(w.slicer.Follow(history.Batch{At: w.at}))
		for _, tx := range slices.Sorted(maps.Keys(w.grants)) {
			g := w.grants[tx]
			for _, slot := range []resource.Name{resource.CPU, resource.GPU} {
				w.check(t, g, slot)
			}
		}
	})
}

func (w *world) check(t *rapid.T, g history.Grant, slot resource.Name) {
	at, used := g.Committed, int64(0)
	end := g.Ended
	if end.IsZero() {
		end = w.slicer.Upto()
	}
	list := w.table.of(g.Tx, slot)
	for _, s := range list {
		if !s.From.Equal(at) || s.To.Sub(s.From.Truncate(time.Hour)) > time.Hour || s.Allocated != g.Members[0].Allocated[slot] {
			t.Fatalf("%s %s: slice %s..%s of %d, want one from %s on within an hour", g.Tx, slot, s.From, s.To, s.Allocated, at)
		}
		if at = s.To; s.Measured != nil {
			used += *s.Measured
		}
	}
	if end.After(g.Committed) && !at.Equal(end) || end.Equal(g.Committed) && len(list) > 0 {
		t.Fatalf("%s %s: slices end at %s, want %s", g.Tx, slot, at, end)
	}
	if counter := w.counter[g.Tx]; slot == resource.CPU && w.exact[g.Tx] && end.After(g.Committed) && used != counter*1000 {
		t.Fatalf("%s: slices hold %d, want the %d that was measured in all", g.Tx, used/1000, counter)
	} else if slot == resource.CPU && used > counter*1000 {
		t.Fatalf("%s: slices hold %d, more than the %d that was measured", g.Tx, used/1000, counter)
	}
}

// TestAProjectorThatBeginsAgainWritesTheSame: Slicers that begin anew behind any batch write
// the slices of one that has followed all.
func TestAProjectorThatBeginsAgainWritesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		again, other := usage.NewSlicer(nil, nil, start), kept{}
		newest := map[resource.TxID][]history.Use{} // as the store has them
		for n := range rapid.IntRange(1, 40).Draw(t, "batches") {
			w.at = w.at.Add(time.Duration(rapid.SampledFrom([]int64{1, 1000, 20_000, 299_999, 300_000}).Draw(t, "pause")) * time.Millisecond)
			b, live := history.Batch{At: w.at}, w.live()
			switch action := rapid.IntRange(0, 5).Draw(t, "action"); {
			case action == 0 || len(live) == 0:
				g := grantOf(w.at, time.Time{})
				g.Tx = resource.TxID(fmt.Sprint("tx", n))
				b.Grants = append(b.Grants, g)
			case action == 1:
				g := live[0]
				g.Ended = w.at
				b.Grants = append(b.Grants, g)
			default:
				g := rapid.SampledFrom(live).Draw(t, "member")
				w.counter[g.Tx] += rapid.Int64Range(0, 3).Draw(t, "more")
				newest[g.Tx] = cpu(g.Tx, w.at, w.counter[g.Tx])
				w.slicer.Hear(newest[g.Tx])
				again.Hear(newest[g.Tx])
			}
			for _, g := range b.Grants {
				w.grants[g.Tx] = g
			}
			w.table.write(w.slicer.Follow(b))
			other.write(again.Follow(b))
			if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
				again = usage.NewSlicer(w.live(), other.last(), again.Upto())
				for _, g := range w.live() {
					again.Hear(newest[g.Tx])
				}
			}
		}
		if d := gocmp.Diff(w.table, other); d != "" {
			t.Errorf("(-one +many)\n%s", d)
		}
	})
}
