package shown

import (
	"cmp"
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

// Types of conditions, some of which are phases or reasons as well.
const (
	violated         = "ProtocolViolation" // it is isolated
	banned           = "Banned"
	quarantined      = "Quarantined" // as agents tell it too
	suspected        = "Suspect"     // failures have opened its breaker
	awaitingApproval = "AwaitingApproval"
	capacityDiffers  = "CapacityDiffers"
	capacityLowered  = "CapacityLowered"
	labelsIgnored    = "LabelsIgnored"
)

// showConditions adds the phase and all conditions. Ready is the first one.
func (n *Node) showConditions(s *api.NodeStatus) {
	if n.Stream == nil {
		n.showKept(s)
	} else {
		n.showStream(s)
		if n.Stream.Suspicion != "" {
			s.Conditions = append(s.Conditions, api.Condition{Type: suspected, Status: "True", Reason: "NotAnsweringReserves", Message: n.Stream.Suspicion})
		}
	}
	n.showAdmission(s)
	n.showDuplicates(s)
	n.showTold(s)
}

// showStream adds whether the node takes new work, as its agent's stream tells.
func (n *Node) showStream(s *api.NodeStatus) {
	ready := api.Condition{Type: "Ready", Status: "True", Reason: "AgentReady"}
	s.Phase = "Ready"
	stream := n.Stream
	switch {
	case n.showDecided(s, &ready):
	case n.Spec.Expected != nil && !n.Spec.HasRegistered():
		unregistered(s, &ready)
	case !stream.Connected && n.Unheard:
		n.leaseExpired(s, &ready)
	case !stream.Connected:
		notReady(s, &ready, "AgentUnreachable", "no stream to the agent")
	case showQuarantine(stream.Quarantine, s, &ready):
	case !n.Registered:
		unregistered(s, &ready)
	case stream.DiskFull:
		notReady(s, &ready, "DiskFull", "the agent's journal or its assignment files have no room (its condition DiskPressure tells which); releases still work")
	case stream.MemoryPressure:
		notReady(s, &ready, "MemoryPressure", "the host is short of memory (its condition MemoryPressure has the numbers); it takes no new work until this ends, and its work runs on")
	case stream.Unread:
		notReady(s, &ready, "RegistrationUnread", "the leader has not read the agent's registration yet")
	case !stream.Unregistered.IsZero():
		notReady(s, &ready, "HostDiffers", Beyond(stream.Unregistered))
	}
	s.Conditions = append([]api.Condition{ready}, s.Conditions...)
}

// showKept adds what the store tells of whether the node takes new work.
func (n *Node) showKept(s *api.NodeStatus) {
	ready := api.Condition{Type: "Ready", Status: "True", Reason: "AgentHeard", Message: "its agent is heard; its devices and its usage are the leader's to show"}
	s.Phase = "Ready"
	switch {
	case n.showDecided(s, &ready):
	case showQuarantine(n.toldQuarantine(), s, &ready):
	case !n.Registered:
		unregistered(s, &ready)
	case n.Unheard:
		n.leaseExpired(s, &ready)
	}
	for _, c := range n.Told {
		if c.Type == "Ready" && c.Status == "False" && s.Phase == "Ready" {
			notReady(s, &ready, cmp.Or(c.Reason, "AgentNotReady"), c.Message)
		}
	}
	s.Conditions = append([]api.Condition{ready}, s.Conditions...)
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

// toldQuarantine is why a node is in quarantine as its agent has told the store,
// "" where it is not.
func (n *Node) toldQuarantine() string {
	for _, c := range n.Told {
		if c.Type == quarantined && c.Status == "True" {
			return c.Message
		}
	}
	return ""
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
			ready := &s.Conditions[0]
			s.Phase, ready.Status, ready.Reason, ready.Message = awaitingApproval, "False", awaitingApproval, AwaitsApproval(n.ID, g)
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
	if keys := n.Spec.IgnoredLabels; len(keys) > 0 {
		s.Conditions = append(s.Conditions, api.Condition{
			Type: labelsIgnored, Status: "True", Reason: "Reserved",
			Message: "the agent registered labels that are reserved, or are none, and that count for nothing: " + strings.Join(keys, ", "),
		})
	}
}

// withheldInWords lists the devices that are withheld, "" where no stream tells.
func (n *Node) withheldInWords() string {
	if n.Stream == nil || n.Stream.Free == nil {
		return ""
	}
	var devices []string
	for at := range n.Inventory.Devices {
		if n.Stream.Withheld&(1<<at) != 0 {
			devices = append(devices, strconv.Itoa(at))
		}
	}
	if len(devices) == 0 {
		return ""
	}
	return "; withheld from new work: GPU " + strings.Join(devices, ", ")
}

// AwaitsApproval says why a node waits for an operator.
func AwaitsApproval(id resource.NodeID, unapproved admission.Growth) string {
	return unapproved.Message + "; the node takes no new work until an operator approves it: muster node approve " + string(id)
}

// Beyond says why a node waits for its agent to register.
func Beyond(unregistered admission.Growth) string {
	return "the agent's stream offers more than the agent has registered: " + unregistered.Message + "; the node takes no new work until the agent registers that"
}

// showTold adds an agent's own conditions. Ready is the coordinator's to say,
// and so is what it has said already: it may have heard of that since. Of an
// agent that nobody hears nothing is known any more.
func (n *Node) showTold(s *api.NodeStatus) {
	for _, c := range n.Told {
		said := slices.ContainsFunc(s.Conditions, func(o api.Condition) bool { return o.Type == c.Type })
		ended := n.Stream != nil && n.Stream.Connected && n.Stream.Quarantine == "" && c.Type == quarantined && c.Status == "True"
		if said || ended || c.Type == "Ready" || c.Type == awaitingApproval || c.Type == labelsIgnored || c.Type == capacityDiffers || c.Type == capacityLowered {
			continue
		}
		o := api.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransition}
		if n.Unheard {
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
