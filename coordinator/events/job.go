package events

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
)

// Unit is a unit of a job: the set of members that starts and ends as a whole.
type Unit struct {
	// First is the number of the unit's first member within the job, and Members how
	// many the unit has.
	First, Members int
	// Nodes are the nodes of the members; empty while the unit waits.
	Nodes []string
	// Shown is the first member as an allocation.
	Shown *api.Allocation
	// Differs: the other members may have other amounts.
	Differs bool
}

// OfJob returns the events of a change of a job: before is nil for a job that is
// new, after for a job that is gone. The events of its units come from OfUnit.
func OfJob(before, after *api.Job) (all []Happening) {
	if after == nil {
		return []Happening{normal("Deleted", "", "the job is deleted")}
	}
	if before == nil {
		before = new(api.Job)
		all = append(all, createdJob(after))
	}
	was, is := &before.Status, &after.Status
	if !isLeaving(is) {
		all = append(all, waits(conditionOf(was.Conditions, queued), conditionOf(is.Conditions, queued), "True")...)
	}
	if b := is.Boost; b != nil && (was.Boost == nil || *was.Boost != *b) {
		all = append(all, boosted(b))
	} else if b == nil && was.Boost != nil && !is.Phase.Ended() {
		all = append(all, normal("BoostEnded", "", "members that wait have the job's own priority again"))
	}
	if was.Phase == is.Phase {
		return all
	}
	if is.Phase == api.Cancelling {
		all = append(all, normal("Cancelling", "", "%s", is.Message))
	}
	return append(all, ends(is.Phase, is.Message)...)
}

func boosted(b *api.JobBoost) Happening {
	reason := ""
	if b.Reason != "" {
		reason = ": " + b.Reason
	}
	return normal("Boosted", "", "members that wait have priority %d until %s%s", b.Priority, b.Expires, reason)
}

// isLeaving reports whether members of a job hold devices under notice. Until these are
// free the job is Queued, and waits for nothing else.
func isLeaving(s *api.JobStatus) bool {
	return slices.ContainsFunc(s.Allocations, func(m api.JobMember) bool { return m.Phase == api.Terminating })
}

func createdJob(j *api.Job) Happening {
	first, growth, gang := api.JobUnits(j)
	shape := counted(j.Members(), "member") + ", each by itself"
	switch {
	case j.Members() == 1:
		shape = "1 member"
	case gang && growth == 0:
		shape = counted(j.Members(), "member") + ", all at once or not at all"
	case gang:
		shape = fmt.Sprintf("%d members, of which %d start at once or not at all", j.Members(), first)
	}
	priority := api.PriorityOf(j.Spec.Priority, j.Spec.PriorityClass)
	asks := eachOf(j.Members(), "asks") + " for " + cmp.Or(amounts(j.Spec.Template.Spec.Resources.Requests), "nothing")
	if len(j.Spec.Members) > 0 {
		asks = asksOfSets(j)
	}
	return normal("Created", j.Metadata.CreationTimestamp, "%s; %s at priority %d in queue %s", shape, asks, priority, cmp.Or(j.Spec.Queue, "default"))
}

// asksOfSets says what members that differ ask for.
func asksOfSets(j *api.Job) string {
	var texts []string
	for i, spec := range j.MemberSpecs() {
		n := int(j.Spec.Members[i].Count)
		each := ""
		if n > 1 {
			each = "each "
		}
		texts = append(texts, fmt.Sprintf("%d of %s %swith %s", n, j.Spec.Members[i].Name, each, cmp.Or(amounts(spec.Resources.Requests), "nothing")))
	}
	return "they are " + strings.Join(texts, ", ")
}

// OfUnit returns the events that a change of a unit means for its job. before has no
// Shown for a unit that is new, after for a unit that is gone, which is no event.
func OfUnit(before, after Unit) (all []Happening) {
	if after.Shown == nil {
		return nil
	}
	was := new(api.AllocationStatus)
	if before.Shown != nil {
		was = &before.Shown.Status
	}
	is := &after.Shown.Status
	if was.Phase == api.Terminating && is.Phase == api.Pending {
		all = append(all, after.waitsAgain(conditionOf(is.Conditions, scheduled)))
	}
	if placed := conditionOf(is.Conditions, scheduled); placed.Status == "True" && conditionOf(was.Conditions, scheduled).Status != "True" {
		all = append(all, after.placed(placed.LastTransitionTime))
	}
	all = append(all, held(was.Conditions, is.Conditions, "the agents hold the devices of "+after.name())...)
	all = append(all, warned(was.Conditions, is.Conditions)...)
	for _, h := range idles(was.Conditions, is.Conditions) {
		h.Message = after.name() + ": " + h.Message
		all = append(all, h)
	}
	for _, h := range leaving(was.Conditions, is.Conditions) {
		if h.Reason == "Evicted" {
			h.Message = after.do("are", "is") + strings.TrimPrefix(h.Message, "it is")
			all = append(all, h)
		}
	}
	return all
}

// waitsAgain is the event of a unit that is back at its place in the order.
func (u *Unit) waitsAgain(why api.Condition) Happening {
	if why.Reason == restartBackOff {
		return warning(restartBackOff, why.LastTransitionTime, "%s", why.Message)
	}
	return normal("Requeued", "", "%s again, at the old place in the order", u.do("wait", "waits"))
}

// restartBackOff is the reason of a unit that waits for the retry of its work.
const restartBackOff = "RestartBackOff"

// name names the members of a unit.
func (u *Unit) name() string {
	switch u.Members {
	case 1:
		return fmt.Sprintf("member %d", u.First)
	case 2:
		return fmt.Sprintf("members %d and %d", u.First, u.First+1)
	}
	return fmt.Sprintf("members %d to %d", u.First, u.First+u.Members-1)
}

// do is the members with a verb in the plural or the singular.
func (u *Unit) do(several, one string) string {
	if u.Members == 1 {
		return u.name() + " " + one
	}
	return u.name() + " " + several
}

// eachOf is "each" with a verb, or "it" where there is one alone.
func eachOf(members int, verb string) string {
	if members == 1 {
		return "it " + verb
	}
	return "each " + verb
}

// placed is the event of a unit that has its place.
func (u *Unit) placed(at string) Happening {
	h := normal(scheduled, at, "%s placed: %s", u.do("are", "is"), u.where())
	if u.Members == 1 {
		h = normal(scheduled, at, "%s is placed on node %s", u.name(), u.Shown.Status.NodeName)
	}
	if granted := amounts(u.Shown.Status.AllocatedResources); granted != "" && !u.Differs {
		h.Message += "; " + eachOf(u.Members, "has") + " " + granted
	}
	return h
}

// mostNodes bounds the nodes that a message names.
const mostNodes = 8

// where counts the members by their nodes.
func (u *Unit) where() string {
	on := map[string]int{}
	var names []string
	for _, n := range u.Nodes {
		if on[n]++; on[n] == 1 {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	var parts []string
	for i, n := range names {
		if i == mostNodes {
			parts = append(parts, counted(len(names)-i, "more node"))
			break
		}
		parts = append(parts, fmt.Sprintf("%d on %s", on[n], n))
	}
	return strings.Join(parts, ", ")
}
