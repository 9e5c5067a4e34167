package lead

import (
	"github.com/musterd/muster/resource"

	"github.com/musterd/muster/coordinator/lead/post"
)

// Fenced is a record that a fence for an agent made (rpc.Server.Resolve).
type Fenced struct {
	Tx   resource.TxID
	Unit resource.UnitUID
}

// sweepFences looks, once per RecordRetention, for records that agents had made
// by fences and that this leader knows nothing of: without it an agent that
// invents transactions fills the store until the next election.
func (l *Leader) sweepFences() {
	if l.post.Now().Sub(l.sweptAt) < l.rules.RecordRetention {
		return
	}
	l.sweptAt = l.post.Now()
	l.post.Add(post.Effect{Kind: post.ReadFenceKeys})
}

// retireFences has the fences collected of units that are not there: no commit of
// theirs is under way, for a unit is known before its first attempt; none is in
// doubt (doubtful); and none can be adopted, for that takes the unit.
func (l *Leader) retireFences(found []Fenced) {
	units := make(map[resource.UnitUID]bool, len(l.work.Units))
	for _, u := range l.work.Units {
		units[u.Record.UID] = true
	}
	waits := l.retired.all()
	buried := 0
	for _, f := range found {
		_, adopting := l.adoptions[f.Tx]
		if units[f.Unit] || waits[f.Tx] || adopting || l.work.Attempts[f.Tx] != nil {
			continue
		}
		l.retired.add(f.Tx, nil, l.post.Now())
		buried++
	}
	if buried > 0 {
		l.post.Info("fences_of_unknown_units", "records", buried, "collected_in", l.rules.RecordRetention)
	}
}
