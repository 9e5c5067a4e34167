package work

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/idle"
	"github.com/musterd/muster/coordinator/lead/breaker"
	"github.com/musterd/muster/coordinator/lead/measured"
	"github.com/musterd/muster/coordinator/lead/vacancy"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Mates returns the attempts that start together, this attempt among them.
func (a *Attempt) Mates() []*Attempt {
	if a.Company == nil {
		return []*Attempt{a}
	}
	return a.Company.Attempts
}

// Displaced returns the attempts to end for this attempt, or for a mate.
func (a *Attempt) Displaced() []*Attempt { return a.Mates()[0].Victims }

// IsPreempting reports whether others make room for the attempt.
func (a *Attempt) IsPreempting() bool { return len(a.Displaced()) > 0 }

// MayCommit reports whether the attempt goes on to hold a place, or holds a place without a
// notice. The answer is false while the commit is on the way to the store.
func (a *Attempt) MayCommit() bool {
	switch a.Machine.State() {
	case txn.Reserving, txn.Displacing, txn.Committed:
		return true
	}
	return false
}

// VictimPaths returns the paths of the victims' units, ascending.
func (a *Attempt) VictimPaths() []string {
	paths := make([]string, len(a.Victims))
	for i, v := range a.Victims {
		paths[i] = v.Unit.Path
	}
	slices.Sort(paths)
	return paths
}

// Nomination describes the work leaving to make room for the attempt.
func (a *Attempt) Nomination() *shown.Nomination {
	n := &shown.Nomination{Noticed: a.Noticed, Units: len(a.Displaced())}
	for _, v := range a.Displaced() {
		n.GPUs += v.Unit.GPUs()
		if !v.Machine.Freed() {
			n.Leaving++
		}
	}
	return n
}

// Exits are the ends of the members' work, ascending.
func (a *Attempt) Exits() []record.Exit {
	nodes := map[int]resource.NodeID{}
	for _, id := range a.Machine.Nodes() {
		vote, _ := a.Machine.Vote(id)
		for _, m := range vote.Members {
			nodes[m.Index] = id
		}
	}
	var list []record.Exit
	for _, member := range slices.Sorted(maps.Keys(a.Work)) {
		if s := a.Work[member]; s.Phase == grant.WorkEnded {
			list = append(list, record.Exit{Member: member, Node: nodes[member], Code: s.Code, Signal: s.Signal, Reason: cmp.Or(s.Reason, "Unknown"), Message: s.Message, Use: measured.UseOf(s.Use)})
		}
	}
	if elsewhere := a.exitsElsewhere(); len(elsewhere) > 0 {
		list = append(list, elsewhere...)
		slices.SortFunc(list, func(a, b record.Exit) int { return cmp.Compare(a.Member, b.Member) })
	}
	measured.FoldDevices(list)
	return list
}

// SetWork notes the state of the work of a member.
func (a *Attempt) SetWork(s grant.WorkState) {
	if a.Work == nil {
		a.Work = map[int]grant.WorkState{}
	}
	a.Work[s.Member] = s
}

// SetOutcome notes the outcome of the work as the reason for the attempt's end.
func (a *Attempt) SetOutcome(o *record.Outcome) { a.Outcome = o }

// RestoreOutcome takes over the outcome from a record.
func (a *Attempt) RestoreOutcome(o *record.Outcome) {
	if o == nil {
		return
	}
	a.Outcome = &record.Outcome{Phase: o.Phase, Message: o.Message, End: o.EndedBy(), Retry: o.Retry}
	for _, e := range o.Exits {
		if e.Tx != "" {
			a.KeepExit(e)
			continue
		}
		a.SetWork(grant.WorkState{Member: e.Member, Phase: grant.WorkEnded, Code: e.Code, Signal: e.Signal, Reason: e.Reason, Message: e.Message, Use: measured.UseFrom(e.Use)})
	}
}

// OutcomeNow returns the outcome to write, with the exits known by now.
func (a *Attempt) OutcomeNow() *record.Outcome {
	if a.Outcome == nil {
		return nil
	}
	o := *a.Outcome
	o.Exits = a.Exits()
	return &o
}

// SetReady takes over the written key.
func (a *Attempt) SetReady(k vacancy.Key) { a.Ready = k }

// TakeUse judges the use of the members' devices.
func (a *Attempt) TakeUse(counters []idle.Counter, r idle.Rule) idle.Use {
	return a.GPUs.Take(counters, r)
}

// NoteJudgedIdle notes a look at the use of the members' devices.
func (a *Attempt) NoteJudgedIdle(now time.Time) { a.judgedIdle = now }

// RecordMissingVotes notes the nodes without a vote at the end of the budget.
func (a *Attempt) RecordMissingVotes() {
	if !a.Machine.Undecided() || a.IsPreempting() {
		return
	}
	for _, id := range a.Machine.Nodes() {
		if _, answered := a.Machine.Answer(id); !answered {
			a.Fail(id, breaker.Silent)
		}
	}
}

// JoinReasons joins reasons, and more where not empty, into a line.
func JoinReasons(reasons []resource.Reason, more string) string {
	parts := make([]string, 0, len(reasons)+1)
	for _, r := range reasons {
		parts = append(parts, r.String())
	}
	if more != "" {
		parts = append(parts, more)
	}
	return strings.Join(parts, "; ")
}

// CountsOn counts the members on each of the nodes, nil where each node has a single member.
func (a *Attempt) CountsOn(nodes []resource.NodeID) []int32 {
	if a.Unit.Record.Held() == len(nodes) {
		return nil
	}
	counts := make([]int32, len(nodes))
	for i, id := range nodes {
		vote, _ := a.Machine.Vote(id)
		counts[i] = int32(max(1, len(vote.Members), len(a.Requests[id])))
	}
	return counts
}

// RequestOf is the request for a member of a plan. The request names the very devices of the
// plan in a preemption, and where the charge depends on the devices.
func (a *Attempt) RequestOf(m place.Choice) grant.MemberRequest {
	request := grant.MemberRequest{Index: m.Index, Request: *a.Unit.Demand.RequestOf(m.Index)}
	if a.IsPreempting() || request.Request.TakesAnyModel() && place.IsMixed(m.Node) {
		request.PinnedGPUs = DevicesOf(m.Assignment)
	}
	return request
}

// SetLoss notes the loss whose Txn is under way, nil for none.
func (a *Attempt) SetLoss(x *MemberLoss) { a.Loss = x }

// DropMembers forgets the members of a loss.
func (a *Attempt) DropMembers(x *MemberLoss) {
	a.LostMembers = append(slices.Clip(a.LostMembers), x.Members...)
	delete(a.Held, x.Node)
	delete(a.AssumedFreed, x.Node)
	for _, m := range x.Members {
		delete(a.Work, m.Member)
	}
	a.keepPlaces(nil)
}

// KeepExit keeps the end of a member in another transaction.
func (a *Attempt) KeepExit(e record.Exit) {
	if a.elsewhere == nil {
		a.elsewhere = map[int]record.Exit{}
	}
	a.elsewhere[e.Member] = e
}

// noticeOf is the instant of the victims' notice: a single Txn makes all of them EVICTING.
func noticeOf(victims []*Attempt) time.Time {
	for _, v := range victims {
		if !v.Noticed.IsZero() {
			return v.Noticed
		}
	}
	return time.Time{}
}

// DevicesOf lists the devices behind an assignment, ascending.
func DevicesOf(a resource.Assignment) []int {
	var list []int
	for _, g := range a.GPUs {
		list = append(list, g.Index)
	}
	for _, g := range a.MIG {
		list = append(list, g.GPU)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// LeavesEvicted reports whether a durable eviction without a preemptor ends the attempt, and
// the owner has not asked for the end of the unit: the unit waits again, or stays visible.
func (a *Attempt) LeavesEvicted() bool {
	return a.Notice != nil && a.Machine.By() == "" && !a.Unit.Life.EndAsked()
}
