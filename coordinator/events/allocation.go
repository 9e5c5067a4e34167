package events

import (
	"cmp"

	"github.com/musterd/muster/api"
)

// Types of conditions of work.
const (
	scheduled   = "Scheduled"
	ready       = "Ready"
	terminating = "Terminating"
	deviceLost  = "DeviceLost"
	signaled    = "Signaled"
	gpusIdle    = "Idle"
	queued      = "Queued"
)

// OfAllocation returns the events of a change of an allocation, in the order in
// which they happen: before is nil for an allocation that is new, after for an
// allocation that is gone.
func OfAllocation(before, after *api.Allocation) (all []Happening) {
	if after == nil {
		return []Happening{normal("Deleted", "", "the allocation is deleted")}
	}
	if before == nil {
		before = new(api.Allocation)
		all = append(all, createdAllocation(after))
	}
	was, is := &before.Status, &after.Status
	all = append(all, waits(conditionOf(was.Conditions, scheduled), conditionOf(is.Conditions, scheduled), "False")...)
	if was.Phase == api.Terminating && is.Phase == api.Pending {
		all = append(all, normal("Requeued", "", "the allocation waits again, at its old place in the order"))
	}
	if placed := conditionOf(is.Conditions, scheduled); placed.Status == "True" && conditionOf(was.Conditions, scheduled).Status != "True" {
		all = append(all, placedAllocation(is, placed.LastTransitionTime))
	}
	all = append(all, held(was.Conditions, is.Conditions, "the agents of all members hold their devices")...)
	all = append(all, warned(was.Conditions, is.Conditions)...)
	all = append(all, idles(was.Conditions, is.Conditions)...)
	all = append(all, losses(was, is)...)
	all = append(all, leaving(was.Conditions, is.Conditions)...)
	if was.Phase != is.Phase {
		all = append(all, ends(is.Phase, is.Message)...)
	}
	return all
}

func createdAllocation(a *api.Allocation) Happening {
	priority := api.PriorityOf(a.Spec.Priority, a.Spec.PriorityClass)
	if a.Status.Job != "" {
		return normal("Created", a.Metadata.CreationTimestamp, "member %d of job %s", a.Status.Member, a.Status.Job)
	}
	return normal("Created", a.Metadata.CreationTimestamp, "asks for %s at priority %d in queue %s",
		cmp.Or(amounts(a.Spec.Resources.Requests), "nothing"), priority, cmp.Or(a.Spec.Queue, "default"))
}

func placedAllocation(s *api.AllocationStatus, at string) Happening {
	if granted := amounts(s.AllocatedResources); granted != "" {
		return normal(scheduled, at, "placed on node %s with %s", s.NodeName, granted)
	}
	return normal(scheduled, at, "placed on node %s", s.NodeName)
}

// waits is the event of work that waits for another reason than before, or once
// more for the reason that an agent refused it; none for other changes. Work that was
// not tried yet has no reason to wait.
func waits(was, is api.Condition, waiting string) []Happening {
	same := was.Status == is.Status && was.Reason == is.Reason
	switch {
	case is.Status != waiting, is.Reason == "Unscheduled", is.Reason == restartBackOff, same && (is.Reason != "Refused" || was.Message == is.Message):
		return nil
	case is.Reason == "Refused":
		return []Happening{warning(is.Reason, is.LastTransitionTime, "%s", is.Message).latest()}
	case is.Reason == "Preempting", is.Reason == "Suspended":
		return []Happening{normal(is.Reason, is.LastTransitionTime, "%s", is.Message)}
	}
	return []Happening{warning(is.Reason, is.LastTransitionTime, "%s", is.Message)}
}

// held is the event of work whose agents have confirmed the grants.
func held(was, is []api.Condition, message string) []Happening {
	if now := conditionOf(is, ready); now.Status == "True" && conditionOf(was, ready).Status != "True" {
		return []Happening{normal(ready, now.LastTransitionTime, "%s", message)}
	}
	return nil
}

// warned is the event of work that has got the signal which announces its end.
func warned(was, is []api.Condition) []Happening {
	if now := conditionOf(is, signaled); now.Status == "True" && conditionOf(was, signaled).Status != "True" {
		return []Happening{normal(signaled, now.LastTransitionTime, "%s", now.Message)}
	}
	return nil
}

// idles are the events of work whose GPUs begin to do nothing by the rule of its namespace, or
// to do something.
func idles(was, is []api.Condition) []Happening {
	before, now := conditionOf(was, gpusIdle), conditionOf(is, gpusIdle)
	switch {
	case now.Status == "True" && before.LastTransitionTime != now.LastTransitionTime:
		return []Happening{warning(gpusIdle, "", "%s", now.Message)}
	case now.Status != "True" && before.Status == "True" && conditionOf(is, ready).Status == "True":
		return []Happening{normal("IdleEnded", "", "its GPUs are used again")}
	}
	return nil
}

// losses are the events of devices that an allocation holds.
func losses(was, is *api.AllocationStatus) []Happening {
	before, now := conditionOf(was.Conditions, deviceLost), conditionOf(is.Conditions, deviceLost)
	switch {
	case now.Status == "True" && (before.Status != "True" || before.Message != now.Message):
		return []Happening{warning(deviceLost, now.LastTransitionTime, "%s", now.Message)}
	case now.Status != "True" && before.Status == "True" && is.Phase == api.Running:
		return []Happening{normal("DeviceReturned", "", "no device of the allocation is lost any more")}
	}
	return nil
}

// leaving is the event of work that is Terminating for another reason than before.
func leaving(was, is []api.Condition) []Happening {
	now := conditionOf(is, terminating)
	switch {
	case now.Status != "True" || conditionOf(was, terminating).Reason == now.Reason:
		return nil
	case now.Reason == "Evicted":
		return []Happening{warning("Evicted", now.LastTransitionTime, "%s", now.Message)}
	}
	return []Happening{normal(terminating, now.LastTransitionTime, "%s", now.Message)}
}

// ends is the event of a phase that is final, none for other phases.
func ends(phase api.Phase, message string) []Happening {
	switch {
	case !phase.Ended():
		return nil
	case phase == api.Failed || phase == api.Preempted:
		return []Happening{warning(string(phase), "", "%s", cmp.Or(message, "it has ended"))}
	}
	return []Happening{normal(string(phase), "", "%s", cmp.Or(message, "it has ended"))}
}
