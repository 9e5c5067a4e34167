package coordinator

import (
	"fmt"
	"strconv"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// allocation shows one member of a unit. The result shares nothing that the
// loop changes.
func (v *view) allocation(u *unit, index int) *api.Allocation {
	a := &api.Allocation{APIVersion: "v1", Kind: "Allocation"}
	if u.job == nil {
		a.Metadata, a.Spec = u.allocation.Metadata, u.allocation.Spec
		a.Metadata.UID = string(u.record.UID)
	} else {
		t := &u.job.doc.Spec.Template
		a.Metadata, a.Spec = t.Metadata, t.Spec
		if a.Metadata.Labels == nil {
			a.Metadata.Labels = u.job.doc.Metadata.Labels
		}
		a.Metadata.UID = fmt.Sprintf("%s-%d", u.record.UID, index)
		a.Status.Job, a.Status.Member = u.record.Name, u.record.FirstMember+index
		if a.Spec.Priority == nil {
			a.Spec.Priority = u.job.doc.Spec.Priority
		}
		if a.Spec.Queue == "" {
			a.Spec.Queue = u.job.doc.Spec.Queue
		}
	}
	a.Metadata.Name, a.Metadata.Namespace = u.memberName(index), u.record.Namespace
	a.Metadata.CreationTimestamp = u.record.Created
	a.Metadata.ResourceVersion = strconv.FormatInt(int64(u.stored), 10)
	a.Status.Phase = u.phase()
	a.Status.Transaction = u.record.TxID
	switch {
	case u.attempt != nil && a.Status.Phase != api.Pending:
		v.showPlace(&a.Status, u, index)
	case u.waiting():
		v.showWaiting(&a.Status, u)
	default:
		a.Status.Message = u.record.Reason
	}
	return a
}

// showPlace adds where a placed member is and what it has there.
func (l *view) showPlace(s *api.AllocationStatus, u *unit, index int) {
	s.StartTime = u.record.Started
	if u.phase() == api.Terminating {
		s.Message = u.record.Reason
	}
	scheduled := api.Condition{Type: "Scheduled", Status: "True", LastTransitionTime: u.record.Started}
	ready := api.Condition{Type: "Ready", Status: "False", Reason: "Confirming", Message: "waiting for every member's agent"}
	switch {
	case u.attempt.held == nil:
		ready = api.Condition{Type: "Ready", Status: "Unknown", Reason: "AskTheLeader", Message: "what agents confirm is told to the leader alone"}
	case len(u.attempt.held) == len(u.attempt.machine.Nodes()):
		ready = api.Condition{Type: "Ready", Status: "True", LastTransitionTime: u.record.Started}
	}
	s.Conditions = []api.Condition{scheduled, ready}
	at := u.placements()[index]
	if at.node == "" {
		return
	}
	s.NodeID, s.NodeName = at.node, string(at.node)
	if u.phase() == api.Terminating && l.freed(u.attempt, at) {
		return // others may have it
	}
	granted := at.assignment.Vector()
	if r := u.demand.Request; r.Cores > 0 { // an assignment lists their threads; a quota is charged one CPU a core
		charged := r.Vector()
		granted[resource.Cores], granted[resource.CPU] = charged[resource.Cores], charged[resource.CPU]
	}
	s.AllocatedResources = api.Amounts(granted)
	s.Assignment = l.nodes[at.node].assignmentStatus(at.assignment)
}

// freed reports whether a member that is ending holds its devices no more: its
// agent has told the leader, or what was committed later has some of them.
func (v *view) freed(a *attempt, at placement) bool {
	if a.machine.FreedBy(at.node) {
		return true
	}
	for tx, h := range v.nodes[at.node].held {
		other := v.attempts[tx]
		if other == nil || other.committed <= a.committed || other.machine.Undecided() {
			continue
		}
		for _, m := range h.members {
			if excludes(at.assignment, m.Assignment) {
				return true
			}
		}
	}
	return false
}

// excludes reports whether two assignments of one host cannot be held together.
// Memory has no identity, so it is not looked at.
func excludes(a, b resource.Assignment) bool {
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

// placement is where a member is and what it has there; the zero value: nowhere.
type placement struct {
	node       resource.NodeID
	assignment resource.Assignment
}

// placements are those of a unit's attempt, by the members' index. They are
// final once the attempt has been committed.
func (u *unit) placements() []placement {
	a := u.attempt
	if a.places != nil {
		return a.places
	}
	places := make([]placement, u.record.Members)
	for _, node := range a.machine.Nodes() {
		v, _ := a.machine.Vote(node)
		for _, m := range v.Members {
			if m.Index < len(places) { // as every record of a leader's
				places[m.Index] = placement{node, m.Assignment}
			}
		}
	}
	if !a.machine.Undecided() {
		a.keepPlaces(places)
	}
	return places
}

// showWaiting adds the place in the queue and, in one line, why it waits.
func (v *view) showWaiting(s *api.AllocationStatus, u *unit) {
	s.QueuePosition = v.queue.Position(u.key)
	reason, message := "Unscheduled", "waiting for the scheduler"
	switch {
	case u.preempting():
		reason, message = "Preempting", u.attempt.awaits()
	case u.short != nil:
		reason, message = "QuotaExceeded", v.reasons(u.short)[0].Detail
	case u.failed > 0:
		reason, message = "WaitingForResources", "no place now; `muster why "+u.record.Name+"` tells what is short"
	}
	s.Message = message
	s.Conditions = []api.Condition{{Type: "Scheduled", Status: "False", Reason: reason, Message: message}}
}

// assignmentStatus shows an assignment in the node's own numbers.
func (n *node) assignmentStatus(a resource.Assignment) *api.AssignmentStatus {
	cpus := a.CPUSet()
	s := &api.AssignmentStatus{CPUs: cpus.String()}
	var touched bitset.Set
	if t := n.host.Topology; t != nil {
		for id := range cpus.All() {
			if c, ok := t.CPU(id); ok && c.NUMA >= 0 {
				touched.Add(c.NUMA)
			}
		}
	} else {
		for id, of := range n.registeredNUMA() {
			if !of.Intersect(cpus).IsEmpty() {
				touched.Add(id)
			}
		}
	}
	for _, m := range a.Memory {
		s.Memory = append(s.Memory, api.MemoryStatus{Node: m.Node, Bytes: resource.FormatBytes(m.Bytes)})
		touched.Add(m.Node)
	}
	for _, g := range a.Hugepages {
		s.Hugepages = append(s.Hugepages, api.HugepageStatus{Node: g.Node, PageSize: resource.FormatBytes(g.Size), Bytes: resource.FormatBytes(g.Bytes)})
		touched.Add(g.Node)
	}
	for _, g := range a.GPUs {
		s.GPUs = append(s.GPUs, api.GPUStatus{Index: g.Index, UUID: g.UUID, Model: n.model(g.Index), Milli: g.Milli})
	}
	for _, g := range a.MIG {
		s.MIG = append(s.MIG, api.MIGStatus{GPU: g.GPU, Instance: g.Instance, UUID: g.UUID, Profile: g.Profile, Model: n.model(g.GPU)})
	}
	s.NUMANodes = touched.Members()
	return s
}

// model returns a device's model: as the agent's stream describes the host, or
// as the node registered while there was no stream yet. It is "" where the node
// does not have the device any more.
func (n *node) model(device int) string {
	if inv := n.host.Inventory; inv != nil {
		if device < len(inv.Devices) {
			return inv.Devices[device].Model
		}
		return ""
	}
	if t := n.spec.Topology; device < len(t.GPUModel) && t.GPUModel[device] < len(t.GPUModels) {
		return t.GPUModels[t.GPUModel[device]]
	}
	return ""
}

// registeredNUMA returns the CPUs of each NUMA node, by its id, as the node
// registered them. A follower has them parsed; a leader parses them here, which
// it needs only until the agent's stream has opened.
func (n *node) registeredNUMA() map[int]bitset.Set {
	if n.stored != nil {
		return n.stored.numa
	}
	var parsed storedNode
	if err := parsed.layOut(string(n.view.ID), n.spec.Topology); err != nil {
		return nil // a follower reports such a key
	}
	return parsed.numa
}

// jobObject shows a job; like allocation, an independent copy.
func (v *view) jobObject(j *job) *api.Job {
	o := &api.Job{APIVersion: "v1", Kind: "Job", Metadata: j.doc.Metadata, Spec: j.doc.Spec}
	o.Metadata.Name, o.Metadata.Namespace = j.record.Name, j.record.Namespace
	o.Metadata.UID, o.Metadata.CreationTimestamp = j.record.UID, j.record.Created
	revision := j.stored
	s := &o.Status
	for _, u := range j.units {
		revision = max(revision, u.stored)
		var places []placement
		if u.attempt != nil && !u.waiting() {
			places = u.placements()
		}
		for i := range u.record.Members {
			m := api.JobMember{Name: u.memberName(i), Phase: u.phase()}
			switch m.Phase {
			case api.Running:
				s.Active++
			case api.Succeeded:
				s.Succeeded++
			case api.Failed:
				s.Failed++
			}
			if places != nil {
				m.Node = string(places[i].node)
			}
			s.Allocations = append(s.Allocations, m)
		}
		if u.record.Started != "" && (s.StartTime == "" || u.record.Started < s.StartTime) {
			s.StartTime = u.record.Started
		}
		if u.waiting() && s.QueuePosition == 0 {
			s.QueuePosition = v.queue.Position(u.key)
		}
	}
	o.Metadata.ResourceVersion = strconv.FormatInt(int64(revision), 10)
	v.showJobPhase(j, s)
	return o
}

// showJobPhase derives the phase: Running as soon as the first unit runs.
func (v *view) showJobPhase(j *job, s *api.JobStatus) {
	switch {
	case api.Phase(j.record.Phase).Ended():
		s.Phase = api.Phase(j.record.Phase)
		s.Message = j.record.Cancelled.Reason
	case j.record.Cancelled != nil:
		s.Phase = api.Cancelling
		s.Message = fmt.Sprintf("Graceful cancellation initiated, %ds grace period", j.record.Cancelled.GraceSeconds)
	case s.Active > 0:
		s.Phase = api.Running
		s.Conditions = []api.Condition{{Type: "Running", Status: "True", LastTransitionTime: s.StartTime}}
	default:
		s.Phase = api.Queued
		condition := api.Condition{
			Type: "Queued", Status: "True", Reason: "WaitingForResources", Message: "no place now; `muster why " + j.record.Name + "` tells what is short",
		}
		if short := j.units[0].short; short != nil {
			condition.Reason, condition.Message = "QuotaExceeded", v.reasons(short)[0].Detail
		}
		s.Message = condition.Message
		s.Conditions = []api.Condition{condition}
	}
}
