package usage_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/resource"
)

// start is a full hour.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ms(n int64) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }

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
	for name, c := range map[string]struct {
		grant history.Grant
		upto  time.Time
		want  []string
	}{
		"at full hours alone":                    {grantOf(minute(10), minute(130)), minute(600), []string{"10m0s 1h0m0s", "1h0m0s 2h0m0s", "2h0m0s 2h10m0s"}},
		"while it runs, up to the instant":       {grantOf(minute(10), time.Time{}), minute(20), []string{"10m0s 20m0s"}},
		"a grant that has no commit":             {grantOf(time.Time{}, minute(5)), minute(20), nil},
		"a grant that ends as it begins":         {grantOf(minute(5), minute(5)), minute(20), nil},
		"a grant that begins behind the instant": {grantOf(minute(25), time.Time{}), minute(20), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := gocmp.Diff(c.want, spans(usage.Slices(c.grant, c.upto), resource.CPU)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestAMemberThatEndsEarlierHasShorterSlices(t *testing.T) {
	g := grantOf(start, start.Add(30*time.Minute))
	g.Members = append(g.Members, g.Members[0])
	g.Members[1].Index, g.Members[1].Ended = 1, start.Add(10*time.Minute)
	got := spans(usage.Slices(g, start.Add(time.Hour)), resource.GPU)
	if d := gocmp.Diff([]string{"0s 30m0s", "0s 10m0s"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestOnlySlicesOfDevicesHaveAModel(t *testing.T) {
	for _, s := range usage.Slices(grantOf(start, start.Add(time.Minute)), start.Add(time.Hour)) {
		if want := map[resource.Name]string{resource.CPU: "", resource.GPU: "H100"}[s.Slot]; s.GPUModel != want {
			t.Errorf("%s: model %q, want %q", s.Slot, s.GPUModel, want)
		}
	}
}
