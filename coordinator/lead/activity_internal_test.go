package lead

import (
	"fmt"
	"testing"
	"time"
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
