package why

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/api"
)

// Options change how much an answer holds.
type Options struct {
	// EveryNode lists every node with its own reasons, and all names of a group.
	EveryNode bool
}

// Answer makes the answer to one who asks.
func Answer(f *Facts, v Viewer, o Options) *api.Explanation {
	e := &api.Explanation{
		Kind: "Explanation", Format: api.ExplanationFormat, Object: f.Object, Namespace: f.Namespace, Name: f.Name, Phase: f.Phase,
		Members: f.Members, Running: f.Running, Queue: f.Queue, Attempts: f.Attempts,
		DryRun: f.DryRun, Placement: f.Placement,
	}
	if !f.waits() || len(f.Placement) > 0 {
		e.Alternative = f.Alternative
	}
	if !f.LastAttempt.IsZero() {
		e.LastAttempt = clock(f.LastAttempt)
	}
	switch {
	case f.Stage == Running:
		e.Fit = f.Members
	case f.waits():
		e.Fit, e.Outlook, e.Set = f.Fit, f.Outlook, f.setName()
		for _, h := range f.Help {
			h.Message = v.hide(h.Message)
			e.Help = append(e.Help, h)
		}
		groups := grouped(f.Nodes)
		e.Nodes = show(groups, f, o.EveryNode)
		if e.Shortages = f.Shortages; o.EveryNode {
			e.EachNode = f.Nodes
		}
	}
	f.addQuota(e, v)
	f.addNomination(e, v)
	f.addOthers(e, v)
	reason, sentence := f.reason(v)
	e.Reason, e.Summary = reason, sentence
	return e
}

// waits reports whether the nodes matter: the unit has no place yet.
func (f *Facts) waits() bool {
	switch f.Stage {
	case Running, Leaving, Ended:
		return false
	}
	return true
}

// addOthers adds the alternatives, each with the reason that binds.
func (f *Facts) addOthers(e *api.Explanation, v Viewer) {
	for _, o := range f.Others {
		reason, _ := o.reason(v)
		e.Alternatives = append(e.Alternatives, api.AlternativeExplanation{Number: o.Alternative, Request: request(&o.Request), Reason: reason, Fit: o.Fit})
	}
}

func (f *Facts) addQuota(e *api.Explanation, v Viewer) {
	for _, r := range f.Quota {
		r.Detail = v.hide(r.Detail)
		e.Quota = append(e.Quota, r)
	}
	if f.QuotaLevel == QuotaInUse && len(e.Quota) > 0 {
		e.Quota[0].Detail = f.inUse(v)
	}
}

func (f *Facts) addNomination(e *api.Explanation, v Viewer) {
	if f.Stage != Nominated {
		e.PreemptionBlockedBy = v.hide(f.NoVictims)
		return
	}
	n := &api.Nomination{WaitingFor: f.awaits(v), Victims: make([]api.Victim, 0, len(f.Victims))}
	if !f.Noticed.IsZero() {
		n.Since = clock(f.Noticed)
	}
	sorted := slices.SortedFunc(slices.Values(f.Victims), func(a, b Work) int { return cmp.Compare(a.Unit, b.Unit) })
	for _, w := range sorted {
		victim := api.Victim{Priority: w.Priority, Members: w.Members, GPUs: gpus(w.GPUs), Freed: w.Freed}
		if v.Sees(w.Namespace) {
			victim.Unit = w.Unit
		}
		n.Victims = append(n.Victims, victim)
	}
	e.Nomination = n
}
