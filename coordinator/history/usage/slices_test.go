package usage_test

import (
	"math/big"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/resource"
)

// grantOf is a grant of one member with half a GPU and two cores.
func grantOf(committed, ended time.Time) history.Grant {
	held := resource.Vector{resource.CPU: 2000, resource.GPU: 500}
	return history.Grant{
		Tx: "tx", Unit: "unit", Namespace: "ns", Tenant: "tenant", Committed: committed, Ended: ended,
		Members: []history.Member{{Index: 0, Node: "n1", GPUModel: "H100", Requested: held, Allocated: held}},
	}
}

// spans words the intervals of a slot: offsets from the start.
func spans(all []history.Slice, slot resource.Name) []string {
	var words []string
	for _, s := range all {
		if s.Slot == slot {
			words = append(words, s.From.Sub(start).String()+" "+s.To.Sub(start).String())
		}
	}
	return words
}

func TestIntervalsAreCut(t *testing.T) {
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	cpu := func(minutes int, millis int64) usage.Sample {
		return usage.Sample{At: minute(minutes), Used: resource.Vector{resource.CPU: millis}}
	}
	for name, c := range map[string]struct {
		grant   history.Grant
		samples []usage.Sample
		upto    time.Time
		want    []string
	}{
		"at full hours alone where nothing changes": {grantOf(minute(10), minute(130)), nil, minute(600), []string{"10m0s 1h0m0s", "1h0m0s 2h0m0s", "2h0m0s 2h10m0s"}},
		"while it runs, up to the instant":          {grantOf(minute(10), time.Time{}), nil, minute(20), []string{"10m0s 20m0s"}},
		"a grant that has no commit":                {grantOf(time.Time{}, minute(5)), nil, minute(20), nil},
		"a grant that ends as it begins":            {grantOf(minute(5), minute(5)), nil, minute(20), nil},
		"a grant that begins behind the instant":    {grantOf(minute(25), time.Time{}), nil, minute(20), nil},
		"an even use changes nothing":               {grantOf(start, minute(60)), []usage.Sample{cpu(7, 7), cpu(60, 60)}, minute(60), []string{"0s 1h0m0s"}},
		"a use that begins to grow at a mark":       {grantOf(start, minute(60)), []usage.Sample{cpu(20, 0), cpu(60, 99_999)}, minute(60), []string{"0s 20m0s", "20m0s 1h0m0s"}},
		"a use that changes between marks has a window of its own": {
			grantOf(start, minute(60)), []usage.Sample{cpu(22, 0), cpu(60, 99_999)}, minute(60), []string{"0s 20m0s", "20m0s 25m0s", "25m0s 1h0m0s"},
		},
		"samples that end are known no longer": {grantOf(start, minute(60)), []usage.Sample{cpu(30, 30_000)}, minute(60), []string{"0s 30m0s", "30m0s 1h0m0s"}},
		"a sample that falls is left out":      {grantOf(start, minute(10)), []usage.Sample{cpu(10, 10), cpu(11, 5)}, minute(60), []string{"0s 10m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := usage.Slices(c.grant, usage.Measured{0: c.samples}, c.upto)
			if d := gocmp.Diff(c.want, spans(got, resource.CPU)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestAMemberThatEndsEarlierHasShorterSlices(t *testing.T) {
	g := grantOf(start, start.Add(30*time.Minute))
	g.Members = append(g.Members, g.Members[0])
	g.Members[1].Index, g.Members[1].Ended = 1, start.Add(10*time.Minute)
	got := spans(usage.Slices(g, nil, start.Add(time.Hour)), resource.GPU)
	if d := gocmp.Diff([]string{"0s 30m0s", "0s 10m0s"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestOnlySlicesOfDevicesHaveAModel(t *testing.T) {
	for _, s := range usage.Slices(grantOf(start, start.Add(time.Minute)), nil, start.Add(time.Hour)) {
		if want := map[resource.Name]string{resource.CPU: "", resource.GPU: "H100"}[s.Slot]; s.GPUModel != want {
			t.Errorf("%s: model %q, want %q", s.Slot, s.GPUModel, want)
		}
	}
}

// anyHistory draws a grant, its samples, and instants at which its slices are written.
func anyHistory(t *rapid.T) (history.Grant, []usage.Sample, []time.Time) {
	span := 3 * time.Hour.Milliseconds()
	from := rapid.Int64Range(0, span).Draw(t, "from")
	g := grantOf(ms(from), ms(from+rapid.Int64Range(0, span).Draw(t, "length")))
	var samples []usage.Sample
	at, used := from, int64(0)
	for range rapid.IntRange(0, 20).Draw(t, "samples") {
		at += rapid.Int64Range(1, 20*60*1000).Draw(t, "pause")
		used += rapid.SampledFrom([]int64{0, 1, 60_000, 1 << 40}).Draw(t, "more")
		samples = append(samples, usage.Sample{At: ms(at), Used: resource.Vector{resource.CPU: used}})
	}
	var instants []time.Time
	for range rapid.IntRange(0, 6).Draw(t, "writes") {
		instants = append(instants, ms(rapid.Int64Range(0, 3*span).Draw(t, "write")))
	}
	return g, samples, instants
}

func TestSlicesCoverTheIntervalOnceAndHoldAllThatWasMeasured(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, samples, _ := anyHistory(t)
		at, used := g.Committed, int64(0)
		for _, s := range usage.Slices(g, usage.Measured{0: samples}, ms(1<<40)) {
			if s.Slot != resource.CPU {
				continue
			}
			if !s.From.Equal(at) || !s.To.After(s.From) || s.To.Sub(s.From.Truncate(time.Hour)) > time.Hour {
				t.Fatalf("slice %s..%s, want one from %s on within an hour", s.From, s.To, at)
			}
			if s.To != g.Ended && !s.To.Equal(s.To.Truncate(usage.Mark)) {
				t.Errorf("a cut at %s is no mark", s.To)
			}
			if at = s.To; s.Measured != nil {
				used += *s.Measured
			}
		}
		if !at.Equal(g.Ended) {
			t.Errorf("slices end at %s, want %s", at, g.Ended)
		}
		if want := measuredUpto(samples, g); used != want {
			t.Errorf("slices hold %d, want the %d that was measured", used, want)
		}
	})
}

// measuredUpto is the measured use at the grant's end: the last sample's, or a straight
// line between the two around it.
func measuredUpto(samples []usage.Sample, g history.Grant) int64 {
	lastAt, last := g.Committed.UnixMilli(), int64(0)
	end := g.Ended.UnixMilli()
	for _, s := range samples {
		at, used := s.At.UnixMilli(), s.Used[resource.CPU]
		if at > end {
			part := new(big.Int).Mul(big.NewInt(used-last), big.NewInt(end-lastAt))
			return last + part.Quo(part, big.NewInt(at-lastAt)).Int64()
		}
		lastAt, last = at, used
	}
	return last
}

func TestSlicesWrittenAtAnyInstantsEndAsThoseOfOneWriting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, samples, instants := anyHistory(t)
		final := usage.Slices(g, usage.Measured{0: samples}, ms(1<<40))
		running := g
		running.Ended = time.Time{}
		var before []history.Slice
		written := map[string]history.Slice{}
		write := func(after []history.Slice) {
			for _, s := range usage.Change(before, after) {
				written[string(s.Slot)+s.From.String()] = s
			}
			before = after
		}
		for _, at := range instants { // some lie behind the end, which was not known then
			known := samples[:rapid.IntRange(0, len(samples)).Draw(t, "known")]
			write(usage.Slices(running, usage.Measured{0: known}, at))
		}
		write(final)
		want := map[string]history.Slice{}
		for _, s := range final {
			want[string(s.Slot)+s.From.String()] = s
		}
		for key, s := range written {
			if s.From.Equal(s.To) {
				delete(written, key)
			}
		}
		if d := gocmp.Diff(want, written); d != "" {
			t.Errorf("(-written once +written in steps)\n%s", d)
		}
		if again := usage.Change(final, final); len(again) != 0 {
			t.Errorf("a repetition changes %+v", again)
		}
	})
}
