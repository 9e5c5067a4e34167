package api

import (
	"time"

	"github.com/musterd/muster/api/internal/strict"
)

// MaxBoost is the greatest duration of a boost.
const MaxBoost = 7 * 24 * time.Hour

// BoostOptions is the body of a boost: a job gets a greater priority for a while.
type BoostOptions struct {
	// NewPriority is the priority of the job's members that wait, as spec.priority is
	// one. It is above the job's own priority and at most the ceilings of the caller and
	// of the namespace.
	NewPriority int32 `json:"newPriority" required:"true" range:"1..1000000000" example:"500"`
	// Reason is kept for people: at most 1024 bytes.
	Reason string `json:"reason,omitempty" text:"lines" example:"production incident"`
	// Duration is the time from now on after which members that still wait have the
	// job's own priority again.
	Duration string `json:"duration" required:"true" range:"1s..168h" format:"duration" example:"3600s"`
	// ApprovedBy is the name of the person that has approved the boost, for people: at
	// most 1024 bytes. It gives no right; the audit has the caller.
	ApprovedBy string `json:"approvedBy,omitempty" example:"admin@example.com"`
}

// Boost is the answer to a boost.
type Boost struct {
	// PreviousPriority is the priority that the members which wait had before.
	PreviousPriority int32 `json:"previousPriority" example:"200"`
	// NewPriority is the priority that they have now.
	NewPriority int32 `json:"newPriority" example:"500"`
	// BoostExpires is the time when the boost ends.
	BoostExpires string `json:"boostExpires" format:"time" example:"2026-03-01T13:00:00Z"`
	// NewQueuePosition is the place of the job's first unit that waits in its queue now;
	// 1 is next.
	NewQueuePosition int `json:"newQueuePosition" unit:"units" example:"1"`
}

// JobBoost is the boost of a job that has not ended yet.
type JobBoost struct {
	// Priority is the priority of the job's members that wait.
	Priority int32 `json:"priority" example:"500"`
	// Expires is the time when the boost ends.
	Expires string `json:"expires" format:"time" example:"2026-03-01T13:00:00Z"`
	// Reason is the reason that was given.
	Reason string `json:"reason,omitempty" text:"lines" example:"production incident"`
	// ApprovedBy is the person that has approved the boost, as the caller says.
	ApprovedBy string `json:"approvedBy,omitempty" example:"admin@example.com"`
}

var boostOptionsDecoder = strict.For[BoostOptions]()

// DecodeBoostOptions reads the body of a boost.
func DecodeBoostOptions(doc []byte) (BoostOptions, *Status) {
	return decodeValue(boostOptionsDecoder, doc, func(o *BoostOptions) *Status {
		return allFaults(checkNewPriority(o.NewPriority), checkBoost(o.Duration), checkText("reason", o.Reason), checkText("approvedBy", o.ApprovedBy))
	})
}

func checkNewPriority(p int32) *Status {
	if p < 1 || p > MaxPriority {
		return invalid("newPriority", "%d is outside 1..%d", p, MaxPriority)
	}
	return nil
}

func checkBoost(text string) *Status {
	_, status := between("duration", text, 0, time.Second, MaxBoost)
	if text == "" {
		status = invalid("duration", "missing: want a time such as \"1h\" or \"30m\", 1s..168h")
	}
	return status
}

// Length is the duration of a boost whose document was checked.
func (o BoostOptions) Length() time.Duration {
	d, _ := time.ParseDuration(o.Duration)
	return d
}
