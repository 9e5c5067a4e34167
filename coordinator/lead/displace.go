package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/coordinator/why"
	"github.com/musterd/muster/resource"
)

// Patience with victims beyond their grace: agents keep what waits for
// waitingTTL longer, the leader gives up before they do.
const (
	waitingTTL     = 15 * time.Second
	victimPatience = 10 * time.Second
)

// writeEvictions asks for the Txn that evicts all victims at once, if this
// epoch still leads, the preemptor has no record, its nodes still are the
// incarnations that wait, and each victim is what it was when it was chosen
// (PROTOCOL.md 6.3).
func (l *Leader) writeEvictions(a *work.Attempt) {
	d, ok := l.evictionsOf(a)
	if !ok {
		l.step(a, txn.EvictionsAnswered{Outcome: txn.Conflict}) // nothing was sent
		return
	}
	l.post.Submit(d)
}

// evictionsOf makes the Txn of writeEvictions. False: a victim is another than when it
// was chosen.
func (l *Leader) evictionsOf(a *work.Attempt) (d post.Decision, ok bool) {
	tx := a.Machine.ID()
	d.Compares = l.comparesOfPlace(a)
	instant := l.post.Millis()
	for _, v := range a.Victims {
		if v.Machine.State() != txn.Committed || v.Unit.Life.EndAsked() || v.Preemptor != a { // its own Txn may be under way
			return d, false
		}
		d.Compares = append(d.Compares, record.ModRevIs(record.TxKey(v.Machine.ID()), v.Machine.Revision()),
			record.ModRevIs(v.Unit.Record.Path().Key(), v.Unit.Stored)) // model: mutant EVICT_WITHOUT_PRIORITY
		d.Ops = append(d.Ops, l.evictingOps(v, l.noticeFor(a, v), instant, tx)...)
	}
	for _, v := range a.Victims {
		l.step(v, txn.VictimClaimed{By: tx})
	}
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		if err != nil {
			l.post.Warn("eviction_failed", "tx", tx, "outcome", o, "error", err)
		}
		if o == txn.Landed {
			a.SetNoticed(instant)
		}
		l.step(a, txn.EvictionsAnswered{Outcome: o, Revision: rev})
	}
	return d, true
}

// comparesOfPlace are the compares by which an attempt is undecided and holds its place
// on each node (I7).
func (l *Leader) comparesOfPlace(a *work.Attempt) []record.Compare {
	compares := []record.Compare{record.Absent(record.TxKey(a.Machine.ID()))} // model: mutant EVICT_FOR_DECIDED
	for _, node := range a.Machine.Nodes() {
		v, _ := a.Machine.Answer(node)
		// model: mutant EVICT_WITHOUT_INCARNATIONS
		compares = append(compares, record.ModRevIs(record.NodeIdentityKey(node), v.Revision))
	}
	return compares
}

// noticeFor is the notice to a victim. Its text is stored, and reaches everybody who
// reads the victim: to another tenant the preemptor is its GPUs and its priority.
func (l *Leader) noticeFor(a, victim *work.Attempt) txn.EvictAsked {
	text := "gives way to "
	if a.Claims {
		text = "its quota is claimed back by "
	}
	text += l.viewer(victim.Unit, Asked{}).Work([]why.Work{work.WorkOf(a.Unit)})
	return txn.EvictAsked{GraceSeconds: l.graceSeconds(), Reason: text}
}

// victimsNoticed tells the victims that they are EVICTING, and gives them until
// the end of their grace and a little more.
func (l *Leader) victimsNoticed(a *work.Attempt, revision resource.Revision) {
	l.activity.addPreemptions(l.post.Now(), len(a.Victims))
	for _, v := range a.Victims {
		notice := l.noticeFor(a, v)
		v.SetNoticed(post.MillisOf(a.Noticed))
		l.step(v, txn.Evicted{GraceSeconds: notice.GraceSeconds, Reason: notice.Reason, Revision: revision})
	}
	l.setBudget(a, time.Duration(l.graceSeconds())*time.Second+victimPatience)
	l.noteWaiting(a.Unit)
	l.notify(a.Unit)
}

// setBudget bounds how long an attempt waits for what comes next.
func (l *Leader) setBudget(a *work.Attempt, d time.Duration) {
	l.setTimer(a, d, func() {
		a.RecordMissingVotes()
		l.step(a, txn.BudgetSpent{})
	})
}

// setTimer runs f later, unless another timer of the attempt is set, or this one
// cancelled, before.
func (l *Leader) setTimer(a *work.Attempt, d time.Duration, f func()) {
	l.post.Cancel(a.Budget)
	a.SetBudget(l.post.After(d, f))
}

// mayDisplace reports whether the commit of a preemptor may be sent: its
// victims are still EVICTING for it, and what the trees are charged without
// them leaves room for it (PROTOCOL.md 6.5). It changes nothing: until the
// outcome is known both are charged, each where it stands.
func (l *Leader) mayDisplace(a *work.Attempt) bool {
	for _, v := range a.Victims {
		if v.Machine.State() != txn.Evicting || v.Machine.By() != a.Machine.ID() || !v.Machine.Freed() { // a dead node may be back
			return false
		}
	}
	if !a.Claims || len(a.Unit.Charges) < 2 {
		return true
	}
	var paths []string
	for _, v := range a.Victims {
		if v.Unit.Enrolled {
			paths = append(paths, v.Unit.Path)
		}
	}
	fits := false
	l.quotas.Without(paths, func() { fits = l.chargeAnew(a) })
	return fits
}

// chargeAnew charges a preemptor as an arrival, in place of the charge that held
// its claim beside its victims. It reports whether that evicts nobody, and changes
// nothing otherwise.
func (l *Leader) chargeAnew(a *work.Attempt) bool {
	r, ok := l.quotas.Replace(a.Unit.Path)
	if !ok {
		l.post.Warn("claim_not_met", "unit", a.Unit.Path, "refusal", r.Refusal, "victims", len(r.Preempted))
	}
	return ok
}

// endVictims ends the victims of a unit that has committed: RELEASED came with
// its commit. A unit that claimed its quota takes its place in the trees now: until
// then it was charged beside its victims, where that was possible.
func (l *Leader) endVictims(a *work.Attempt, revision resource.Revision) {
	for _, v := range a.Victims {
		l.step(v, txn.Displaced{Revision: revision})
	}
	if a.Claims && a.Unit.Enrolled && l.chargeAnew(a) {
		l.noteCharged(a) // on trees, too, that no victim was charged to
	}
	if len(a.Victims) > 0 {
		l.post.Count(post.MetricPreemptions, "")
		l.post.Info("preempted", "unit", a.Unit.Path, "victims", a.VictimPaths(), "after", l.post.Now().Sub(a.Noticed))
	}
}
