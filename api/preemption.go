package api

import (
	"github.com/musterd/muster/api/internal/strict"
	"github.com/musterd/muster/resource"
)

// PreemptionRequest asks for the eviction of an allocation, with notice.
type PreemptionRequest struct {
	// TargetAllocation is the allocation's name. For a member of a job, the member's
	// whole unit is evicted.
	TargetAllocation string `json:"targetAllocation" required:"true" example:"train-0"`
	// Reason is kept for people: at most 1024 bytes.
	Reason string `json:"reason,omitempty" text:"lines" default:"evicted by an operator" example:"maintenance"`
	// GracePeriodSeconds is the time between the notice and the forced stop.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty" default:"30" range:"0..86400" unit:"seconds" example:"60"`
	// InitiatedBy is the name of the person that wants the eviction, kept for people:
	// at most 1024 bytes. Left out, it is the caller's name.
	InitiatedBy string `json:"initiatedBy,omitempty" example:"ada"`
}

// Preemption is an eviction that is durable.
type Preemption struct {
	// PreemptionID is the id of the transaction that ends.
	PreemptionID string `json:"preemptionId" example:"alloc-00000000000000a1-1.1"`
	// TargetAllocation is the allocation that was named.
	TargetAllocation string `json:"targetAllocation" example:"train-0"`
	// Unit is the path of the unit that ends: NAMESPACE/alloc/NAME/N or
	// NAMESPACE/job/NAME/N.
	Unit string `json:"unit" example:"default/job/train/0"`
	// Status is Initiated.
	Status string `json:"status" oneof:"Initiated"`
	// GracePeriodEnds is the time of the forced stop. A unit that is evicted already
	// keeps the grace of its first notice.
	GracePeriodEnds string `json:"gracePeriodEnds" format:"time" example:"2026-03-01T12:00:30Z"`
	// ResourcesFreed are the amounts of the whole unit.
	ResourcesFreed map[resource.Name]string `json:"resourcesFreed" format:"quantity" example:"{cpu: '8', nvidia.com/gpu: '2'}"`
}

// DrainOptions is the optional body of a drain.
type DrainOptions struct {
	// GracePeriodSeconds is the time between the notice and the forced stop.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty" default:"30" range:"0..86400" unit:"seconds" example:"60"`
	// Reason is kept for people: at most 1024 bytes.
	Reason string `json:"reason,omitempty" text:"lines" default:"node NAME is drained" example:"new memory"`
	// DeleteEmptyDirData is accepted for clients of Kubernetes and changes nothing.
	DeleteEmptyDirData bool `json:"deleteEmptyDirData,omitempty" default:"false" example:"false"`
	// IgnoreDaemonSets is accepted for clients of Kubernetes and changes nothing.
	IgnoreDaemonSets bool `json:"ignoreDaemonSets,omitempty" default:"false" example:"false"`
	// Force is accepted for clients of Kubernetes and changes nothing.
	Force bool `json:"force,omitempty" default:"false" example:"false"`
}

// Drain is the progress of a drain. A repeated request shows the rest, and gives
// notice to units that have come since.
type Drain struct {
	// Status is Drained where no allocation is left, else Draining.
	Status string `json:"status" oneof:"Draining,Drained"`
	// AllocationsToEvict is the number of allocations that were on the node when the
	// drain began, and of those that have come since. An uncordon ends the drain.
	AllocationsToEvict int `json:"allocationsToEvict" unit:"allocations" example:"5"`
	// EstimatedCompletionTime is the time when the last grace ends, or now where that
	// is over; absent where no allocation under notice is left.
	EstimatedCompletionTime string `json:"estimatedCompletionTime,omitempty" format:"time" example:"2026-03-01T12:00:30Z"`
	// Progress divides the allocations to evict.
	Progress DrainProgress `json:"progress"`
}

// DrainProgress divides the allocations of a drain: each is evicted, pending or
// failed.
type DrainProgress struct {
	// Evicted is the number of allocations that have left the node.
	Evicted int `json:"evicted" unit:"allocations" example:"4"`
	// Pending is the number of allocations that are still on the node, under notice or
	// about to begin.
	Pending int `json:"pending" unit:"allocations" example:"1"`
	// Failed is the number of allocations that are still on the node 1 min after their
	// grace has ended: the agent does not answer, or cannot stop the workload.
	Failed int `json:"failed" unit:"allocations" example:"0"`
}

var (
	preemptionDecoder   = strict.For[PreemptionRequest]()
	drainOptionsDecoder = strict.For[DrainOptions]()
)

// DecodePreemption reads the body of a preemption.
func DecodePreemption(doc []byte) (PreemptionRequest, *Status) {
	return decodeValue(preemptionDecoder, doc, func(p *PreemptionRequest) *Status {
		var faults faults
		if !IsSubdomain(p.TargetAllocation) {
			faults.add(invalid("targetAllocation", "%q is not an RFC 1123 subdomain (1..253 of a-z, 0-9, '-' and '.')", clip(p.TargetAllocation)))
		}
		faults.add(checkGrace(p.GracePeriodSeconds))
		faults.add(checkText("reason", p.Reason))
		faults.add(checkText("initiatedBy", p.InitiatedBy))
		return faults.status()
	})
}

// DecodeDrainOptions reads the body of a drain; an empty body asks for the
// defaults.
func DecodeDrainOptions(doc []byte) (DrainOptions, *Status) {
	return decodeOptions(drainOptionsDecoder, doc, func(o *DrainOptions) *Status {
		return allFaults(checkGrace(o.GracePeriodSeconds), checkText("reason", o.Reason))
	})
}

// checkText bounds texts that are kept for people.
func checkText(field, text string) *Status {
	if len(text) > 1024 {
		return invalid(field, "%d bytes long, the limit is 1024", len(text))
	}
	return nil
}
