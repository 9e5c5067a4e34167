package quota_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/quota"
)

// A refusal stays the same until the time that ProtectedUntil names, and time
// alone changes it only if a time is named.
func TestARefusalLastsUntilTheNamedTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(most int) int { return rapid.IntRange(0, most).Draw(t, "n") }
		flag := rapid.Bool()
		m := lab(quota.Options{
			EvictAtHard: flag.Draw(t, "hard"), FewestVictims: flag.Draw(t, "fewest"), Settle: flag.Draw(t, "settle"), MinRunTime: time.Minute,
		}, map[string]quota.NodeSpec{
			"all": {Quota: gpus(int64(4 + draw(8)))},
			"a":   {Parent: "all", Quota: gpus(int64(draw(6))), Hard: flag.Draw(t, "a")},
			"b":   {Parent: "all", Quota: gpus(int64(draw(6))), Borrowing: gpus(int64(draw(4)))},
			"b1":  {Parent: "b", Quota: gpus(int64(draw(4)))},
			"b2":  {Parent: "b", Quota: gpus(int64(draw(4)))},
		})
		now := time.Unix(1_000_000, 0)
		m.SetNow(now)
		try := func(id string) quota.Result {
			r, err := m.Allocate("lab", id)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		for i := range 20 + draw(20) {
			now = now.Add(time.Duration(draw(30)) * time.Second)
			m.SetNow(now)
			id := fmt.Sprint("c", i)
			d := quota.Demand{Tree: "lab", Group: []string{"a", "b1", "b2"}[draw(2)], Request: gpus(int64(1 + draw(3))), Priority: draw(2), Unpreemptable: draw(9) == 0}
			if err := m.AddConsumer(quota.ConsumerSpec{ID: id, Demands: []quota.Demand{d}}); err != nil {
				t.Fatal(err)
			}
			first := try(id)
			until := m.ProtectedUntil()
			if first.OK {
				continue
			}
			switch {
			case !until.IsZero() && !until.After(now):
				t.Fatalf("%s is refused at %v until %v", id, now, until)
			case !until.IsZero():
				now = until.Add(-1)
			case until.IsZero() && draw(3) == 0:
				now = now.Add(time.Hour)
			}
			m.SetNow(now)
			if again := try(id); again.OK {
				t.Fatalf("%s is refused with %v until %v, and admitted before", id, first.Refusal, until)
			}
		}
	})
}

func TestTheNamedTimeIsTheEarliestThatHelps(t *testing.T) {
	m := lab(quota.Options{MinRunTime: time.Hour}, map[string]quota.NodeSpec{"all": {Quota: gpus(2)}})
	start := time.Unix(1_000_000, 0)
	for i, id := range []string{"old", "new"} {
		m.SetNow(start.Add(time.Duration(i) * time.Minute))
		arrive(m, id, "", quota.Demand{Group: "all", Request: gpus(1)})
		if until := m.ProtectedUntil(); !until.IsZero() {
			t.Errorf("%s was admitted, and something is protected until %v", id, until)
		}
	}
	arrive(m, "equal", "", quota.Demand{Group: "all", Request: gpus(1)})
	if until := m.ProtectedUntil(); !until.IsZero() {
		t.Errorf("time helps no equal, and it is told to wait until %v", until)
	}
	arrive(m, "urgent", "", quota.Demand{Group: "all", Request: gpus(1), Priority: 1})
	if until := m.ProtectedUntil(); !until.Equal(start.Add(time.Hour)) {
		t.Errorf("urgent is refused until %v, want %v", until, start.Add(time.Hour))
	}
	m.SetNow(start.Add(time.Hour))
	if r, err := m.Allocate("lab", "urgent"); err != nil || !r.OK {
		t.Errorf("urgent then: %v, %v", r, err)
	}
}
