package sim

import (
	"cmp"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
)

// This file is the rules of queues: an operator puts queues on hold and opens them,
// changes their order, and bounds the members that run and those that wait. A client whose
// work a closed or a full queue does not take gives up.

// leastRunning is a bound that no client's unit is above.
const leastRunning = 4

// leastWaiting is a bound of waiting members that queues of the simulation meet at times.
const leastWaiting = 3

// isTurnedAway reports whether an answer is that of a closed or a full queue.
func (s *Sim) isTurnedAway(status *api.Status) bool {
	return s.lines && (status.Code == 403 && strings.Contains(status.Message, "is Closed") || status.Code == 429 && strings.Contains(status.Message, "waiting members"))
}

// linesAtFirst are the queues that are there from the beginning, where rules change: a
// name that no queue has would be refused.
func (s *Sim) linesAtFirst() (ops []record.Op) {
	if !s.lines {
		return nil
	}
	for _, name := range queues {
		name = cmp.Or(name, api.DefaultQueue)
		document := encoded(api.Queue{APIVersion: api.APIVersion, Kind: api.KindQueue, Metadata: api.ObjectMeta{Name: name}})
		ops = append(ops, record.Put(record.NamedKey(record.QueuesPrefix, name), record.MustEncode(record.Object{UID: "queue-" + name, Name: name, Document: document})))
	}
	return ops
}

// actLine has an operator change the rules of a queue.
func (s *Sim) actLine() bool {
	return s.withTerm(nil, func(t *term) {
		name := cmp.Or(pick(s, queues), api.DefaultQueue)
		q := &api.Queue{APIVersion: api.APIVersion, Kind: api.KindQueue, Metadata: api.ObjectMeta{Name: name}, Spec: api.QueueSpec{
			State: pick(s, []string{"", "", api.QueueOpen, api.QueueHold, api.QueueClosed}), Order: pick(s, []string{"", api.QueueBestEffort, api.QueueStrict, api.QueueStrict}),
			MaxRunningMembers: int32(pick(s, []int{0, 0, leastRunning, leastRunning + 2})), MaxWaitingMembers: int32(pick(s, []int{0, 0, leastWaiting, 2 * leastWaiting})), PlacementPolicy: pick(s, []string{"", "packed", "spread"}),
		}}
		s.logf("%s: an operator sets queue %s to %+v", t.name, name, q.Spec)
		t.ask("the rules of queue "+name, lead.Put[api.Queue]{Object: q}, func(e effect) {
			if e.Status == nil {
				s.stats["rules of queues"]++
			}
		})
	})
}
