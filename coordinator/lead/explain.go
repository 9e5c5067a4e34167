package lead

import (
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
func (l *Leader) explain(u *work.Unit, asked Asked) *Explaining {
	x := &Explaining{facts: l.factsOf(u), viewer: l.viewer(u, asked), options: why.Options{EveryNode: asked.EveryNode}}
	if !u.Waiting() {
		return x
	}
	if u.Attempt == nil && (x.facts.Stage == why.Waiting || x.facts.Stage == why.Resting || x.facts.Stage == why.Suspended || x.facts.Stage == why.Blocked) {
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
func (l *Leader) factsOf(u *work.Unit) why.Facts {
	f := why.Facts{
		Object: "Allocation", Namespace: u.Record.Namespace, Name: u.Record.Name, Phase: u.Phase(), Priority: u.Record.Priority, Policy: u.Policy,
		Request: u.Demand.Request, Members: u.Demand.Members, Total: u.Demand.Members, Now: l.post.Now(),
		Alternative: u.Number, Attempts: u.Wait.Attempts, LastAttempt: u.Wait.LastAttempt, Elected: l.post.Elected(), Stage: u.Stage(),
	}
	l.addBlock(&f, u)
	if u.Job != nil {
		l.addJob(&f, u)
	} else if u.Phase() == api.Running {
		f.Running = u.Demand.Members
	}
	switch f.Stage {
	case why.Running:
		f.On, f.Unconfirmed, f.Lost = u.Nodes(), u.Unconfirmed(), l.lostOf(u)
	case why.Leaving:
		l.addLeaving(&f, u)
	case why.Ended:
		f.Ending = u.Record.Reason
		if u.Job != nil && f.Ending == "" && u.Job.Record.Cancelled != nil {
			f.Ending = u.Job.Record.Cancelled.Reason
		}
	case why.Asking:
		f.On, f.Unconfirmed = u.Nodes(), u.Unanswered()
	case why.Nominated:
		l.addVictims(&f, u.Attempt)
	case why.Resting:
		f.Refused = why.Refused{Times: u.Wait.Refusals, Node: u.Wait.Failed.Node, Fault: u.Wait.Failed.String(), Until: u.Wait.Rested}
	case why.Gathering:
		l.addGroup(&f, u)
	case why.Delayed:
		r := &u.Record
		f.Retry = why.Retry{Failure: r.Failure, Number: r.Retry, Limit: u.Job.Policy().BackoffLimit, At: post.InstantOf(r.RetryMillis)}
	case why.Throttled:
		f.Parallelism = u.Job.Doc.AtOnce()
	case why.Depending:
		f.Awaits = l.wantsOf(u.Job)
	case why.Waiting, why.Storing, why.Growing, why.Adopting, why.Suspended, why.Blocked:
	}
	if u.Waiting() {
		l.addWait(&f, u)
	}
	return f
}

// lostOf are the lost devices that a running unit holds, by member.
func (l *Leader) lostOf(u *work.Unit) []why.Lost {
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

// addGroup adds how many members of a group have arrived, and until when it has to start.
func (l *Leader) addGroup(f *why.Facts, u *work.Unit) {
	g := u.Group
	f.Group = why.Group{ID: g.ID, Arrived: g.Arrived(), MinMembers: g.Rule.MinMembers, StartBy: post.InstantOf(u.Record.StartByMillis)}
}

// addBlock adds the rule of its queue that holds a unit back which waits.
func (l *Leader) addBlock(f *why.Facts, u *work.Unit) {
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
	if head := l.work.Units[b.Head]; head != nil {
		f.Block.Head = work.WorkOf(head)
	}
}

// addJob adds the state of the whole job.
func (l *Leader) addJob(f *why.Facts, u *work.Unit) {
	f.Object, f.Total = "Job", 0
	shows := l.showJob(u.Job)
	f.Phase = shows.Show().Status.Phase
	for _, v := range u.Job.Units {
		f.Total += v.Record.Held()
		if v.Phase() == api.Running {
			f.Running += v.Record.Held()
		}
	}
	f.Waits = u.Waiting() && f.Running > 0
}

// addLeaving adds why a unit leaves, and until when its grace runs.
func (l *Leader) addLeaving(f *why.Facts, u *work.Unit) {
	f.Ending = u.Record.Reason
	switch a := u.Attempt; {
	case a != nil && a.Notice != nil && !a.Noticed.IsZero():
		f.Until = a.Noticed.Add(time.Duration(a.Notice.GraceSeconds) * time.Second)
	case a != nil && u.Life.EndDurable() && u.Life.Asked() != 0:
		f.Until = post.InstantOf(u.Life.Asked()).Add(time.Duration(u.Life.Ending().GraceSeconds) * time.Second)
	}
}

// addVictims adds the units that make room.
func (l *Leader) addVictims(f *why.Facts, a *work.Attempt) {
	f.Noticed, f.Claims = a.Noticed, a.Claims
	for _, v := range a.Displaced() {
		w := work.WorkOf(v.Unit)
		w.Freed = v.Machine.Freed()
		f.Victims = append(f.Victims, w)
	}
	if !a.Noticed.IsZero() {
		f.Until = a.Noticed.Add(time.Duration(l.graceSeconds())*time.Second + victimPatience)
	}
}

// addWait adds the place in the queue, the quota that is short, and the evidence
// of the last trial.
func (l *Leader) addWait(f *why.Facts, u *work.Unit) {
	f.Queue = l.queuePlace(u)
	if e := l.evidenceOf(u); e != nil && !u.Preempting() {
		e = e.Of(u.Number)
		f.NoVictims, f.TooWide = e.NoVictims, e.Wide
	}
	if u.Attempt != nil || f.Stage != why.Waiting && f.Stage != why.Resting && f.Stage != why.Suspended {
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
		for _, v := range l.work.UnitsOf(short.Victims) {
			f.Borrowers = append(f.Borrowers, work.WorkOf(v))
		}
	default:
		f.QuotaLevel = why.QuotaTree
	}
}

// queuePlace is a unit's place in its own queue and in the order over all queues,
// nil where the unit is in none.
func (l *Leader) queuePlace(u *work.Unit) *api.QueuePlace {
	order := l.room.Order()
	p := &api.QueuePlace{Name: u.Record.Queue, OverallPosition: order.Position(u.Key), OverallLength: order.Len()}
	if p.OverallPosition == 0 {
		return nil
	}
	for k := range order.All() {
		if o := l.work.Units[k.Path]; o != nil && o.Record.Queue == u.Record.Queue {
			p.Length++
			if p.Position == 0 && k.ArrivedWith(u.Key) {
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
