package lead

import (
	"fmt"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// explainUnit evaluates every level anew, on the view as it is now.
func (l *Leader) explainUnit(u *unit) *api.Explanation {
	e := &api.Explanation{
		Kind: "Explanation", Namespace: u.record.Namespace, Name: u.record.Name, Phase: u.phase(), Members: u.demand.Members, Attempts: u.attempts,
	}
	if !u.lastAttempt.IsZero() {
		e.LastAttempt = u.lastAttempt.UTC().Format(time.RFC3339)
	}
	if u.job != nil && e.Phase == api.Pending {
		e.Phase = api.Queued
	}
	if !u.waiting() {
		e.Fit = u.demand.Members
		e.Summary = fmt.Sprintf("%s is %s; nothing holds it back", u.record.Name, e.Phase)
		return e
	}
	why := l.evidenceOf(u)
	if why == nil {
		why = &sched.Evidence{}
	}
	e.Queue, e.QueuePosition = u.record.Queue, l.room.Order().Position(u.key)
	if u.attempt == nil && !u.isBeingAdopted() {
		e.Quota = l.reasons(l.judge(u))
	}
	if u.preempting() {
		e.Nomination, e.Quota = u.attempt.nomination().Show(), nil
	} else {
		e.PreemptionBlockedBy = why.NoVictims
	}
	x := place.Explain(l.state, u.demand)
	e.Fit, e.Shortages = x.Fit, x.Shortages
	for _, n := range x.Nodes {
		e.Nodes = append(e.Nodes, api.NodeExplanation(n))
	}
	e.Summary = summary(u, e, why.Wide, len(l.state.Nodes()))
	return e
}

// summary is the answer in one sentence: what is short, by how much, where.
func summary(u *unit, e *api.Explanation, wide string, nodes int) (said string) {
	each := describe(u.demand.Request)
	want := fmt.Sprintf("%s wants %d × (%s)", u.record.Name, e.Members, each)
	if e.Members == 1 {
		want = fmt.Sprintf("%s wants %s", u.record.Name, each)
	}
	if e.PreemptionBlockedBy != "" {
		defer func() { said += "; nobody gives way: " + e.PreemptionBlockedBy }()
	}
	switch {
	case e.Nomination != nil:
		return fmt.Sprintf("%s: %s", want, e.Nomination.WaitingFor)
	case len(e.Quota) > 0:
		return fmt.Sprintf("%s: %s", want, e.Quota[0].Detail)
	case nodes == 0:
		return want + ": no node has joined yet"
	case e.Fit >= e.Members && wide != "":
		return want + ": " + wide
	case e.Fit >= e.Members:
		return want + ": there is room now; it is about to be placed"
	case len(e.Shortages) > 0:
		var short []string
		for _, r := range e.Shortages {
			short = append(short, fmt.Sprintf("short of %s %s (%s wanted, %s free)",
				resource.FormatAmount(r.Resource, r.Short()), r.Resource, resource.FormatAmount(r.Resource, r.Want), resource.FormatAmount(r.Resource, r.Have)))
		}
		return fmt.Sprintf("%s: %d of %d members fit on %d nodes; %s", want, e.Fit, e.Members, nodes, strings.Join(short, ", "))
	default:
		return fmt.Sprintf("%s: %d of %d members fit on %d nodes; the total would suffice, but not on nodes that may take a whole member (see nodes)", want, e.Fit, e.Members, nodes)
	}
}

// describe prints a request as people write it, devices first.
func describe(r resource.Request) string {
	v := r.Vector()
	if r.Cores > 0 {
		delete(v, resource.CPU) // charged, not asked for
	}
	var parts []string
	for _, name := range []resource.Name{
		resource.GPU, resource.MIG(r.MIGProfile), resource.Cores, resource.CPU, resource.Memory, resource.Hugepages(r.HugepageSize),
	} {
		if v[name] > 0 {
			parts = append(parts, resource.FormatAmount(name, v[name])+" "+string(name))
		}
	}
	return strings.Join(parts, ", ")
}
