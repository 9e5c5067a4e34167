package coordinator

import (
	"context"
	"strings"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// fencesAtOnce bounds the fences that one sweep takes, and the keys of one read.
const (
	fencesAtOnce = 1 << 14
	sweepPage    = 512
)

// fenced is a record that a fence for an agent made (rpc.Server.Resolve).
type fenced struct {
	tx   resource.TxID
	unit resource.UnitUID
}

// sweepFences looks, once per RecordRetention, for records that agents had made
// by fences and that this leader knows nothing of: without it an agent that
// invents transactions fills the store until the next election.
func (l *leader) sweepFences() {
	if l.now.Sub(l.sweptAt) < l.config.RecordRetention {
		return
	}
	l.sweptAt = l.now
	l.out.add(effect{kind: readFenceKeys})
}

func readFences(ctx context.Context, s store.KVStore) (found []fenced, err error) {
	o := store.RangeOptions{Limit: sweepPage}
	for len(found) < fencesAtOnce {
		kvs, _, err := s.Range(ctx, record.TxPrefix, o)
		if err != nil {
			return nil, err
		}
		for _, kv := range kvs {
			o.StartAfter = kv.Key
			tx, err := record.ParseTxKey(kv.Key)
			if err != nil {
				return nil, err
			}
			rec, err := record.Decode[record.Tx](kv.Key, kv.Value)
			if err != nil {
				return nil, err
			}
			if rec.State == grant.RecordAborted && strings.HasPrefix(rec.Reason, rpc.FencedFor) && len(rec.Unheard) == 0 {
				found = append(found, fenced{tx, rec.UnitUID})
			}
		}
		if len(kvs) < sweepPage {
			break
		}
	}
	return found, nil
}

// buryFences has the fences collected of units that are not there: no commit of
// theirs is under way, for a unit is known before its first attempt; none is in
// doubt (doubtful); and none can be adopted, for that takes the unit.
func (l *leader) buryFences(found []fenced) {
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
		_, adopting := l.adoptions[f.tx]
		_, unheard := l.unheard[f.tx]
		if units[f.unit] || waits[f.tx] || unheard || adopting || l.doubtful[f.tx] || l.attempts[f.tx] != nil {
			continue
		}
		l.bury(f.tx, nil)
		buried++
	}
	if buried > 0 {
		l.out.info("fences_of_unknown_units", "records", buried, "collected_in", l.config.RecordRetention)
	}
}
