package count_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/record"
)

func n(v int64) *int64 { return &v }

func TestRefuse(t *testing.T) {
	full := count.Use{Allocations: 5, Jobs: 2, Waiting: 3, Annotations: 100, Documents: 1000}
	for name, c := range map[string]struct {
		own  *api.NamespaceCounts
		more count.Use
		want string
	}{
		"without limits of its own the configuration counts": {nil, count.Use{Allocations: 6},
			"namespace ml has 5 allocations and may have 10: there is no room for 6 more; delete objects that have ended, or ask an operator to raise limits.allocationsPerNamespace"},
		"and documents have their default": {nil, count.Use{Documents: count.MaxDocuments - 999},
			"namespace ml has documents of 1000 bytes and may have 67108864: there is no room for 67107865 more; delete objects that have ended, or ask an admin to raise spec.limits.documentBytes of the namespace"},
		"nothing else has a limit":           {nil, count.Use{Jobs: 1 << 40, Waiting: 1 << 40, Annotations: 1 << 40}, ""},
		"up to the limit":                    {nil, count.Use{Allocations: 5}, ""},
		"a greater limit of its own":         {&api.NamespaceCounts{Allocations: n(11)}, count.Use{Allocations: 6}, ""},
		"a smaller limit of its own":         {&api.NamespaceCounts{Allocations: n(5)}, count.Use{Allocations: 1}, "raise spec.limits.allocations of the namespace"},
		"less in a namespace that is beyond": {&api.NamespaceCounts{Allocations: n(1), AnnotationBytes: n(1)}, count.Use{Annotations: -10}, ""},
		"a number that does not grow":        {&api.NamespaceCounts{Allocations: n(1), AnnotationBytes: n(1000)}, count.Use{Annotations: 10}, ""},
		"jobs":                               {&api.NamespaceCounts{Jobs: n(2)}, count.Use{Jobs: 1}, "namespace ml has 2 jobs and may have 2: there is no room for 1 more"},
		"units that wait":                    {&api.NamespaceCounts{WaitingUnits: n(4)}, count.Use{Waiting: 2}, "namespace ml has 3 units that wait and may have 4: there is no room for 2 more"},
		"annotations":                        {&api.NamespaceCounts{AnnotationBytes: n(99)}, count.Use{Annotations: 1}, "namespace ml has annotations of 100 bytes and may have 99: there is no room for 1 more"},
		"documents":                          {&api.NamespaceCounts{DocumentBytes: n(1000)}, count.Use{Documents: 1}, "namespace ml has documents of 1000 bytes and may have 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			status := count.LimitsOf(c.own, 10).Refuse("ml", full, c.more)
			switch {
			case status == nil && c.want == "":
			case status == nil || c.want == "":
				t.Errorf("got %v, want %q", status, c.want)
			case status.Code != 429 || status.Reason != api.TooManyObjects || !strings.Contains(status.Message, c.want):
				t.Errorf("got %+v, want %q", status, c.want)
			}
		})
	}
}

// What is refused would be beyond a limit, and what is accepted keeps to all limits
// that it was within.
func TestRefuseKeepsTheLimits(t *testing.T) {
	amount := rapid.Int64Range(-20, 20)
	use := rapid.Custom(func(t *rapid.T) count.Use {
		return count.Use{Allocations: amount.Draw(t, "a"), Jobs: amount.Draw(t, "j"), Waiting: amount.Draw(t, "w"), Annotations: amount.Draw(t, "n"), Documents: amount.Draw(t, "d")}
	})
	limit := rapid.OneOf(rapid.Just[*int64](nil), rapid.Map(rapid.Int64Range(0, 20), n))
	rapid.Check(t, func(t *rapid.T) {
		own := &api.NamespaceCounts{
			Allocations: limit.Draw(t, "A"), Jobs: limit.Draw(t, "J"), WaitingUnits: limit.Draw(t, "W"), AnnotationBytes: limit.Draw(t, "N"), DocumentBytes: limit.Draw(t, "D"),
		}
		l := count.LimitsOf(own, int(rapid.Int64Range(0, 20).Draw(t, "configured")))
		used, more := use.Draw(t, "used"), use.Draw(t, "more")
		hard, after := l.Shown(), used.Plus(more)
		beyond := false
		for _, of := range []struct {
			hard        *int64
			after, more int64
		}{
			{hard.Allocations, after.Allocations, more.Allocations}, {hard.Jobs, after.Jobs, more.Jobs}, {hard.WaitingUnits, after.Waiting, more.Waiting},
			{hard.AnnotationBytes, after.Annotations, more.Annotations}, {hard.DocumentBytes, after.Documents, more.Documents},
		} {
			beyond = beyond || of.hard != nil && of.more > 0 && of.after > *of.hard
		}
		if refused := l.Refuse("ml", used, more) != nil; refused != beyond {
			t.Fatalf("refused %t, beyond a limit %t", refused, beyond)
		}
		if after.Minus(more) != used {
			t.Fatal("Minus does not undo Plus")
		}
	})
}

func TestOfUnit(t *testing.T) {
	noted := api.ObjectMeta{Annotations: map[string]string{"ab": "cde"}}
	unit := &record.Unit{Members: 3, Phase: string(api.Pending), Document: []byte("{}")}
	if got, want := count.OfUnit(unit, &api.Allocation{Metadata: noted}), (count.Use{Allocations: 3, Waiting: 1, Annotations: 5, Documents: 2}); got != want {
		t.Errorf("a unit that waits counts as %+v, want %+v", got, want)
	}
	unit.Phase = string(api.Running)
	if got, want := count.OfUnit(unit, nil), (count.Use{Allocations: 3, Documents: 2}); got != want {
		t.Errorf("members that run count as %+v, want %+v", got, want)
	}
	job := &api.Job{Metadata: noted, Spec: api.JobSpec{Template: api.Template{Metadata: noted}}}
	if got, want := count.OfJob(&record.Job{Document: []byte("{ }")}, job), (count.Use{Jobs: 1, Annotations: 10, Documents: 3}); got != want {
		t.Errorf("a job counts as %+v, want %+v", got, want)
	}
}
