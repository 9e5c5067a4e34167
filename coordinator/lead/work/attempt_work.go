package work

import (
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/idle"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// EndNotice is the signal that announces the end of the unit's work. The work starts at now.
func (a *Attempt) EndNotice(now int64) grant.Notice {
	number, before := a.Unit.Work().EndSignal()
	if number == 0 {
		return grant.Notice{}
	}
	n := grant.Notice{Signal: number, Before: min(before, longestLimit)}
	of := a.Judged()
	if of == nil {
		return n
	}
	instant := of.Ready.AtMillis
	if instant == 0 { // the key is on the way to the store
		instant = now
	}
	if t, limited := of.Unit.limitSince(instant); limited {
		n.After = max(0, time.Duration(t.since-now)*time.Millisecond+t.Length-n.Before)
	}
	return n
}

// IsJudgedIdle reports whether the use of the attempt's members is judged now, as after each
// span.
func (a *Attempt) IsJudgedIdle(now time.Time, every time.Duration) bool {
	u := a.Unit
	return u.Work() != nil && u.Attempt == a && !u.Life.EndAsked() && a.Notice == nil &&
		a.Machine.State() == txn.Committed && a.Ready.AtMillis != 0 && now.Sub(a.judgedIdle) >= every
}

// IsIdleBy reports whether the attempt's GPUs are idle by a rule, according to the store.
func (a *Attempt) IsIdleBy(r idle.Rule) bool {
	return a.Ready.IdleMillis != 0 && int64(a.Ready.IdleBelow) == r.Below
}

// FirstNode is the node of member 0, "" before the vote of the node.
func (a *Attempt) FirstNode() resource.NodeID {
	for _, id := range a.Machine.Nodes() {
		vote, _ := a.Machine.Vote(id)
		if slices.ContainsFunc(vote.Members, func(m grant.Member) bool { return m.Index == 0 }) {
			return id
		}
	}
	return ""
}
