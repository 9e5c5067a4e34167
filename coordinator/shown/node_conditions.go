package shown

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// NewIncarnation is the reason of a node whose agent has registered as another
// incarnation than the leader has observed.
const NewIncarnation = "NewIncarnation"

// Types of conditions, some of which are phases or reasons as well.
const (
	violated         = "ProtocolViolation" // it is isolated
	banned           = "Banned"
	quarantined      = "Quarantined" // as agents tell it too
	suspected        = "Suspect"     // failures have opened its breaker
	awaitingApproval = "AwaitingApproval"
	capacityDiffers  = "CapacityDiffers"
	resourceConflict = "ResourceConflict"
	capacityLowered  = "CapacityLowered"
	labelsIgnored    = "LabelsIgnored"
)

// showConditions adds the phase and all conditions. Ready is the first one.
func (n *Node) showConditions(s *api.NodeStatus) {
	n.showReady(s)
	if o := n.Observed; o != nil && o.Suspicion != "" {
		s.Conditions = append(s.Conditions, api.Condition{Type: suspected, Status: "True", Reason: "NotAnsweringReserves", Message: o.Suspicion})
	}
	n.showAdmission(s)
	n.showDuplicates(s)
	n.showTold(s)
}

// showReady adds whether the node takes new work.
func (n *Node) showReady(s *api.NodeStatus) {
	ready := api.Condition{Type: "Ready", Status: "True", Reason: "AgentReady"}
	s.Phase = "Ready"
	switch o := n.Observed; {
	case n.showDecided(s, &ready):
	case n.Spec.Expected != nil && !n.Spec.HasRegistered():
		unregistered(s, &ready)
	case o == nil:
		n.showUnobserved(s, &ready)
	case !o.Connected && o.Unheard:
		n.leaseExpired(s, &ready)
	case !o.Connected:
		notReady(s, &ready, "AgentUnreachable", "the leader has no stream to the agent")
	case n.isOutdated():
		notReady(s, &ready, NewIncarnation, fmt.Sprintf("the agent has registered as %s, and the leader has written only of %s yet: it writes of the new one within seconds", n.Incarnation, o.Incarnation))
		ready.Status = "Unknown"
	case showQuarantine(o.Quarantine, s, &ready):
	case !n.Registered, o.Unregistered:
		unregistered(s, &ready)
	case o.DiskFull:
		notReady(s, &ready, "DiskFull", "the agent's journal or its assignment files have no room (its condition DiskPressure tells which); releases still work")
	case o.MemoryPressure:
		notReady(s, &ready, "MemoryPressure", "the host is short of memory (its condition MemoryPressure has the numbers); it takes no new work until this ends, and its work runs on")
	case o.Growth != "":
		notReady(s, &ready, "HostDiffers", Beyond(o.Growth))
	}
	s.Conditions = append([]api.Condition{ready}, s.Conditions...)
}

// isOutdated reports whether the agent has registered as another incarnation since the
// leader's observation. An agent on a stream that has yet to register is newer than its
// registration.
func (n *Node) isOutdated() bool {
	o := n.Observed
	return n.Registered && !o.Unregistered && o.Quarantine == "" && !o.Incarnation.IsZero() && o.Incarnation != n.Incarnation
}

// showUnobserved shows a node of which the leader has written nothing yet.
func (n *Node) showUnobserved(s *api.NodeStatus, ready *api.Condition) {
	if !n.Registered {
		unregistered(s, ready)
		return
	}
	notReady(s, ready, "NotObserved", "the leader has written nothing about the node yet: it does so once it is connected to the agent, or some seconds after its election")
	if n.Unreadable != "" {
		ready.Message = "the leader's observation cannot be read (" + n.Unreadable + "); the leader writes it anew"
	}
	ready.Status = "Unknown"
}

// showDecided adds what was decided against a node, by people or for a breach of
// the protocol, and reports whether anything was.
func (n *Node) showDecided(s *api.NodeStatus, ready *api.Condition) bool {
	return n.showBan(s, ready) || n.showFence(s, ready) || n.showViolation(s, ready)
}

func notReady(s *api.NodeStatus, ready *api.Condition, reason, message string) {
	s.Phase, ready.Status, ready.Reason, ready.Message = "NotReady", "False", reason, message
}

func unregistered(s *api.NodeStatus, ready *api.Condition) {
	s.Phase, ready.Status, ready.Reason, ready.Message = "Unregistered", "False", "Unregistered", "the agent has not registered yet"
}

// showBan adds a ban that stands, and reports whether one does.
func (n *Node) showBan(s *api.NodeStatus, ready *api.Condition) bool {
	if n.Ban == nil {
		return false
	}
	text := "an administrator (" + n.Ban.By + ") banned it"
	if n.Ban.Reason != "" {
		text += ": " + n.Ban.Reason
	}
	s.Phase, ready.Status, ready.Reason = banned, "False", banned
	ready.Message = text + "; what runs there counts as running until `muster fence " + string(n.ID) + " --confirm-dead`"
	s.Conditions = append(s.Conditions, api.Condition{Type: banned, Status: "True", Reason: "ByAdministrator", Message: text, LastTransitionTime: n.Ban.At})
	return true
}

// showFence adds a fence that stands, and reports whether one does.
func (n *Node) showFence(s *api.NodeStatus, ready *api.Condition) bool {
	if n.Fence == nil {
		return false
	}
	s.Phase, ready.Status, ready.Reason = "Fenced", "False", "Fenced"
	ready.Message = n.Fence.Sentence(n.ID) + "; it ends when the agent registers again"
	if n.Fence.Dead {
		ready.Reason = "ConfirmedDead"
	} else {
		ready.Message += n.Fence.outlook()
	}
	return true
}

// Sentence says of a node that it is fenced, in plain words.
func (f *Fence) Sentence(id resource.NodeID) string {
	text := fmt.Sprintf("node %s is fenced", id)
	if f.Dead {
		text = fmt.Sprintf("node %s is confirmed dead", id)
	}
	if f.Reason != "" {
		text += " (" + f.Reason + ")"
	}
	return text
}

// outlook says when a fenced node counts as dead, "" if never by itself. A new
// leader counts anew, so it may be later.
func (f *Fence) outlook() string {
	if f.Assume == 0 {
		return ""
	}
	when := fmt.Sprintf("%s after the leader has known of it", f.DeadAfter)
	if at, err := time.Parse(time.RFC3339, f.At); err == nil {
		when = "not before " + at.Add(f.DeadAfter).Format(time.RFC3339)
	}
	return fmt.Sprintf("; by its assume-dead policy (%s) it counts as dead %s", f.Assume, when)
}

// showViolation adds an isolation, and reports whether there is one.
func (n *Node) showViolation(s *api.NodeStatus, ready *api.Condition) bool {
	v := n.Violation
	if v == nil {
		return false
	}
	s.Phase, ready.Status, ready.Reason = violated, "False", violated
	ready.Message = fmt.Sprintf("its agent broke the protocol (%s); `muster uncordon %s` lets it back", v.Reason, n.ID)
	s.Conditions = append(s.Conditions, api.Condition{Type: violated, Status: "True", Reason: v.Reason, Message: v.Detail, LastTransitionTime: v.At})
	return true
}

// showQuarantine adds a quarantine, and reports whether there is one.
func showQuarantine(why string, s *api.NodeStatus, ready *api.Condition) bool {
	if why == "" {
		return false
	}
	s.Phase, ready.Status, ready.Reason, ready.Message = quarantined, "False", quarantined, why
	s.Conditions = append(s.Conditions, api.Condition{Type: quarantined, Status: "True", Reason: "StoreWentBack", Message: why})
	return true
}

// leaseExpired shows a node that no coordinator hears. Nothing is released.
func (n *Node) leaseExpired(s *api.NodeStatus, ready *api.Condition) {
	s.Phase, ready.Status, ready.Reason = "NotReady", "Unknown", "LeaseExpired"
	ready.Message = "no coordinator has heard the agent within its lease; what runs there stays"
	if after := n.Labels[api.AssumeDeadLabel]; after != "" {
		ready.Message = "no coordinator has heard the agent within its lease; its assume-dead policy (" + after + ") is on: it is being fenced"
	}
}

// showAdmission adds the conditions about capacity that waits and labels that are
// ignored.
func (n *Node) showAdmission(s *api.NodeStatus) {
	s.OperatorLabels = maps.Clone(n.Spec.OperatorLabels)
	if g := n.Unapproved; !g.IsZero() {
		if s.Phase == "Ready" {
			ready, foreign := &s.Conditions[0], admission.IsForeign(*n.Spec)
			s.Phase, ready.Reason, ready.Message = awaitingApproval, awaitingApproval, AwaitsApproval(n.ID, g, foreign)
			if foreign {
				ready.Status = "False"
			}
		}
		s.Conditions = append(s.Conditions, api.Condition{Type: awaitingApproval, Status: "True", Reason: g.Reason, Message: g.Message})
	}
	if text := admission.Differences(*n.Spec); text != "" {
		s.Conditions = append(s.Conditions, api.Condition{
			Type: capacityDiffers, Status: "True", Reason: "NotAsExpected", Message: "the host is not as its creation expects: " + text,
		})
	}
	if text := admission.Lowering(*n.Spec); text != "" {
		s.Conditions = append(s.Conditions, api.Condition{
			Type: capacityLowered, Status: "True", Reason: "ByOperator", Message: "an operator has lowered the allocatable part: " + text + n.withheldInWords(),
		})
	}
	if n.Observed != nil && len(n.Observed.Conflicts) > 0 {
		var details []string
		for _, c := range n.Observed.Conflicts {
			details = append(details, c.Detail)
		}
		s.Conditions = append(s.Conditions, api.Condition{
			Type: resourceConflict, Status: "True", Reason: "DeclaredOtherwise", Message: "amounts that are not handed out: " + strings.Join(details, "; "),
		})
	}
	if keys := n.Spec.IgnoredLabels; len(keys) > 0 {
		s.Conditions = append(s.Conditions, api.Condition{
			Type: labelsIgnored, Status: "True", Reason: "Reserved",
			Message: "the agent registered labels that are reserved, or are none, and that count for nothing: " + strings.Join(keys, ", "),
		})
	}
}

// withheldInWords lists the devices that are withheld, "" where none was observed.
func (n *Node) withheldInWords() string {
	if n.Observed == nil || len(n.Observed.Withheld) == 0 {
		return ""
	}
	var devices []string
	for _, at := range n.Observed.Withheld {
		devices = append(devices, strconv.Itoa(at))
	}
	return "; withheld from new work: GPU " + strings.Join(devices, ", ")
}

// AwaitsApproval says why a node waits for an operator; foreign is admission.IsForeign.
func AwaitsApproval(id resource.NodeID, unapproved admission.Growth, foreign bool) string {
	gives := "the node gives the approved part, and the rest once an operator approves it"
	if foreign {
		gives = "none of its devices is of an approved model, so the node takes no new work until an operator approves it"
	}
	return unapproved.Message + "; " + gives + ": muster node approve " + string(id)
}

// Beyond says why a node waits for its agent to register.
func Beyond(unregistered string) string {
	return "the agent's stream offers more than the agent has registered: " + unregistered + "; the node takes no new work until the agent registers that"
}

// showTold adds an agent's own conditions. Ready is the coordinator's to say,
// and so is what it has said already: it may have heard of that since. Of an
// agent that nobody hears nothing is known any more.
func (n *Node) showTold(s *api.NodeStatus) {
	over := n.Observed != nil && n.Observed.Connected && n.Observed.Quarantine == ""
	for _, c := range n.Told.Conditions {
		said := slices.ContainsFunc(s.Conditions, func(o api.Condition) bool { return o.Type == c.Type })
		ended := over && c.Type == quarantined && c.Status == "True"
		if said || ended || c.Type == "Ready" || c.Type == awaitingApproval || c.Type == labelsIgnored || c.Type == capacityDiffers || c.Type == capacityLowered || c.Type == resourceConflict {
			continue
		}
		o := api.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransition}
		if n.Observed != nil && n.Observed.Unheard {
			o.Status, o.Message = "Unknown", lastTold(c)
		}
		s.Conditions = append(s.Conditions, o)
	}
}

func lastTold(c record.Condition) string {
	if c.Message == "" {
		return "it was " + c.Status + " when the agent was last heard"
	}
	return "it was " + c.Status + " when the agent was last heard: " + c.Message
}

// Outdated is the reason for the quarantine of a node before the agent has accepted the
// last restoration of the store, or "".
func Outdated(is bool) string {
	if !is {
		return ""
	}
	return "the node registered last before the store was restored from a backup; " +
		"what runs goes on, nothing new is placed there until `muster reconcile` adopts or releases what it holds"
}
