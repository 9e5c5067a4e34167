package life_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/life"
)

func TestDependencies(t *testing.T) {
	const open, met, never = life.Open, life.Met, life.Never
	for d, want := range map[life.Dependency][5]life.Standing{
		// in the order NotThere, NotBegun, Begun, EndedWell, EndedOtherwise
		life.After:      {open, open, met, met, met},
		life.AfterOK:    {open, open, open, met, never},
		life.AfterNotOK: {open, open, open, never, met},
		life.AfterAny:   {open, open, open, met, met},
		"afterburstbuf": {open, open, open, open, open},
	} {
		for p, want := range want {
			if got := d.StandingAt(life.Progress(p)); got != want {
				t.Errorf("%s at progress %d: %d, want %d", d, p, got, want)
			}
		}
	}
}

// A dependency that has come true, or cannot any more, stays so however the other job goes
// on; and each has an answer once the other job has ended.
func TestAStandingIsFinal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]life.Dependency{life.After, life.AfterOK, life.AfterNotOK, life.AfterAny}).Draw(t, "type")
		path := []life.Progress{life.NotThere, life.NotBegun, life.Begun, life.EndedWell}
		if rapid.Bool().Draw(t, "fails") {
			path[3] = life.EndedOtherwise
		}
		last := life.Open
		for _, p := range path[rapid.IntRange(0, 2).Draw(t, "from"):] {
			now := d.StandingAt(p)
			if last != life.Open && now != last {
				t.Fatalf("%s was %d and is %d at progress %d", d, last, now, p)
			}
			last = now
		}
		if last == life.Open {
			t.Fatalf("%s is open after the end of the other job", d)
		}
	})
}
