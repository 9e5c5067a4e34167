package gossip

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
	// rejoinEvery is how often a member that has joined looks for addresses it
	// should know and does not, which heals a partition.
	rejoinEvery = 10 * time.Second
	// settleEvery is how soon a member that has just joined exchanges its state
	// once more, to catch changes made while all members joined, and the time
	// between such exchanges while others still hold its name at an older
	// address.
	settleEvery = time.Second
	// joinAtOnce bounds the full exchanges of one attempt.
	joinAtOnce = 3
)

// joiner brings one ring member into its ring and keeps it there. run owns the
// loop; the functions are called from it alone.
type joiner struct {
	log *slog.Logger
	// own is this member's address in the ring.
	own string
	// sources returns addresses of other members, and whether that is all there
	// will be.
	sources func() (addresses []string, complete bool)
	// known returns the addresses of the other members that are alive.
	known func() map[string]bool
	// join exchanges state with the addresses and returns with how many.
	join func([]string) (int, error)

	kick     chan struct{} // capacity 1: something may have changed
	joined   chan struct{} // closed once in the ring
	conflict atomic.Bool   // the ring holds this member's name elsewhere

	mu      sync.Mutex
	lastErr error
}

func newJoiner(log *slog.Logger) *joiner {
	return &joiner{log: log, kick: make(chan struct{}, 1), joined: make(chan struct{})}
}

// nudge lets a member that has not joined yet look again at once.
func (j *joiner) nudge() {
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// lastError is why the newest attempt failed, nil once it succeeded.
func (j *joiner) lastError() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lastErr
}

func (j *joiner) setLastError(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lastErr = err
}

// run attempts until ctx ends. It may outlast ctx by one dial.
func (j *joiner) run(ctx context.Context) {
	in, settled, warned, retry := false, false, false, firstRetry
	for ctx.Err() == nil {
		again := j.conflict.Swap(false) || in && !settled
		settled = in
		tried := j.attempt(ctx, in, again)
		if !in && j.isIn() {
			in = true
			close(j.joined)
			j.log.Info("ring_joined", "members", len(j.known())+1)
		}
		wait := rejoinEvery
		switch {
		case j.conflict.Load():
			wait = settleEvery
			if !warned {
				warned = true
				j.log.Warn("ring_name_taken", "own_address", j.own, "do", "wait a minute if the other address is an earlier run; else give one of the two another id")
			}
		case in && !settled:
			wait = settleEvery
		case !in && tried:
			wait = retry
			retry = min(2*retry, lastRetry)
		}
		kick := j.kick
		if in || tried {
			kick = nil
		}
		timer := time.NewTimer(wait + rand.N(wait/5))
		select {
		case <-ctx.Done():
		case <-kick:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// attempt joins some of the addresses that should be known and are not, or
// again some of all. It reports whether there was one to try.
func (j *joiner) attempt(ctx context.Context, in, again bool) bool {
	targets := j.targets(again)
	if len(targets) == 0 {
		return false
	}
	rand.Shuffle(len(targets), func(a, b int) { targets[a], targets[b] = targets[b], targets[a] })
	targets = targets[:min(len(targets), joinAtOnce)]
	n, err := j.join(targets)
	if err != nil && n == 0 {
		err = fmt.Errorf("join %v: %w%s", targets, err, keyHint(err))
		level := slog.LevelDebug
		if !in && j.lastError() == nil {
			level = slog.LevelWarn
		}
		j.log.Log(ctx, level, "ring_not_joined", "addresses", targets, "error", err)
		j.setLastError(err)
		return true
	}
	j.setLastError(nil)
	return true
}

// keyHint explains the library's error about keys in plain words.
func keyHint(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "could decrypt the message"):
		return "; they use another gossip key than this member: a rotation passed it by, or it is of another cluster"
	case strings.Contains(text, "ncryption is configured but"), strings.Contains(text, "encryption is not configured"):
		return "; one side has a gossip key and the other has none"
	}
	return ""
}

func (j *joiner) targets(again bool) []string {
	addresses, _ := j.sources()
	known := j.known()
	var targets []string
	for _, a := range addresses {
		if a != j.own && (again || !known[a]) {
			targets = append(targets, a)
		}
	}
	return targets
}

// isIn reports whether the member sees another one, or has nobody to look for.
func (j *joiner) isIn() bool {
	if len(j.known()) > 0 {
		return true
	}
	addresses, complete := j.sources()
	for _, a := range addresses {
		if a != j.own {
			return false
		}
	}
	return complete
}
