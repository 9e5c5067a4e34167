package gossip

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/gossip/digest"
)

func TestPublishInterval(t *testing.T) {
	cases := map[string]struct {
		members int
		want    time.Duration
	}{
		"alone, a digest every 100 ms":         {1, 100 * time.Millisecond},
		"no slower among five":                 {5, 100 * time.Millisecond},
		"twice as slow among ten":              {10, 200 * time.Millisecond},
		"a hundred share fifty a second":       {100, 2 * time.Second},
		"before the first member is known yet": {0, 100 * time.Millisecond},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := publishInterval(c.members); got != c.want {
				t.Errorf("publishInterval(%d) = %s, want %s", c.members, got, c.want)
			}
		})
	}
}

func TestPacerSendsTheNewestAndNeverTooFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type sent struct {
			at       time.Duration
			sequence uint64
		}
		var got []sent
		began := time.Now()
		p := newPacer(func() int { return 10 }, func(d digest.Digest) {
			got = append(got, sent{time.Since(began), d.Sequence})
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.run(ctx) }()

		offer := func(sequence uint64) { p.offer(digest.Digest{Sequence: sequence}) }
		at := func(when time.Duration) {
			<-time.After(when - time.Since(began))
			synctest.Wait()
		}
		synctest.Wait()
		offer(1) // quiet before: at once
		at(10 * time.Millisecond)
		offer(3)
		offer(4) // replaces 3
		offer(2) // older: ignored
		at(250 * time.Millisecond)
		offer(4) // sent already: ignored
		at(900 * time.Millisecond)
		offer(5) // quiet before: at once
		at(2 * time.Second)
		cancel()
		<-done

		want := []sent{{0, 1}, {200 * time.Millisecond, 4}, {900 * time.Millisecond, 5}}
		if !slices.Equal(got, want) {
			t.Errorf("sent %v, want %v", got, want)
		}
	})
}
