package api

import (
	"github.com/musterd/muster/api/internal/strict"
	"github.com/musterd/muster/resource"
)

// PreemptionRequest asks for the end of an allocation, under notice.
type PreemptionRequest struct {
	// TargetAllocation is its name; of a job's member, all of its unit ends.
	TargetAllocation string `json:"targetAllocation"`
	Reason           string `json:"reason,omitempty"`
	// GracePeriodSeconds is between notice and forced stop; nil is the server's
	// default.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// InitiatedBy is who wants it, for people; "" is who asks.
	InitiatedBy string `json:"initiatedBy,omitempty"`
}

// Preemption is an eviction that is durable.
type Preemption struct {
	// PreemptionID is the transaction that ends.
	PreemptionID     string `json:"preemptionId"`
	TargetAllocation string `json:"targetAllocation"`
	// Unit is what ends, "namespace/alloc|job/name/n".
	Unit   string `json:"unit"`
	Status string `json:"status"` // always "Initiated"
	// GracePeriodEnds is RFC 3339; what is on its way out already keeps the
	// grace that it was promised.
	GracePeriodEnds string `json:"gracePeriodEnds"`
	// ResourcesFreed are those of the whole unit.
	ResourcesFreed map[resource.Name]string `json:"resourcesFreed"`
}

// DrainOptions is the body of a drain. DeleteEmptyDirData, IgnoreDaemonSets and
// Force are Kubernetes' and change nothing here.
type DrainOptions struct {
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	Reason             string `json:"reason,omitempty"`
	DeleteEmptyDirData bool   `json:"deleteEmptyDirData,omitempty"`
	IgnoreDaemonSets   bool   `json:"ignoreDaemonSets,omitempty"`
	Force              bool   `json:"force,omitempty"`
}

// Drain is how far a node is on its way to being empty. Asking again shows
// what is left, and gives notice to what came meanwhile.
type Drain struct {
	Status string `json:"status"` // Draining, or Drained where nothing is left
	// AllocationsToEvict is how many are on the node.
	AllocationsToEvict int `json:"allocationsToEvict"`
	// EstimatedCompletionTime is when the last grace ends, RFC 3339; "" if
	// nothing is left.
	EstimatedCompletionTime string        `json:"estimatedCompletionTime,omitempty"`
	Progress                DrainProgress `json:"progress"`
}

// DrainProgress counts the allocations on a node.
type DrainProgress struct {
	Evicted int `json:"evicted"` // under notice
	Pending int `json:"pending"` // not yet
	Failed  int `json:"failed"`  // refused to be evicted
}

var (
	preemptionDecoder   = strict.For[PreemptionRequest]()
	drainOptionsDecoder = strict.For[DrainOptions]()
)

// DecodePreemption reads the body of a preemption.
func DecodePreemption(doc []byte) (PreemptionRequest, *Status) {
	p, status := decode(preemptionDecoder, doc)
	switch {
	case status != nil:
		return PreemptionRequest{}, status
	case !IsSubdomain(p.TargetAllocation):
		return PreemptionRequest{}, invalid("targetAllocation", "%q is not an RFC 1123 subdomain (1..253 of a-z, 0-9, '-' and '.')", clip(p.TargetAllocation))
	}
	if status := checkGrace(p.GracePeriodSeconds); status != nil {
		return PreemptionRequest{}, status
	}
	if status := checkText("reason", p.Reason); status != nil {
		return PreemptionRequest{}, status
	}
	if status := checkText("initiatedBy", p.InitiatedBy); status != nil {
		return PreemptionRequest{}, status
	}
	return *p, nil
}

// DecodeDrainOptions reads the body of a drain; an empty body asks for the
// defaults.
func DecodeDrainOptions(doc []byte) (DrainOptions, *Status) {
	if len(doc) == 0 {
		return DrainOptions{}, nil
	}
	o, status := decode(drainOptionsDecoder, doc)
	if status == nil {
		status = checkGrace(o.GracePeriodSeconds)
	}
	if status == nil {
		status = checkText("reason", o.Reason)
	}
	if status != nil {
		return DrainOptions{}, status
	}
	return *o, nil
}

// checkText bounds what is kept for people.
func checkText(field, text string) *Status {
	if len(text) > 1024 {
		return invalid(field, "%d bytes long, the limit is 1024", len(text))
	}
	return nil
}
