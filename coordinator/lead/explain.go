package lead

import (
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/coordinator/why"
	"github.com/musterd/muster/resource"
)

// This file gathers the facts from which coordinator/why makes an answer. It
// changes nothing.

// Explaining is a question about a unit, with all that the answer needs. Answer
// may run in any goroutine, while the leader goes on.
type Explaining struct {
	facts   why.Facts
	viewer  why.Viewer
	options why.Options
	dry     bool // the unit was not submitted
	// The rest is of a unit without a place.
	snapshot *whatif.Snapshot
	demand   place.Unit
	closed   map[resource.NodeID]resource.Reason // of nodes that take no new work
	unit     *whatif.Unit                        // nil where no change is tried
	others   []Explaining                        // the alternatives of the unit, in order
}

// explain begins the answer why a unit, or the job that it belongs to, does not
// run.
func (l *Leader) explain(u *unit, asked Asked) *Explaining {
	x := &Explaining{facts: l.factsOf(u), viewer: l.viewer(u, asked), options: why.Options{EveryNode: asked.EveryNode}}
	if !u.waiting() {
		return x
	}
	if u.attempt == nil && (x.facts.Stage == why.Waiting || x.facts.Stage == why.Resting || x.facts.Stage == why.Suspended || x.facts.Stage == why.Blocked) {
		x.unit = l.asked(u)
	}
	x.demand, x.snapshot = l.together(u), l.snapshot()
	x.facts.Members = x.demand.Members
	if x.unit != nil {
		x.unit.Demand.Members, x.unit.Demand.Sets, x.unit.Demand.Topology = x.demand.Members, x.demand.Sets, x.demand.Topology
		x.others = l.explainOthers(u, &x.facts)
	}
	x.closed = map[resource.NodeID]resource.Reason{}
	for id, n := range l.nodes {
		if n.offers() {
			continue
		}
		x.closed[id] = n.closed()
		if !n.connected && n.specRev != 0 {
			x.facts.Missing++
		}
	}
	return x
}

// Answer makes the answer.
func (x *Explaining) Answer() *api.Explanation {
	f := &x.facts
	if x.snapshot != nil {
		w := x.snapshot.World()
		x.addNodes(w.State)
		if x.unit != nil {
			f.Outlook = x.outlook(w)
			x.addOthers(w)
			switch {
			case f.Stage == why.Suspended:
				f.Outlook, f.Help = why.Resumed(f)
			case f.Stage == why.Blocked:
				f.Outlook = why.Freed(f)
			case f.Outlook.Can != api.CanNow:
				hints, _, _ := w.Help(x.unit)
				f.Help = why.HelpOf(hints, x.viewer)
			}
			if x.dry {
				f.DryRun = true
				x.addPlacement(w)
			}
		}
	}
	return why.Answer(f, x.viewer, x.options)
}

// addNodes adds the answer of each node.
func (x *Explaining) addNodes(state *cluster.State) {
	f, e := &x.facts, place.Explain(state, x.demand)
	f.Fit, f.Shortages, f.Domain = e.Fit, e.Shortages, e.Domain
	if sets := x.demand.Sets; sets != nil {
		f.Sets, f.Set, f.Members, f.Request = sets, e.Set, e.Members, sets[e.Set].Request
	}
	f.Nodes = make([]api.NodeExplanation, len(e.Nodes))
	for i, n := range e.Nodes {
		f.Nodes[i] = api.NodeExplanation(n)
		if r, closed := x.closed[n.Node]; closed {
			f.Nodes[i].Reasons = []resource.Reason{r}
		}
	}
}

// factsOf gathers the facts about a unit, but for the nodes.
func (l *Leader) factsOf(u *unit) why.Facts {
	f := why.Facts{
		Object: "Allocation", Namespace: u.record.Namespace, Name: u.record.Name, Phase: u.phase(), Priority: u.record.Priority, Policy: u.policy,
		Request: u.Demand.Request, Members: u.Demand.Members, Total: u.Demand.Members, Now: l.post.Now(),
		Alternative: u.number, Attempts: u.attempts, LastAttempt: u.lastAttempt, Elected: l.post.Elected(), Stage: u.stage(),
	}
	l.addBlock(&f, u)
	if u.job != nil {
		l.addJob(&f, u)
	} else if u.phase() == api.Running {
		f.Running = u.Demand.Members
	}
	switch f.Stage {
	case why.Running:
		f.On, f.Unconfirmed, f.Lost = u.nodes(), u.unconfirmed(), l.lostOf(u)
	case why.Leaving:
		l.addLeaving(&f, u)
	case why.Ended:
		f.Ending = u.record.Reason
		if u.job != nil && f.Ending == "" && u.job.record.Cancelled != nil {
			f.Ending = u.job.record.Cancelled.Reason
		}
	case why.Asking:
		f.On, f.Unconfirmed = u.nodes(), u.unanswered()
	case why.Nominated:
		l.addVictims(&f, u.attempt)
	case why.Resting:
		f.Refused = why.Refused{Times: u.refusals, Node: u.failed.node, Fault: u.failed.String(), Until: u.rested}
	case why.Gathering:
		l.addGroup(&f, u)
	case why.Delayed:
		r := &u.record
		f.Retry = why.Retry{Failure: r.Failure, Number: r.Retry, Limit: u.job.policy().BackoffLimit, At: post.InstantOf(r.RetryMillis)}
	case why.Throttled:
		f.Parallelism = u.job.doc.AtOnce()
	case why.Depending:
		f.Awaits = l.wantsOf(u.job)
	case why.Waiting, why.Storing, why.Growing, why.Adopting, why.Suspended, why.Blocked:
	}
	if u.waiting() {
		l.addWait(&f, u)
	}
	return f
}

// lostOf are the lost devices that a running unit holds, by member.
func (l *Leader) lostOf(u *unit) []why.Lost {
	var list []why.Lost
	s := l.showUnit(u)
	s.FindLost(l.lossOf)
	for i, uuids := range s.Lost {
		if len(uuids) > 0 {
			list = append(list, why.Lost{Node: s.Places[i].Node, UUIDs: uuids})
		}
	}
	return list
}

// stage is where a unit is on its way.
func (u *unit) stage() why.Stage {
	switch u.life.Phase() {
	case work.Live:
		return why.Running
	case work.Closing:
		return why.Leaving
	case work.Ended:
		return why.Ended
	case work.Adopting:
		return why.Adopting
	case work.Resting:
		if u.isSuspended() {
			return why.Suspended
		}
		return why.Resting
	case work.Trying:
		if u.attempt.isPreempting() {
			return why.Nominated
		}
		return why.Asking
	case work.Creating:
		return why.Storing
	case work.Waiting, work.Phases:
	}
	switch {
	case u.life.IsBeingAdopted():
		return why.Adopting
	case u.isSuspended():
		return why.Suspended
	case u.life.IsBeingWritten():
		return why.Storing
	case u.hold == holdDependency:
		return why.Depending
	case u.hold == holdDelay:
		return why.Delayed
	case u.hold == holdThrottled:
		return why.Throttled
	case u.grows():
		return why.Growing
	case u.awaitsMembers():
		return why.Gathering
	}
	return why.Waiting
}

// addGroup adds how many members of a group have arrived, and until when it has to start.
func (l *Leader) addGroup(f *why.Facts, u *unit) {
	g := u.group
	f.Group = why.Group{ID: g.id, Arrived: g.arrived(), MinMembers: g.rule.MinMembers, StartBy: post.InstantOf(u.record.StartByMillis)}
}

// addBlock adds the rule of its queue that holds a unit back which waits.
func (l *Leader) addBlock(f *why.Facts, u *unit) {
	if f.Stage != why.Waiting {
		return
	}
	b := l.blockOf(u)
	if b == nil {
		return
	}
	f.Stage = why.Blocked
	code, _ := waitingForQueue(b)
	f.Block = why.Block{Code: code, Queue: b.Queue, Needs: b.Needs, Running: b.Running, Max: b.Max}
	if head := l.work.units[b.Head]; head != nil {
		f.Block.Head = workOf(head)
	}
}

// addJob adds the state of the whole job.
func (l *Leader) addJob(f *why.Facts, u *unit) {
	f.Object, f.Total = "Job", 0
	shows := l.showJob(u.job)
	f.Phase = shows.Show().Status.Phase
	for _, v := range u.job.units {
		f.Total += v.record.Held()
		if v.phase() == api.Running {
			f.Running += v.record.Held()
		}
	}
	f.Waits = u.waiting() && f.Running > 0
}

// addLeaving adds why a unit leaves, and until when its grace runs.
func (l *Leader) addLeaving(f *why.Facts, u *unit) {
	f.Ending = u.record.Reason
	switch a := u.attempt; {
	case a != nil && a.notice != nil && !a.noticed.IsZero():
		f.Until = a.noticed.Add(time.Duration(a.notice.GraceSeconds) * time.Second)
	case a != nil && u.life.EndDurable() && u.life.Asked() != 0:
		f.Until = post.InstantOf(u.life.Asked()).Add(time.Duration(u.life.Ending().GraceSeconds) * time.Second)
	}
}

// addVictims adds the units that make room.
func (l *Leader) addVictims(f *why.Facts, a *attempt) {
	f.Noticed, f.Claims = a.noticed, a.claims
	for _, v := range a.displaced() {
		w := workOf(v.unit)
		w.Freed = v.machine.Freed()
		f.Victims = append(f.Victims, w)
	}
	if !a.noticed.IsZero() {
		f.Until = a.noticed.Add(time.Duration(l.graceSeconds())*time.Second + victimPatience)
	}
}

// addWait adds the place in the queue, the quota that is short, and the evidence
// of the last trial.
func (l *Leader) addWait(f *why.Facts, u *unit) {
	f.Queue = l.queuePlace(u)
	if e := l.evidenceOf(u); e != nil && !u.preempting() {
		e = e.Of(u.number)
		f.NoVictims, f.TooWide = e.NoVictims, e.Wide
	}
	if u.attempt != nil || f.Stage != why.Waiting && f.Stage != why.Resting && f.Stage != why.Suspended {
		return
	}
	short := l.judge(u)
	f.Quota = l.quotas.Reasons(short)
	switch {
	case short == nil:
	case short.Limits != nil:
		f.QuotaLevel = why.QuotaNamespace
	case short.Absent != nil:
		f.QuotaLevel = why.QuotaAbsent
	case short.Victims != nil:
		f.QuotaLevel = why.QuotaInUse
		for _, v := range l.work.unitsOf(short.Victims) {
			f.Borrowers = append(f.Borrowers, workOf(v))
		}
	default:
		f.QuotaLevel = why.QuotaTree
	}
}

// queuePlace is a unit's place in its own queue and in the order over all queues,
// nil where the unit is in none.
func (l *Leader) queuePlace(u *unit) *api.QueuePlace {
	order := l.room.Order()
	p := &api.QueuePlace{Name: u.record.Queue, OverallPosition: order.Position(u.key), OverallLength: order.Len()}
	if p.OverallPosition == 0 {
		return nil
	}
	for k := range order.All() {
		if o := l.work.units[k.Path]; o != nil && o.record.Queue == u.record.Queue {
			p.Length++
			if p.Position == 0 && k.ArrivedWith(u.key) {
				p.Position = p.Length
			}
		}
	}
	return p
}

// closed is the reason why a node takes no new work: that of its condition Ready,
// or its cordon.
func (n *node) closed() resource.Reason {
	now := n.standingOf(n.observeNow())
	shows := shown.Node{
		ID: n.view.ID, Spec: &n.spec, Labels: n.view.Labels.Values(), Incarnation: n.incarnation, Registered: n.revision != 0,
		Ban: n.ban, Violation: n.violation(), Unapproved: n.unapproved, Observed: &now,
	}
	if n.fence != nil {
		shows.Fence = n.fence.show()
	}
	for _, c := range shows.Show().Status.Conditions {
		if c.Type == "Ready" && c.Status != "True" {
			code := c.Reason
			if code == "AgentUnreachable" {
				code = resource.ReasonUnreachable
			}
			return resource.Reason{Code: code, Detail: c.Message}
		}
	}
	return resource.Reason{Code: resource.ReasonCordoned, Detail: "cordoned"}
}

// nodes are those of the unit's attempt, ascending.
func (u *unit) nodes() []resource.NodeID {
	return slices.Sorted(slices.Values(u.attempt.machine.Nodes()))
}

// unconfirmed are the nodes of a unit that runs whose agents do not hold it yet.
func (u *unit) unconfirmed() []resource.NodeID {
	return slices.DeleteFunc(u.nodes(), func(id resource.NodeID) bool { return u.attempt.held[id] })
}

// unanswered are the nodes of an attempt that have not voted.
func (u *unit) unanswered() []resource.NodeID {
	return slices.DeleteFunc(u.nodes(), func(id resource.NodeID) bool {
		_, answered := u.attempt.machine.Answer(id)
		return answered
	})
}
