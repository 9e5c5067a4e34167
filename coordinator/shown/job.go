package shown

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Job is a job with its units, in their order.
type Job struct {
	Record   *record.Job
	Revision resource.Revision // of the job's key
	Document *api.Job          // as it was submitted
	Units    []Unit
	// Position is the place in the queue of the first unit that is there, 0 for
	// none.
	Position int
	// Settled says that nobody waits for anything else of the first unit.
	Settled bool
	// UseOf returns the last use of a member that runs as its node has reported it, nil
	// where there is none; a job without the function shows none.
	UseOf func(node resource.NodeID, tx resource.TxID, member int) *record.Use
}

// Show shows a job.
func (j *Job) Show() *api.Job {
	o := &api.Job{APIVersion: api.APIVersion, Kind: "Job", Metadata: j.Document.Metadata, Spec: j.Document.Spec}
	o.Metadata.Name, o.Metadata.Namespace = j.Record.Name, j.Record.Namespace
	o.Metadata.UID, o.Metadata.CreationTimestamp = j.Record.UID, j.Record.Created
	if len(j.Units) > 0 {
		o.Spec.Queue = queueOf(o.Spec.Queue, j.Units[0].Record.Queue)
	}
	revision, members := j.Revision, 0
	for i := range j.Units {
		revision = max(revision, j.Units[i].Revision)
		members += j.Units[i].Record.Held()
	}
	s := &o.Status
	if members > 0 {
		s.Allocations = make([]api.JobMember, 0, members)
	}
	for i := range j.Units {
		j.Units[i].showIn(s)
	}
	j.orderMembers(s)
	s.QueuePosition, s.Dependencies = j.Position, j.showDependencies()
	if b := j.Record.Boost; b != nil && !api.Phase(j.Record.Phase).Ended() {
		s.Boost = &api.JobBoost{Priority: b.Priority, Expires: Instant(b.UntilMillis), Reason: b.Reason, ApprovedBy: b.ApprovedBy}
	}
	if c := j.Record.Cancelled; c != nil && c.Remove {
		e := Ending{Asked: &End{Millis: c.AskedMillis, GraceSeconds: c.GraceSeconds, Reason: c.Reason}}
		e.showDeletion(&o.Metadata)
	}
	o.Metadata.ResourceVersion = strconv.FormatInt(int64(revision), 10)
	j.showPhase(s)
	j.showBelow(s)
	j.showLostIn(s)
	j.showIdle(s)
	j.ShowUses(s)
	return o
}

// showBelow adds the condition of a gang that runs without members which it has lost, as
// long as one of them has no place.
func (j *Job) showBelow(s *api.JobStatus) {
	if len(j.Units) == 0 || j.Units[0].Phase() != api.Running {
		return
	}
	gang, wait := j.Units[0].Record, 0
	for i := range j.Units {
		if u := j.Units[i].Record; u.Replaces && j.Units[i].Phase() != api.Running {
			wait++
		}
	}
	if wait > 0 {
		s.Conditions = append(s.Conditions, api.Condition{
			Type: "GangBelowMinimum", Status: "True", Reason: "MembersLost",
			Message: fmt.Sprintf("%d of %d members of the gang run; the nodes of the others are lost, and they wait for another place", gang.Members-wait, gang.Members),
		})
	}
}

// showIdle adds the condition of a job whose units that run are all idle.
func (j *Job) showIdle(s *api.JobStatus) {
	var latest *Unit
	for i := range j.Units {
		switch u := &j.Units[i]; {
		case u.Phase() != api.Running:
		case u.Idle == 0:
			return
		case latest == nil || latest.Idle < u.Idle:
			latest = u
		}
	}
	if latest != nil {
		s.Conditions = append(s.Conditions, latest.showIdle())
	}
}

// orderMembers puts the members that replace others into their places, and leaves each
// member out whose replacement has its name.
func (j *Job) orderMembers(s *api.JobStatus) {
	at := slices.IndexFunc(j.Units, func(u Unit) bool { return u.Record.Replaces })
	if at < 0 {
		return
	}
	own := len(s.Allocations) - (len(j.Units) - at) // a replacement has one member
	for _, m := range s.Allocations[own:] {
		i := slices.IndexFunc(s.Allocations, func(o api.JobMember) bool { return o.Name == m.Name })
		if i < own {
			s.Allocations[i] = m
			continue
		}
		i = slices.IndexFunc(s.Allocations[:own], func(o api.JobMember) bool {
			return len(o.Name) > len(m.Name) || len(o.Name) == len(m.Name) && o.Name > m.Name
		})
		if i < 0 {
			i = own
		}
		s.Allocations = slices.Insert(slices.Delete(s.Allocations, own, own+1), i, m)
		own++
	}
	s.Allocations = s.Allocations[:own]
}

// showDependencies shows how far the dependencies of the job are.
func (j *Job) showDependencies() []api.JobDependencyStatus {
	var list []api.JobDependencyStatus
	for i, d := range j.Document.Spec.Dependencies {
		state := api.DependencyWaits
		switch {
		case slices.Contains(j.Record.Met, i):
			state = api.DependencySatisfied
		case api.Phase(j.Record.Phase).Ended():
			state = api.DependencyUnsatisfied
		}
		list = append(list, api.JobDependencyStatus{Type: d.Type, Job: d.Job, State: state})
	}
	return list
}

// showIn adds a unit's members to its job's status.
func (u *Unit) showIn(s *api.JobStatus) {
	phase := u.Phase()
	for i := range u.Record.Members {
		if u.Record.HasLost(i) {
			continue // the unit that replaces it shows it
		}
		m := api.JobMember{Name: u.MemberName(i), Phase: u.endOf(i)}
		switch m.Phase {
		case api.Running:
			s.Active++
		case api.Succeeded:
			s.Succeeded++
		case api.Failed:
			s.Failed++
		}
		if u.Places != nil {
			m.Node = string(u.Places[i].Node)
		}
		u.showExit(i, &m)
		s.Allocations = append(s.Allocations, m)
	}
	s.Retries += u.Record.Retries
	if w := u.Waiting; w != nil && w.Code == restarting && phase == api.Pending {
		if next := Instant(w.NextMillis); s.NextRetryTime == "" || next < s.NextRetryTime {
			s.NextRetryTime = next
		}
	}
	if started := u.Record.Started; started != "" && (s.StartTime == "" || started < s.StartTime) {
		s.StartTime = started
	}
}

// endOf is the phase of a member: that of its unit. In a unit that has ended with its work,
// a member whose command has succeeded before another failed has succeeded.
func (u *Unit) endOf(member int) api.Phase {
	phase := u.Phase()
	if phase != api.Succeeded && phase != api.Failed {
		return phase
	}
	if e, found := u.exitOf(member); found && e.Reason == "Completed" && e.Code == 0 && e.Signal == 0 {
		return api.Succeeded
	}
	return phase
}

// exitOf is how the work of a member has ended; not found where nothing was started. A
// unit that waits or runs again keeps the ends of its last start, which are not those of
// its work.
func (u *Unit) exitOf(member int) (record.Exit, bool) {
	if !u.Phase().Ended() {
		return record.Exit{}, false
	}
	at, found := slices.BinarySearchFunc(u.Record.Exits, member, func(e record.Exit, member int) int { return cmp.Compare(e.Member, member) })
	if !found {
		return record.Exit{}, false
	}
	return u.Record.Exits[at], true
}

// showExit adds how a member's work has ended.
func (u *Unit) showExit(member int, m *api.JobMember) {
	e, found := u.exitOf(member)
	if !found {
		return
	}
	code := int32(e.Code)
	m.Node, m.ExitCode, m.ExitReason, m.ExitMessage = string(e.Node), &code, e.Reason, e.Message
	m.Use = Use(e.Use)
}

// ShowUses adds the use of the members that run, by UseOf, to a status of the job that
// Show has made. Show does that itself.
func (j *Job) ShowUses(s *api.JobStatus) {
	if j.UseOf == nil {
		return
	}
	at := make(map[string]*api.JobMember, len(s.Allocations))
	for i := range s.Allocations {
		at[s.Allocations[i].Name] = &s.Allocations[i]
	}
	for i := range j.Units {
		u := &j.Units[i]
		for member := range u.Places {
			m := at[u.MemberName(member)]
			if m != nil && m.Use == nil && u.Record.TxID != "" && !u.Record.HasLost(member) {
				m.Use = Use(j.UseOf(u.Places[member].Node, u.Record.TxID, member))
			}
		}
	}
}

// Use shows the measured use of a member.
func Use(u *record.Use) *api.MemberUse {
	if u == nil {
		return nil
	}
	o := &api.MemberUse{CPUMillis: u.CPUMillis, MemoryBytes: int64(u.Memory), PeakMemoryBytes: int64(u.PeakMemory), OOMKills: u.OOMKills}
	for _, d := range u.Devices {
		o.Devices = append(o.Devices, api.MemberDeviceUse{UUID: d.UUID, BusyMillis: d.BusyMillis, MemoryBytes: int64(d.Memory), PeakMemoryBytes: int64(d.PeakMemory)})
	}
	return o
}

// showPhase derives the phase: Running as soon as the first unit runs.
func (j *Job) showPhase(s *api.JobStatus) {
	switch {
	case api.Phase(j.Record.Phase).Ended():
		s.Phase = api.Phase(j.Record.Phase)
		if s.Message = j.Record.Message; j.Record.Cancelled != nil && s.Phase == api.Cancelled {
			s.Message = j.Record.Cancelled.Reason
		}
		s.Conditions = j.showEnd(s.Phase)
	case j.Record.Cancelled != nil:
		s.Phase = api.Cancelling
		s.Message = fmt.Sprintf("Graceful cancellation initiated, %ds grace period", j.Record.Cancelled.GraceSeconds)
	case s.Active > 0:
		s.Phase = api.Running
		s.Conditions = []api.Condition{{Type: "Running", Status: "True", LastTransitionTime: s.StartTime}}
	default:
		s.Phase, s.Conditions = api.Queued, j.waits()
		s.Message = s.Conditions[0].Message
	}
}

// waits returns the reason why a job waits: that of its first unit that waits. Units
// before it may have ended.
func (j *Job) waits() []api.Condition {
	for i := range j.Units {
		if u := &j.Units[i]; u.Phase() == api.Pending {
			return u.showWaits("Queued", "True")
		}
	}
	if j.Document.IsSuspended() { // its units are stopping
		w := Suspended(record.JobUnit, j.Record.Namespace, j.Record.Name, j.Record.Suspended)
		return []api.Condition{{Type: "Queued", Status: "True", Reason: w.Code, Message: w.Message}}
	}
	w := NoPlace(j.Record.Namespace, j.Record.Name)
	return []api.Condition{{Type: "Queued", Status: "True", Reason: w.Code, Message: w.Message}}
}

// showEnd is the condition of a job that its work has ended, as Kubernetes has it.
func (j *Job) showEnd(phase api.Phase) []api.Condition {
	kind := map[api.Phase]string{api.Succeeded: "Complete", api.Failed: "Failed"}[phase]
	if kind == "" {
		return nil
	}
	return []api.Condition{{Type: kind, Status: "True", Reason: j.Record.Reason, Message: j.Record.Message, LastTransitionTime: j.Record.Ended}}
}
