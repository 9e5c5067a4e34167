package api

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterd/muster/resource"
)

// EvictionNotice is the notice to an allocation on a node that the allocation is
// evicted.
type EvictionNotice struct {
	// Type is EVICTION.
	Type string `json:"type" oneof:"EVICTION"`
	// Allocation is the name of the allocation.
	Allocation string `json:"allocation" example:"train-0"`
	// Namespace is the namespace of the allocation.
	Namespace string `json:"namespace" example:"default"`
	// Transaction is the id of the transaction that ends, as the agent knows it.
	Transaction resource.TxID `json:"transaction,omitempty" example:"alloc-00000000000000a1-1.1"`
	// Reason says why the allocation is evicted.
	Reason string `json:"reason,omitempty" example:"Preempted by higher priority job"`
	// GracePeriodSeconds is the time between the notice and the forced stop.
	GracePeriodSeconds int64 `json:"gracePeriodSeconds" unit:"seconds" example:"30"`
	// Deadline is the time of the forced stop; absent where an older version has given
	// the notice.
	Deadline string `json:"deadline,omitempty" format:"time" example:"2026-03-01T12:00:30Z"`
	// ResourceVersion is the place of a watch behind this notice; absent in a list, and
	// for notices that stood when the watch began.
	ResourceVersion string `json:"resourceVersion,omitempty" example:"1042.0"`
}

// EvictionNoticeList is the list of the notices on a node, ordered by namespace and
// name.
type EvictionNoticeList struct {
	// Kind is EvictionNoticeList.
	Kind string `json:"kind" oneof:"EvictionNoticeList"`
	// Metadata has the revision, from which a watch goes on.
	Metadata ListMeta `json:"metadata"`
	// Items are the notices.
	Items []EvictionNotice `json:"items"`
}

// EvictionOn returns the notice of an allocation on a node; false where the
// allocation is elsewhere or is not being evicted. An allocation that its owner has
// deleted too is not: its end is the owner's.
func EvictionOn(node string, a *Allocation) (EvictionNotice, bool) {
	if string(a.Status.NodeID) != node || a.Status.Phase != Terminating {
		return EvictionNotice{}, false
	}
	evicted := slices.ContainsFunc(a.Status.Conditions, func(c Condition) bool { return c.Type == "Terminating" && c.Reason == "Evicted" })
	if !evicted || a.Metadata.DeletionGracePeriodSeconds == nil {
		return EvictionNotice{}, false
	}
	n := EvictionNotice{
		Type: "EVICTION", Allocation: a.Metadata.Name, Namespace: a.Metadata.Namespace, Transaction: a.Status.Transaction,
		Reason: cmp.Or(a.Status.Message, "evicted"), GracePeriodSeconds: *a.Metadata.DeletionGracePeriodSeconds,
	}
	if noticed, err := time.Parse(time.RFC3339, a.Metadata.DeletionTimestamp); err == nil {
		n.Deadline = noticed.Add(time.Duration(n.GracePeriodSeconds) * time.Second).UTC().Format(time.RFC3339)
	}
	return n, true
}
