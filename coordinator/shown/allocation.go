package shown

import (
	"fmt"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Show shows a member as an allocation.
func (m *Member) Show() *api.Allocation {
	a := &api.Allocation{APIVersion: api.APIVersion, Kind: "Allocation"}
	if m.Job == nil {
		a.Metadata, a.Spec = m.Document.Metadata, m.Document.Spec
		a.Metadata.UID = string(m.Record.UID)
	} else {
		t := &m.Job.Spec.Template
		a.Metadata, a.Spec = t.Metadata, m.specOf()
		if a.Metadata.Labels == nil {
			a.Metadata.Labels = m.Job.Metadata.Labels
		}
		a.Metadata.UID = fmt.Sprintf("%s-%d", m.Record.UID, m.Index)
		a.Status.Job, a.Status.Member = m.Record.Name, m.Record.FirstMember+m.Index
		if a.Spec.Priority == nil {
			a.Spec.Priority = m.Job.Spec.Priority
		}
		if a.Spec.Queue == "" {
			a.Spec.Queue = m.Job.Spec.Queue
		}
		a.Spec.Suspend = m.Job.Spec.Suspend
	}
	a.Spec.Queue = queueOf(a.Spec.Queue, m.Record.Queue)
	a.Metadata.Name, a.Metadata.Namespace = m.MemberName(m.Index), m.Record.Namespace
	a.Metadata.CreationTimestamp = m.Record.Created
	a.Metadata.ResourceVersion = strconv.FormatInt(int64(m.Revision), 10)
	a.Status.Phase = m.endOf(m.Index)
	a.Status.Transaction = m.Record.TxID
	switch {
	case m.Places != nil:
		requested := a.Spec.Resources.Requests
		if m.Alternative > 0 {
			requested = m.Requested
		}
		m.showPlace(&a.Status, requested)
	case m.Phase() == api.Pending:
		m.showWaiting(&a.Status)
	default:
		if a.Status.Phase == m.Phase() { // the reason is that of the members which have failed
			a.Status.Message = m.Record.Reason
		}
		if e, found := m.exitOf(m.Index); found {
			a.Status.NodeID, a.Status.NodeName = e.Node, string(e.Node)
		}
	}
	m.ShowGang(&a.Status)
	if m.Phase() == api.Terminating {
		m.Ending.show(&a.Metadata, &a.Status.Conditions)
	}
	return a
}

// specOf is the specification of a member of a job.
func (m *Member) specOf() api.AllocationSpec {
	index := m.Record.FirstMember + m.Index
	spec := m.Job.SpecOf(index)
	if m.Job.SetOf(index) > 0 {
		if request, status := api.MemberRequest(spec); status == nil { // as at the submission
			m.Request = &request
		}
	}
	return spec
}

// showPlace adds where a placed member is and what it has there. Amounts that are as
// requested are written as in requested.
func (m *Member) showPlace(s *api.AllocationStatus, requested map[resource.Name]string) {
	s.StartTime = m.Record.Started
	if m.Phase() == api.Terminating {
		s.Message = m.Record.Reason
	}
	scheduled := api.Condition{Type: "Scheduled", Status: "True", LastTransitionTime: m.Record.Started}
	s.Conditions = []api.Condition{scheduled, m.showReady()}
	if m.Signaled != 0 {
		s.Conditions = append(s.Conditions, m.showSignaled())
	}
	if m.Idle != 0 && m.Phase() == api.Running {
		s.Conditions = append(s.Conditions, m.showIdle())
	}
	at := m.Places[m.Index]
	if at.Node == "" {
		return
	}
	s.NodeID, s.NodeName = at.Node, string(at.Node)
	if m.Freed {
		return // others may have it
	}
	if m.Lost != nil && m.Lost[m.Index] != nil {
		s.Conditions = append(s.Conditions, showLost(m.Lost[m.Index], at.Node))
	}
	granted := at.Assignment.Vector()
	delete(granted, resource.Pods) // every member has one
	if m.Request.Cores > 0 {       // an assignment lists their threads; a quota is charged one CPU a core
		charged := m.Request.Vector()
		granted[resource.Cores], granted[resource.CPU] = charged[resource.Cores], charged[resource.CPU]
	}
	s.Alternative = m.Alternative
	s.AllocatedResources = api.AmountsAs(granted, requested)
	s.Assignment = m.Host.Assignment(at.Assignment)
}

// showReady is whether every member's agent holds the member. A unit that is
// ending is not ready: nobody should begin to use it.
func (m *Member) showReady() api.Condition {
	switch {
	case m.Phase() == api.Terminating:
		return api.Condition{Type: "Ready", Status: "False", Reason: "Terminating", Message: "the allocation is ending", LastTransitionTime: m.Ending.first()}
	case m.Ready != 0:
		return api.Condition{Type: "Ready", Status: "True", LastTransitionTime: Instant(m.Ready)}
	}
	return api.Condition{Type: "Ready", Status: "False", Reason: "Confirming", Message: "waiting for every member's agent", LastTransitionTime: m.Record.Started}
}

// showSignaled is that the work has got the signal that announces its end.
func (m *Member) showSignaled() api.Condition {
	return api.Condition{
		Type: "Signaled", Status: "True", Reason: "EndIsNear", Message: "the work has got the signal that announces its end", LastTransitionTime: Instant(m.Signaled),
	}
}

// showIdle is that the GPUs of the unit do nothing, by the rule of the namespace.
func (u *Unit) showIdle() api.Condition {
	return api.Condition{
		Type: "Idle", Status: "True", Reason: "GPUsIdle", Message: IdleText("is", u.IdleBelow, u.Idle), LastTransitionTime: Instant(u.Idle),
	}
}

// IdleText says since when GPUs are, or were, used less than a percentage.
func IdleText(verb string, below int32, since int64) string {
	return fmt.Sprintf("the use of its GPUs %s below %d%% since %s", verb, below, Instant(since))
}

// ShowGang adds the condition of a member that runs with fewer members of its group than
// start together. The minimum counts at the start alone, so the member goes on.
func (m *Member) ShowGang(s *api.AllocationStatus) {
	g := m.Record.Gang
	if g == nil || m.Phase() != api.Running || m.Together == 0 || m.Together >= g.MinMembers {
		return
	}
	s.Conditions = append(s.Conditions, api.Condition{
		Type: "GangBelowMinimum", Status: "True", Reason: "MembersGone",
		Message: fmt.Sprintf("%d of %d members of the group run; the others have ended, and this one goes on", m.Together, g.MinMembers),
	})
}

// showWaiting adds the place in the queue and, in one line, why it waits.
func (m *Member) showWaiting(s *api.AllocationStatus) {
	s.QueuePosition = m.Position
	s.Conditions = m.showWaits("Scheduled", "False")
	s.Message = s.Conditions[0].Message
}

// Excludes reports whether two assignments of one host cannot be held together.
// Memory has no identity, so it is not looked at.
func Excludes(a, b resource.Assignment) bool {
	for _, x := range a.GPUs {
		for _, y := range b.GPUs {
			if x.UUID == y.UUID && x.Milli+y.Milli > resource.WholeDevice {
				return true
			}
		}
	}
	for _, x := range a.MIG {
		for _, y := range b.MIG {
			if x.UUID == y.UUID {
				return true
			}
		}
	}
	cpus := map[int]resource.Millicores{}
	for _, x := range a.CPUs {
		cpus[x.ID] = x.Milli
	}
	for _, y := range b.CPUs {
		if had, both := cpus[y.ID]; both && had+y.Milli > resource.WholeCPU {
			return true
		}
	}
	return false
}

// queueOf is the queue to show of work that named a queue, "" for none, and waits in
// another one: its namespace has filled that in. The queue default is not shown
// where none was named.
func queueOf(named, filled string) string {
	if named == "" && filled != "default" {
		return filled
	}
	return named
}
