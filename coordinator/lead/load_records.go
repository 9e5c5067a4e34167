package lead

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// recovered is a live transaction found in the store, and what to tell agents.
type recovered struct {
	attempt *work.Attempt
	effects []txn.Effect
}

// loadRecords rebuilds the charges and the machines of live transactions.
func (l *Leader) loadRecords(kvs []record.KV) ([]recovered, error) {
	var live []recovered
	decided := map[resource.TxID]bool{}
	var preemptions []time.Time
	for _, kv := range kvs {
		id, err := record.ParseTxKey(kv.Key)
		if err != nil {
			return nil, err
		}
		rec, err := record.Decode[record.Tx](kv.Key, kv.Value)
		if err != nil {
			return nil, err
		}
		decided[id] = true
		if rec.IsPreemption() {
			preemptions = append(preemptions, post.InstantOf(rec.EndingMillis))
		}
		if rec.State.Terminal() {
			l.retired.add(id, slices.DeleteFunc(rec.Unheard, func(n resource.NodeID) bool { return l.nodes[n] == nil }), l.post.Now()) // it was deleted
			continue
		}
		u := l.work.Units[rec.Unit.String()]
		if u == nil || u.Record.TxID != id {
			return nil, fmt.Errorf("%s: is %s, but its unit %s does not name it", kv.Key, rec.State, rec.Unit)
		}
		if err := u.RestoreForm(rec.Alternative); err != nil {
			return nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
		r := l.restoreAttempt(id, u, rec, kv.ModRev)
		r.attempt.SetCommitted(kv.CreateRev) // a record's first state is COMMITTED
		live = append(live, r)
	}
	l.activity.preemptions.Restore(l.post.Now(), preemptions)
	l.adoptFrom(live, decided)
	return live, nil
}

func (v *view) restoreAttempt(id resource.TxID, u *work.Unit, rec record.Tx, rev resource.Revision) recovered {
	votes := map[resource.NodeID]txn.Vote{}
	for _, m := range rec.Members {
		vote := votes[m.Node]
		vote.Incarnation = m.Incarnation
		vote.Members = append(vote.Members, m.AsMember())
		votes[m.Node] = vote
		n := v.node(m.Node)
		n.reservationOf(id).addMember(m.AsMember())
	}
	a := work.NewAttempt(u, rec.Charges, time.Time{})
	a.RestoreRecord(rec)
	for _, node := range lostNodes(&rec) {
		if v.nodes[node] != nil { // else it was deleted
			v.noteLostOn(id, node)
		}
	}
	found := txn.Found{
		State: rec.State, Revision: rev, GraceSeconds: rec.GraceSeconds, Reason: rec.Reason, Evicted: rec.Evicted, Kept: rec.GraceKept,
	}
	switch {
	case rec.State == grant.RecordEvicting:
		found.By = rec.By // until it is known what became of that
		a.RestoreNotice(rec)
	case rec.State == grant.RecordReleasing && rec.Evicted:
		a.RestoreNotice(rec)
	case rec.State == grant.RecordReleasing:
		u.RestoreEndRequest(txn.ReleaseAsked{GraceSeconds: rec.GraceSeconds, Reason: rec.Reason, Kept: rec.GraceKept}, rec.EndingMillis)
	}
	a.SetRequeues(u.Record.Requeues)
	a.SetStarted(rec.Committed, rec.CommittedMillis)
	machine, effects := txn.Recover(id, found, votes)
	a.SetMachine(machine)
	v.restorePort(a, rec.Port)
	a.RestoreOutcome(rec.Outcome)
	if e := u.Record.Ending; e != nil && rec.State == grant.RecordEvicting {
		u.RestoreEndRequest(releaseOf(*e), e.AskedMillis)
		effects = append(effects, a.Machine.Step(*u.Life.Ending())...)
	}
	u.RestoreAttempt(a)
	v.insertAttempt(id, a)
	return recovered{a, effects}
}

// resume goes on with what earlier leaders began. It runs before the loop; the
// commands it sends reach agents as their streams open.
func (l *Leader) resume() {
	for _, r := range l.recovered {
		l.perform(r.attempt, r.effects)
	}
	l.recovered = nil
	l.awaitAdoptions()
	for _, name := range slices.Sorted(maps.Keys(l.work.Jobs)) {
		j := l.work.Jobs[name]
		l.endUnwanted(j)
		if first := j.Units[0]; work.IsOverdueEnd(first) {
			l.finishOverdue(first)
		}
		l.finishJob(j)
		l.levelPriorities(j)
		l.followDependencies(j)
	}
	l.noteAllFinished()
	l.limitTimes()
	for _, path := range slices.Sorted(maps.Keys(l.work.Units)) {
		if u := l.work.Units[path]; u.Waiting() {
			l.awaitStart(u)
			l.awaitRetry(u)
		}
	}
}
