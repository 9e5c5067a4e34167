package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/window"
)

// mostQueues bounds the queues whose waits are kept. Queues are named by tenants.
const mostQueues = 1024

// activity counts the leader's work since its term began, in bounded memory. It
// decides nothing.
type activity struct {
	members     *window.Count    // that began to run, in the last minute
	preemptions *window.Count    // units that were evicted for others or by a preemption, in the last hour
	latency     window.Histogram // of units that had room at once
	waits       map[string]*window.Histogram
}

func newActivity() activity {
	return activity{members: window.NewCount(61, time.Second), preemptions: window.NewCount(61, time.Minute), waits: map[string]*window.Histogram{}}
}

// addCommit counts a unit that begins to run.
func (a *activity) addCommit(now time.Time, members int) { a.members.Add(now, int64(members)) }

// addLatency counts the time from the acceptance of a unit that had room at once.
func (a *activity) addLatency(d time.Duration) { a.latency.Add(d) }

// addWait counts the time from a unit's acceptance in a queue to its commit.
func (a *activity) addWait(queue string, d time.Duration) {
	h := a.waits[queue]
	if h == nil {
		if len(a.waits) >= mostQueues {
			return
		}
		h = &window.Histogram{}
		a.waits[queue] = h
	}
	h.Add(d)
}

// addPreemptions counts units that have notice for others, or by a preemption.
func (a *activity) addPreemptions(now time.Time, units int) { a.preemptions.Add(now, int64(units)) }

// Scheduling is the leader's work in numbers, since its term began.
type Scheduling struct {
	// PerSecond is the number of members that began to run in the last minute, per
	// second.
	PerSecond float64
	// Mean and P99 are of the time from acceptance to commit, of units that had room
	// at once.
	Mean, P99 time.Duration
	// Preemptions are of the last hour, those of earlier terms as long as their records.
	Preemptions int64
}

// Wait is the time from acceptance to commit, of the units of a queue that began to
// run since the term began.
type Wait struct{ Mean, P99 time.Duration }

// figures copies the counts.
func (a *activity) figures(now, began time.Time) (Scheduling, map[string]Wait) {
	waits := make(map[string]Wait, len(a.waits))
	for queue, h := range a.waits {
		waits[queue] = Wait{h.Mean(), h.Quantile(990)}
	}
	seconds := min(max(now.Sub(began).Seconds(), 1), 60)
	return Scheduling{
		PerSecond: float64(a.members.Sum(now)) / seconds, Mean: a.latency.Mean(), P99: a.latency.Quantile(990), Preemptions: a.preemptions.Sum(now),
	}, waits
}
