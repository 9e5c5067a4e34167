package coordinator

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestABarrierWaitsForWhatWasUnderWay(t *testing.T) {
	type step struct {
		what string // begin, end, doubt
		id   uint64
	}
	for name, c := range map[string]struct {
		before, after []step
		want          string // passed, refused or waits
	}{
		"nothing is under way":              {want: "passed"},
		"all has ended":                     {before: []step{{"begin", 1}, {"begin", 2}, {"end", 2}, {"end", 1}}, want: "passed"},
		"one has not":                       {before: []step{{"begin", 1}, {"begin", 2}, {"end", 2}}, want: "waits"},
		"it has by now":                     {before: []step{{"begin", 1}, {"begin", 2}, {"end", 2}}, after: []step{{"end", 1}}, want: "passed"},
		"what began later does not count":   {before: []step{{"begin", 1}}, after: []step{{"begin", 2}, {"end", 1}}, want: "passed"},
		"one has no answer":                 {before: []step{{"begin", 1}, {"doubt", 0}}, want: "refused"},
		"it gets none while it is awaited":  {before: []step{{"begin", 1}}, after: []step{{"doubt", 0}}, want: "refused"},
		"the doubt stays while others come": {before: []step{{"begin", 1}, {"doubt", 0}, {"begin", 2}, {"end", 1}}, want: "refused"},
		"the doubt is over":                 {before: []step{{"begin", 1}, {"doubt", 0}, {"begin", 2}, {"end", 1}, {"end", 2}}, want: "passed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b barrier
				run := func(steps []step) {
					for _, s := range steps {
						switch s.what {
						case "begin":
							if id := b.begin(); id != s.id {
								t.Fatalf("begin returns %d, want %d", id, s.id)
							}
						case "end":
							b.end(s.id)
						case "doubt":
							b.doubted()
						}
					}
				}
				run(c.before)
				ctx, cancel := context.WithCancel(t.Context())
				got := "waits"
				done := make(chan struct{})
				go func() {
					defer close(done)
					switch passed := b.pass(ctx, nil); {
					case ctx.Err() != nil:
					case passed:
						got = "passed"
					default:
						got = "refused"
					}
				}()
				synctest.Wait()
				run(c.after)
				synctest.Wait()
				cancel()
				<-done
				if got != c.want {
					t.Errorf("it %s, want %s", got, c.want)
				}
			})
		})
	}
}
