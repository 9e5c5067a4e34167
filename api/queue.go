package api

import (
	"math"

	"github.com/musterd/muster/api/internal/strict"
)

// KindQueue is the kind of a Queue document.
const KindQueue = "Queue"

// DefaultQueue is the queue of work that names none, in a namespace without a default
// queue. It is always there.
const DefaultQueue = "default"

// Queue has the rules for the work that waits in it. A queue that live work names has the
// defaults where no operator has written it; so has the queue default.
type Queue struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" default:"Queue" oneof:"Queue"`
	// Metadata names the queue as the work does: an RFC 1123 label. A queue is in no
	// namespace. A queue that no operator has written has no uid and no resourceVersion.
	Metadata ObjectMeta `json:"metadata"`
	// Spec has the rules.
	Spec QueueSpec `json:"spec"`
	// Status is the part that the cluster adds.
	Status QueueStatus `json:"status,omitzero" by:"server"`
}

// QueueSpec has the rules of a queue. A change counts at once for the work that waits;
// work that runs goes on.
type QueueSpec struct {
	// State is Open, Hold: no work of the queue starts, or Closed: no new work enters,
	// and the work that waits is started.
	State string `json:"state,omitempty" default:"Open" oneof:"Open,Hold,Closed"`
	// Order is BestEffort: work that has no place now lets the work behind it start, or
	// Strict: no work starts before all work that is ahead of it in the queue. Suspended
	// work, and groups that are not complete, hold back nobody.
	Order string `json:"order,omitempty" default:"BestEffort" oneof:"BestEffort,Strict"`
	// MaxRunningMembers bounds the members of the queue that hold something: more wait.
	// 0: no bound.
	MaxRunningMembers int32 `json:"maxRunningMembers,omitempty" unit:"members" example:"64"`
	// MaxWaitingMembers bounds the members of the queue that wait: more are refused with
	// 429. Work that was evicted waits beyond the bound. 0: no bound.
	MaxWaitingMembers int32 `json:"maxWaitingMembers,omitempty" unit:"members" example:"1000"`
	// PlacementPolicy chooses among the nodes that have room for work of the queue;
	// default: placementPolicy of the coordinators' configuration.
	PlacementPolicy string `json:"placementPolicy,omitempty" oneof:"fragmentation,packed,spread,balanced"`
}

// QueueStatus is the part of a Queue that the cluster adds. No number of it makes an event
// of a watch.
type QueueStatus struct {
	// WaitingMembers counts the members that wait.
	WaitingMembers int `json:"waitingMembers,omitempty" unit:"members" example:"12"`
	// RunningMembers counts the members that run, or are leaving.
	RunningMembers int `json:"runningMembers,omitempty" unit:"members" example:"48"`
}

// QueueList is a list of queues, ordered by name.
type QueueList struct {
	// Kind is QueueList.
	Kind string `json:"kind" oneof:"QueueList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the queues.
	Items []Queue `json:"items"`
}

// The states and the orders of a queue.
const (
	QueueOpen       = "Open"
	QueueHold       = "Hold"
	QueueClosed     = "Closed"
	QueueBestEffort = "BestEffort"
	QueueStrict     = "Strict"
)

var queueDecoder = strict.For[Queue]()

// DecodeQueue reads and validates a queue as DecodeResourceQuota does a resource quota.
func DecodeQueue(doc []byte) (*Queue, *Status) {
	return decodeValid(queueDecoder, doc, func(q *Queue) *Status {
		status := q.Metadata.settable(&q.APIVersion, &q.Kind, KindQueue)
		q.Status = QueueStatus{}
		return allFaults(status, q.Validate())
	})
}

// Validate refuses a name that is no label, and values outside of their range.
func (q *Queue) Validate() *Status {
	var faults faults
	faults.add(checkLabelName(q.Metadata, "queue"))
	s := &q.Spec
	faults.add(checkWord("spec.state", s.State, QueueOpen, QueueHold, QueueClosed))
	faults.add(checkWord("spec.order", s.Order, QueueBestEffort, QueueStrict))
	faults.add(checkWord("spec.placementPolicy", s.PlacementPolicy, "balanced", "fragmentation", "packed", "spread"))
	for _, f := range []struct {
		path  string
		value int32
	}{{"spec.maxRunningMembers", s.MaxRunningMembers}, {"spec.maxWaitingMembers", s.MaxWaitingMembers}} {
		if f.value < 0 {
			faults.add(invalid(f.path, "%d is outside 0..%d; 0 is no bound", f.value, math.MaxInt32))
		}
	}
	return faults.status()
}
