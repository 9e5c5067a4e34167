package edit

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/queue/rule"
	"github.com/musterd/muster/coordinator/record"
)

// Queues is the kind Queue. An object replaces the rules that a queue has without one.
// The leader offers the units that new rules let start, so nobody else is woken.
var Queues = Kind[api.Queue]{
	Noun: "queue", Prefix: record.QueuesPrefix, Decode: api.DecodeQueue, Codec: AsObject, WakesNobody: true,
	Meta: func(q *api.Queue) *api.ObjectMeta { return &q.Metadata },
	Typed: func(q *api.Queue) api.Queue {
		return api.Queue{APIVersion: api.APIVersion, Kind: api.KindQueue, Spec: q.Spec}
	},
	Judge: func(_ View, _ *Kept[api.Queue], q *api.Queue, w *Write) *api.Status {
		w.Queue = q.Metadata.Name
		return nil
	},
	Used: func(v View, q *api.Queue, w *Write) *api.Status {
		name := q.Metadata.Name
		if work := v.membersIn(name); len(work) > 0 {
			return api.Errorf(409, "queue %s has %s: move or end them first, or replace the queue by one without rules", name, listed(work)).Because(api.FailedPrecondition)
		}
		w.Queue = name
		return nil
	},
	Undeletable: func(v View, name string) *api.Status {
		work := v.membersIn(name)
		if name != api.DefaultQueue && len(work) == 0 {
			return nil
		}
		return api.Errorf(409, "queue %s has no rules to delete: no operator has written it", name).Because(api.FailedPrecondition)
	},
}

// membersIn counts the members of a queue in words; none for an empty one.
func (v View) membersIn(queue string) []string {
	waiting, running := v.Cluster.Members(queue)
	return counted(counted(nil, waiting, "waiting member"), running, "running member")
}

// QueueRules are the rules in a queue's object.
func QueueRules(q *api.Queue) rule.Rules {
	s := &q.Spec
	return rule.Rules{
		Hold: s.State == api.QueueHold, Closed: s.State == api.QueueClosed, Strict: s.Order == api.QueueStrict,
		MaxRunning: int(s.MaxRunningMembers), MaxWaiting: int(s.MaxWaitingMembers), Policy: s.PlacementPolicy,
	}
}
