package lead

import (
	"github.com/musterd/muster/resource"
)

// fenced is a record that a fence for an agent made (rpc.Server.Resolve).
type Fenced struct {
	Tx   resource.TxID
	Unit resource.UnitUID
}

// sweepFences looks, once per RecordRetention, for records that agents had made
// by fences and that this leader knows nothing of: without it an agent that
// invents transactions fills the store until the next election.
func (l *Leader) sweepFences() {
	if l.now.Sub(l.sweptAt) < l.rules.RecordRetention {
		return
	}
	l.sweptAt = l.now
	l.out.add(Effect{Kind: ReadFenceKeys})
}

// buryFences has the fences collected of units that are not there: no commit of
// theirs is under way, for a unit is known before its first attempt; none is in
// doubt (doubtful); and none can be adopted, for that takes the unit.
func (l *Leader) buryFences(found []Fenced) {
	units := make(map[resource.UnitUID]bool, len(l.units))
	for _, u := range l.units {
		units[u.record.UID] = true
	}
	waits := make(map[resource.TxID]bool, len(l.terminal))
	for _, r := range l.terminal {
		waits[r.tx] = true
	}
	buried := 0
	for _, f := range found {
		_, adopting := l.adoptions[f.Tx]
		_, unheard := l.unheard[f.Tx]
		if units[f.Unit] || waits[f.Tx] || l.collecting[f.Tx] || unheard || adopting || l.doubtful[f.Tx] || l.attempts[f.Tx] != nil {
			continue
		}
		l.bury(f.Tx, nil)
		buried++
	}
	if buried > 0 {
		l.out.info("fences_of_unknown_units", "records", buried, "collected_in", l.rules.RecordRetention)
	}
}
