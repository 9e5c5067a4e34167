package lead

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/idle"
	"github.com/musterd/muster/coordinator/lead/breaker"
	"github.com/musterd/muster/coordinator/lead/vacancy"

	"github.com/musterd/muster/coordinator/lead/measured"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// mates are the attempts that start together with this one, which is among them.
func (a *attempt) mates() []*attempt {
	if a.company == nil {
		return []*attempt{a}
	}
	return a.company.attempts
}

// displaced are the attempts that end for this one, or for one that starts with it.
func (a *attempt) displaced() []*attempt { return a.mates()[0].victims }

// isPreempting reports whether others make room for the attempt.
func (a *attempt) isPreempting() bool { return len(a.displaced()) > 0 }

// mayCommit reports whether an attempt goes on to hold a place, or holds one without
// a notice. An attempt whose commit is on its way to the store is not among them.
func (a *attempt) mayCommit() bool {
	switch a.machine.State() {
	case txn.Reserving, txn.Displacing, txn.Committed:
		return true
	}
	return false
}

func (a *attempt) victimPaths() []string {
	paths := make([]string, len(a.victims))
	for i, v := range a.victims {
		paths[i] = v.unit.path
	}
	slices.Sort(paths)
	return paths
}

// nomination is the work that makes room for an attempt.
func (a *attempt) nomination() *shown.Nomination {
	n := &shown.Nomination{Noticed: a.noticed, Units: len(a.displaced())}
	for _, v := range a.displaced() {
		n.GPUs += v.unit.gpus()
		if !v.machine.Freed() {
			n.Leaving++
		}
	}
	return n
}

// exits are the ends of the members' work, ascending.
func (a *attempt) exits() []record.Exit {
	nodes := map[int]resource.NodeID{}
	for _, id := range a.machine.Nodes() {
		vote, _ := a.machine.Vote(id)
		for _, m := range vote.Members {
			nodes[m.Index] = id
		}
	}
	var list []record.Exit
	for _, member := range slices.Sorted(maps.Keys(a.work)) {
		if s := a.work[member]; s.Phase == grant.WorkEnded {
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

// setWork notes the state of one member's work.
func (a *attempt) setWork(s grant.WorkState) {
	if a.work == nil {
		a.work = map[int]grant.WorkState{}
	}
	a.work[s.Member] = s
}

// setOutcome notes that the work is why the attempt ends.
func (a *attempt) setOutcome(o *record.Outcome) { a.outcome = o }

// restoreOutcome takes over the outcome that a record has.
func (a *attempt) restoreOutcome(o *record.Outcome) {
	if o == nil {
		return
	}
	a.outcome = &record.Outcome{Phase: o.Phase, Message: o.Message, End: o.EndedBy(), Retry: o.Retry}
	for _, e := range o.Exits {
		if e.Tx != "" {
			a.keepExit(e)
			continue
		}
		a.setWork(grant.WorkState{Member: e.Member, Phase: grant.WorkEnded, Code: e.Code, Signal: e.Signal, Reason: e.Reason, Message: e.Message, Use: measured.UseFrom(e.Use)})
	}
}

// outcomeNow is the outcome as it is written: with the exits that are known by now.
func (a *attempt) outcomeNow() *record.Outcome {
	if a.outcome == nil {
		return nil
	}
	o := *a.outcome
	o.Exits = a.exits()
	return &o
}

// setReady takes over the key as it was written.
func (a *attempt) setReady(k vacancy.Key) { a.ready = k }

// takeUse judges the use of the members' devices.
func (a *attempt) takeUse(counters []idle.Counter, r idle.Rule) idle.Use {
	return a.gpus.Take(counters, r)
}

// noteJudgedIdle notes a look at the use of the members' devices.
func (a *attempt) noteJudgedIdle(now time.Time) { a.judgedIdle = now }

// recordMissingVotes notes the nodes whose votes have not come when the budget is spent.
func (a *attempt) recordMissingVotes() {
	if !a.machine.Undecided() || a.isPreempting() {
		return
	}
	for _, id := range a.machine.Nodes() {
		if _, answered := a.machine.Answer(id); !answered {
			a.fail(id, breaker.Silent)
		}
	}
}

func joinReasons(reasons []resource.Reason, more string) string {
	parts := make([]string, 0, len(reasons)+1)
	for _, r := range reasons {
		parts = append(parts, r.String())
	}
	if more != "" {
		parts = append(parts, more)
	}
	return strings.Join(parts, "; ")
}

// countsOn counts the members on each of the nodes, nil where each has one.
func (a *attempt) countsOn(nodes []resource.NodeID) []int32 {
	if a.unit.record.Held() == len(nodes) {
		return nil
	}
	counts := make([]int32, len(nodes))
	for i, id := range nodes {
		vote, _ := a.machine.Vote(id)
		counts[i] = int32(max(1, len(vote.Members), len(a.requests[id])))
	}
	return counts
}

// requestOf is the request for a member of a plan. A preemption asks for the very
// devices that the plan names, and so does one whose charge depends on them.
func (a *attempt) requestOf(m place.Choice) grant.MemberRequest {
	request := grant.MemberRequest{Index: m.Index, Request: *a.unit.Demand.RequestOf(m.Index)}
	if a.isPreempting() || request.Request.TakesAnyModel() && place.IsMixed(m.Node) {
		request.PinnedGPUs = devicesOf(m.Assignment)
	}
	return request
}

// setLoss notes the loss whose Txn is under way, nil for none.
func (a *attempt) setLoss(x *memberLoss) { a.loss = x }

// dropMembers forgets the members of a loss.
func (a *attempt) dropMembers(x *memberLoss) {
	a.lostMembers = append(slices.Clip(a.lostMembers), x.members...)
	delete(a.held, x.node)
	delete(a.assumedFreed, x.node)
	for _, m := range x.members {
		delete(a.work, m.Member)
	}
	a.keepPlaces(nil)
}

// keepExit keeps how a member has ended that another transaction had.
func (a *attempt) keepExit(e record.Exit) {
	if a.elsewhere == nil {
		a.elsewhere = map[int]record.Exit{}
	}
	a.elsewhere[e.Member] = e
}

// noticeOf is the instant at which victims were given notice: they are EVICTING by
// one Txn.
func noticeOf(victims []*attempt) time.Time {
	for _, v := range victims {
		if !v.noticed.IsZero() {
			return v.noticed
		}
	}
	return time.Time{}
}
