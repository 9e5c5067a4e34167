package lead

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

func TestATaintKeepsItsInstant(t *testing.T) {
	before := []record.Taint{{Key: "a", Effect: "NoExecute", AddedMillis: 1}, {Key: "b", Value: "x", Effect: "NoExecute", AddedMillis: 2}}
	got := retainted(before, []api.Taint{{Key: "b", Value: "y", Effect: "NoExecute"}, {Key: "a", Effect: "NoExecute"}, {Key: "a", Effect: "NoSchedule"}}, 9)
	want := []record.Taint{
		{Key: "b", Value: "y", Effect: "NoExecute", AddedMillis: 9}, // another value is another taint
		{Key: "a", Effect: "NoExecute", AddedMillis: 1},
		{Key: "a", Effect: "NoSchedule", AddedMillis: 9},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTheShortestTolerationCounts: of several matching tolerations.
func TestTheShortestTolerationCounts(t *testing.T) {
	x := newScene(t)
	u := x.submit("a", 1, "")
	seconds := func(s int64) *int64 { return &s }
	taint := record.Taint{Key: "k", Effect: "NoExecute", AddedMillis: x.post.Millis()}
	for name, c := range map[string]struct {
		tolerations []api.Toleration
		ends        bool
	}{
		"none":                       {nil, true},
		"of another effect":          {[]api.Toleration{{Key: "k", Operator: "Exists", Effect: "NoSchedule"}}, true},
		"without a time":             {[]api.Toleration{{Key: "k", Operator: "Exists", Effect: "NoExecute"}}, false},
		"of everything":              {[]api.Toleration{{Operator: "Exists"}}, false},
		"for an hour":                {[]api.Toleration{{Key: "k", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: seconds(3600)}}, false},
		"for ever, and for an hour":  {[]api.Toleration{{Operator: "Exists"}, {Key: "k", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: seconds(3600)}}, false},
		"of another key, for a time": {[]api.Toleration{{Key: "j", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: seconds(3600)}}, true},
	} {
		u.Allocation.Spec.Scheduling.Tolerations = c.tolerations
		if _, ends := x.endsByTaint(u, taint); ends != c.ends {
			t.Errorf("%s: ends %t, want %t", name, ends, c.ends)
		}
	}
	u.Allocation.Spec.Scheduling.Tolerations = []api.Toleration{
		{Key: "k", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: seconds(3600)}, {Operator: "Exists", Effect: "NoExecute", TolerationSeconds: seconds(10)},
	}
	taint.AddedMillis -= 12_000
	if _, ends := x.endsByTaint(u, taint); !ends {
		t.Error("the taint was set 12 s ago and is tolerated for 10 s: the unit stays")
	}
}
