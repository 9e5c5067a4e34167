package events

import (
	"reflect"
	"slices"
	"time"

	"github.com/musterd/muster/api"
)

// Type is Normal or Warning, as in Kubernetes.
type Type string

// The types.
const (
	Normal  Type = "Normal"
	Warning Type = "Warning"
)

// Happening is an event without its object. At is "" where the object does not
// say when it happened, else RFC 3339.
type Happening struct {
	Type            Type
	Reason, Message string
	At              string
}

// Derive returns the events of a change, in the order in which they happen:
// before is nil for an object that is new, after for an object that was deleted.
// Both point to the same type of package api; the events of other types are none.
func Derive(before, after any) []Happening {
	object := after
	if after == nil {
		object = before
	}
	switch object.(type) {
	case *api.Allocation:
		return ofAllocation(valueOf[api.Allocation](before), valueOf[api.Allocation](after), after == nil)
	case *api.Job:
		return ofJob(valueOf[api.Job](before), valueOf[api.Job](after), after == nil)
	case *api.Node:
		return ofNode(valueOf[api.Node](before), valueOf[api.Node](after), before == nil, after == nil)
	case *api.ResourceQuota:
		was, is := valueOf[api.ResourceQuota](before), valueOf[api.ResourceQuota](after)
		if before != nil && after != nil && !reflect.DeepEqual(was.Spec, is.Spec) {
			return []Happening{{Type: Normal, Reason: "LimitsChanged", Message: "the quota has other limits or scopes"}}
		}
	}
	return nil
}

// valueOf is the object, the zero value for nil.
func valueOf[T any](object any) *T {
	if o, is := object.(*T); is {
		return o
	}
	return new(T)
}

// conditionOf finds a condition; the zero value where there is none.
func conditionOf(conditions []api.Condition, kind string) api.Condition {
	if i := slices.IndexFunc(conditions, func(c api.Condition) bool { return c.Type == kind }); i >= 0 {
		return conditions[i]
	}
	return api.Condition{}
}

// waits is the event of a unit that waits for another reason than before, none
// where the reason is the same.
func waits(was, is api.Condition, waiting string) []Happening {
	if is.Status != waiting || was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	h := Happening{Type: Normal, Reason: "Queued", Message: is.Reason + ": " + is.Message, At: is.LastTransitionTime}
	switch is.Reason {
	case "Preempting":
		h.Reason, h.Message = "Preempting", is.Message
	case "QuotaExceeded", "Refused":
		h.Type = Warning
	}
	return []Happening{h}
}

// ends is the event of a phase that is final, none for other phases.
func ends(phase api.Phase, message string) []Happening {
	if !phase.Ended() {
		return nil
	}
	h := Happening{Type: Normal, Reason: string(phase), Message: message}
	if phase == api.Failed || phase == api.Preempted {
		h.Type = Warning
	}
	return []Happening{h}
}

func ofAllocation(was, is *api.Allocation, deleted bool) (all []Happening) {
	if deleted {
		return []Happening{{Type: Normal, Reason: "Deleted", Message: "the allocation holds nothing and is gone"}}
	}
	w, s := &was.Status, &is.Status
	condition := func(kind string) (was, is api.Condition) {
		return conditionOf(w.Conditions, kind), conditionOf(s.Conditions, kind)
	}
	scheduledWas, scheduled := condition("Scheduled")
	all = waits(scheduledWas, scheduled, "False")
	if scheduled.Status == "True" && scheduledWas.Status != "True" {
		all = append(all, Happening{Type: Normal, Reason: "Scheduled", Message: "placed on node " + s.NodeName, At: scheduled.LastTransitionTime})
	}
	if readyWas, ready := condition("Ready"); ready.Status == "True" && readyWas.Status != "True" {
		all = append(all, Happening{Type: Normal, Reason: "Started", Message: "the agents of all members hold their devices", At: ready.LastTransitionTime})
	}
	lostWas, lost := condition("DeviceLost")
	switch {
	case lost.Status == "True" && (lostWas.Status != "True" || lostWas.Message != lost.Message):
		all = append(all, Happening{Type: Warning, Reason: "DeviceLost", Message: lost.Message, At: lost.LastTransitionTime})
	case lost.Status != "True" && lostWas.Status == "True" && s.Phase == api.Running:
		all = append(all, Happening{Type: Normal, Reason: "DeviceBack", Message: "no device of the allocation is lost any more"})
	}
	if endingWas, ending := condition("Terminating"); ending.Status == "True" && endingWas.Reason != ending.Reason {
		h := Happening{Type: Normal, Reason: "Terminating", Message: ending.Message, At: ending.LastTransitionTime}
		if ending.Reason == "Evicted" {
			h.Type, h.Reason = Warning, "Evicted"
		}
		all = append(all, h)
	}
	if w.Phase != s.Phase {
		all = append(all, ends(s.Phase, s.Message)...)
	}
	return all
}

func ofJob(was, is *api.Job, deleted bool) (all []Happening) {
	if deleted {
		return []Happening{{Type: Normal, Reason: "Deleted", Message: "the job is gone"}}
	}
	w, s := &was.Status, &is.Status
	all = waits(conditionOf(w.Conditions, "Queued"), conditionOf(s.Conditions, "Queued"), "True")
	if w.Phase == s.Phase {
		return all
	}
	switch s.Phase {
	case api.Running:
		all = append(all, Happening{Type: Normal, Reason: "Running", Message: "the first members are placed", At: s.StartTime})
	case api.Cancelling:
		all = append(all, Happening{Type: Normal, Reason: "Cancelling", Message: s.Message})
	}
	return append(all, ends(s.Phase, s.Message)...)
}

func ofNode(was, is *api.Node, isNew, deleted bool) (all []Happening) {
	if deleted {
		return []Happening{{Type: Normal, Reason: "Deleted", Message: "the node is forgotten"}}
	}
	readyWas, ready := conditionOf(was.Status.Conditions, "Ready"), conditionOf(is.Status.Conditions, "Ready")
	if ready.Type != "" && (readyWas.Status != ready.Status || readyWas.Reason != ready.Reason) {
		h := Happening{Type: Normal, Reason: "Ready", Message: ready.Message, At: ready.LastTransitionTime}
		if ready.Status != "True" {
			h.Type, h.Reason, h.Message = Warning, is.Status.Phase, ready.Reason+": "+ready.Message
		}
		all = append(all, h)
	}
	for _, c := range is.Status.Conditions {
		if before := conditionOf(was.Status.Conditions, c.Type); c.Type == "DeviceLost" && c.Status == "True" && (before.Status != "True" || before.Message != c.Message) {
			all = append(all, Happening{Type: Warning, Reason: c.Type, Message: c.Message, At: c.LastTransitionTime})
		}
	}
	switch {
	case is.Spec.Unschedulable && !was.Spec.Unschedulable:
		all = append(all, Happening{Type: Normal, Reason: "Cordoned", Message: "no new work is placed on the node"})
	case !is.Spec.Unschedulable && was.Spec.Unschedulable && !isNew:
		all = append(all, Happening{Type: Normal, Reason: "Uncordoned", Message: "new work is placed on the node again"})
	}
	return all
}

// instant is the time of a happening, now where it does not say.
func (h *Happening) instant(now time.Time) time.Time {
	if at, err := time.Parse(time.RFC3339, h.At); err == nil && at.Before(now) {
		return at
	}
	return now
}
