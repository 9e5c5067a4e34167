package lead

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/grant"
)

func TestQueuesOfWaitsAreBounded(t *testing.T) {
	a := newActivity()
	for i := range mostQueues + 10 {
		a.addWait(fmt.Sprintf("q%d", i), time.Second)
	}
	if len(a.waits) != mostQueues {
		t.Errorf("waits of %d queues, want %d", len(a.waits), mostQueues)
	}
}

func TestALatencyCountsToTheCommit(t *testing.T) {
	x := newScene(t)
	a := x.submit("a", 1, "")
	x.pass(2 * time.Second)
	if x.settles(a, grant.Reserved); x.activity.latency.Mean() < 1 {
		t.Errorf("%v s after 2 s", x.activity.latency.Mean())
	}
}
