package cli

import (
	"strconv"
	"time"

	"github.com/musterd/muster/api"
)

// This file shows queues.

// ofBound is a number of members and its bound, 0 for none.
func ofBound(n int, bound int32) string {
	if bound == 0 {
		return strconv.Itoa(n)
	}
	return strconv.Itoa(n) + "/" + strconv.Itoa(int(bound))
}

func queueRow(q *api.Queue, now time.Time) (cells, wide []string) {
	s := &q.Spec
	cells = []string{
		q.Metadata.Name, s.State, s.Order, ofBound(q.Status.RunningMembers, s.MaxRunningMembers), ofBound(q.Status.WaitingMembers, s.MaxWaitingMembers),
		age(q.Metadata.CreationTimestamp, now),
	}
	return cells, []string{s.PlacementPolicy}
}

func (a *app) describeQueue(q *api.Queue) {
	s := &q.Spec
	a.facts(append(metaFacts(&q.Metadata), "State", s.State, "Order", s.Order, "Running members", ofBound(q.Status.RunningMembers, s.MaxRunningMembers),
		"Waiting members", ofBound(q.Status.WaitingMembers, s.MaxWaitingMembers), "Placement policy", s.PlacementPolicy)...)
}
