package events

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Node is a node and the number of members that hold something there.
type Node struct {
	*api.Node
	Held int
}

// OfNode returns the events of a change of a node: before has no Node for a node
// that is new, after for a node that is gone.
func OfNode(before, after Node) (all []Happening) {
	if after.Node == nil {
		return []Happening{normal("Deleted", "", "the node is forgotten")}
	}
	if before.Node == nil {
		before.Node = new(api.Node)
		all = append(all, newNode(after.Node))
	} else {
		all = append(all, registered(before.Node, after.Node)...)
	}
	all = append(all, readiness(before.Node, after.Node)...)
	all = append(all, aspects(before.Node, after.Node)...)
	switch {
	case after.Spec.Unschedulable && !before.Spec.Unschedulable:
		all = append(all, normal("Cordoned", "", "no new work is placed on the node; %s there", hold(after.Held)))
	case !after.Spec.Unschedulable && before.Spec.Unschedulable:
		all = append(all, normal("Uncordoned", "", "new work is placed on the node again"))
	}
	if after.Spec.Unschedulable && after.Held == 0 && before.Held > 0 {
		all = append(all, normal("Drained", "", "the node is cordoned, and nothing is held there any more"))
	}
	return all
}

// newNode is the event of a node that is new: an operator has created it, or its agent
// has registered.
func newNode(n *api.Node) Happening {
	capacity := cmp.Or(amounts(n.Spec.Capacity), "no capacity")
	if n.Status.Incarnation == nil {
		return normal("Created", n.Metadata.CreationTimestamp, "an operator has created the node, which should have %s", capacity)
	}
	return normal("Registered", n.Metadata.CreationTimestamp, "the node is new, with %s", capacity)
}

func hold(members int) string {
	if members == 1 {
		return "1 member holds devices"
	}
	return fmt.Sprintf("%d members hold devices", members)
}

// registered are the events of a registration that differs from the last one.
func registered(before, after *api.Node) (all []Happening) {
	was, is := before.Status.Incarnation, after.Status.Incarnation
	switch {
	case is == nil || was != nil && *was == *is:
	case was == nil:
		all = append(all, normal("Registered", "", "the agent has registered, with %s", cmp.Or(amounts(after.Spec.Capacity), "no capacity")))
	case was.BootID != is.BootID:
		all = append(all, warning("Rebooted", "", "the host was restarted, and its agent has registered again"))
	default:
		all = append(all, warning("JournalReplaced", "", "the agent has registered again with an empty journal"))
	}
	if changed := differences(before.Spec.Capacity, after.Spec.Capacity); changed != "" && before.Spec.Capacity != nil {
		all = append(all, normal("CapacityChanged", "", "%s", changed))
	}
	return all
}

// differences lists the amounts that are not the same, "was → is".
func differences(was, is map[resource.Name]string) string {
	all := maps.Clone(was)
	if all == nil {
		all = map[resource.Name]string{}
	}
	maps.Copy(all, is)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if was[name] != is[name] {
			parts = append(parts, fmt.Sprintf("%s %s → %s", name, cmp.Or(was[name], "none"), cmp.Or(is[name], "none")))
		}
	}
	return strings.Join(parts, ", ")
}

// notObserved is the reason of a node of which the leader has written nothing yet.
const notObserved = "NotObserved"

// newIncarnation is the reason of a node whose agent has registered anew, for the second
// until the leader writes of that. It makes no events.
const newIncarnation = "NewIncarnation"

// readiness is the event of a node that takes new work, or no longer does. A node that
// is new is not ready for a moment, and neither is a node of which nothing is known
// yet: these are no events.
func readiness(before, after *api.Node) []Happening {
	was, is := conditionOf(before.Status.Conditions, ready), conditionOf(after.Status.Conditions, ready)
	switch {
	case is.Type == "" || is.Reason == newIncarnation || was.Reason == newIncarnation && is.Status == "True" || was.Status == is.Status && (was.Reason == is.Reason || is.Status == "True"):
		return nil
	case is.Status == "True":
		return []Happening{normal(ready, is.LastTransitionTime, "the node takes new work")}
	case was.Type == "" || is.Reason == notObserved:
		return nil
	}
	reason := cmp.Or(after.Status.Phase, "NotReady")
	return []Happening{warning(reason, is.LastTransitionTime, "%s", reasoned(reason, is))}
}

// reasoned is the reason of a condition, unless it is that of the event, and its message.
func reasoned(event string, c api.Condition) string {
	switch {
	case c.Message == "":
		return c.Reason
	case c.Reason == event:
		return c.Message
	}
	return c.Reason + ": " + c.Message
}

// gpuHealthy is the one further condition that is good while it is True.
const gpuHealthy = "GPUHealthy"

// healed is the event of devices that have become healthy, or are so no more. A node
// that is new and healthy makes none.
func healed(was, is api.Condition) []Happening {
	switch {
	case is.Status == "False" && (was.Status != "False" || was.Message != is.Message):
		return []Happening{warning("GPUUnhealthy", is.LastTransitionTime, "%s", cmp.Or(is.Message, is.Reason)).latest()}
	case is.Status == "True" && was.Status == "False":
		return []Happening{normal(gpuHealthy, is.LastTransitionTime, "all GPUs of the node are healthy again")}
	}
	return nil
}

// aspects are the events of the other conditions: beside gpuHealthy these are troubles
// while they are True.
func aspects(before, after *api.Node) (all []Happening) {
	phase := after.Status.Phase
	for _, is := range after.Status.Conditions {
		was := conditionOf(before.Status.Conditions, is.Type)
		switch {
		case is.Type == ready || is.Type == phase: // readiness has it
		case is.Type == gpuHealthy:
			all = append(all, healed(was, is)...)
		case is.Status == "True" && (was.Status != "True" || was.Message != is.Message && is.Type == deviceLost):
			all = append(all, warning(is.Type, is.LastTransitionTime, "%s", cmp.Or(is.Message, is.Reason, is.Type)).latest())
		case is.Status == "False" && was.Status == "True":
			all = append(all, over(is.Type, is.LastTransitionTime))
		}
	}
	for _, was := range before.Status.Conditions {
		if was.Status == "True" && was.Type != ready && was.Type != gpuHealthy && conditionOf(after.Status.Conditions, was.Type).Type == "" {
			all = append(all, over(was.Type, ""))
		}
	}
	return all
}

// over is the event of a trouble that has ended.
func over(kind, at string) Happening {
	if kind == deviceLost {
		return normal("DeviceReturned", at, "no granted device of the node is lost any more")
	}
	return normal(kind+"Ended", at, "the node has the condition %s no more", kind)
}
