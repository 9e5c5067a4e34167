package api

import (
	"strings"

	"github.com/musterd/muster/api/internal/strict"
	"github.com/musterd/muster/resource"
)

// BulkReleaseOptions select allocations of a namespace to end, and the way.
type BulkReleaseOptions struct {
	// LabelSelector selects the allocations, as in a list. An empty selector is
	// refused: it would select every allocation of the namespace.
	LabelSelector string `json:"labelSelector" required:"true" example:"batch-id=job-20240115"`
	// GracePeriodSeconds is the time between the notice and the forced stop.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty" default:"30" range:"0..86400" unit:"seconds" example:"60"`
	// DryRun counts and lists the allocations, and ends none.
	DryRun bool `json:"dryRun,omitempty" default:"false" example:"true"`
	// Reason is kept for people: at most 1024 bytes.
	Reason string `json:"reason,omitempty" text:"lines" example:"wrong data set"`
}

// BulkRelease is the outcome of a release of several allocations.
type BulkRelease struct {
	// Released is the number of allocations whose end is durable; of a dry run, of
	// those that would end.
	Released int `json:"released" unit:"allocations" example:"24"`
	// Failed is the number of selected allocations that do not end.
	Failed int `json:"failed" unit:"allocations" example:"0"`
	// TotalResourcesFreed are the amounts that the released allocations hold, and
	// that are free once all of them have stopped.
	TotalResourcesFreed map[resource.Name]string `json:"totalResourcesFreed" format:"quantity" example:"{cpu: '192', nvidia.com/gpu: '96'}"`
	// DryRun reports that nothing was ended. Muster's own field.
	DryRun bool `json:"dryRun,omitempty" example:"false"`
	// Allocations are the names of the released allocations, ascending: the first
	// 1000. Muster's own field.
	Allocations []string `json:"allocations,omitempty" example:"[sweep-1, sweep-2]"`
	// Failures say why allocations do not end: the first 100. Muster's own field.
	Failures []ReleaseFailure `json:"failures,omitempty"`
}

// ReleaseFailure is one allocation that does not end.
type ReleaseFailure struct {
	// Name is the name of the allocation.
	Name string `json:"name" example:"train-0"`
	// Message is the reason in a sentence.
	Message string `json:"message" text:"lines" example:"allocation train-0 is a member of job train; cancel or delete the job"`
}

// Bounds of the names in a BulkRelease. The counts have no bound.
const (
	MaxReleasedNames    = 1000
	MaxReleaseFailures  = 100
	emptySelectorReason = "an empty selector would select every allocation of the namespace: name a label, e.g. app=web"
)

var bulkReleaseDecoder = strict.For[BulkReleaseOptions]()

// DecodeBulkRelease reads the body of a bulk release. The syntax of the selector
// is not looked at.
func DecodeBulkRelease(doc []byte) (BulkReleaseOptions, *Status) {
	return decodeValue(bulkReleaseDecoder, doc, func(o *BulkReleaseOptions) *Status {
		return allFaults(CheckReleaseSelector("labelSelector", o.LabelSelector), checkGrace(o.GracePeriodSeconds), checkText("reason", o.Reason))
	})
}

// CheckReleaseSelector refuses the empty selector of a field or parameter.
func CheckReleaseSelector(path, selector string) *Status {
	if strings.TrimSpace(selector) == "" {
		return invalid(path, "%q: %s", selector, emptySelectorReason)
	}
	return nil
}
