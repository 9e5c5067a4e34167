package coordinator

import (
	"context"
	"strings"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/grant"
)

// fencesAtOnce bounds the fences that one sweep takes, and the keys of one read.
const (
	fencesAtOnce = 1 << 14
	sweepPage    = 512
)

func readFences(ctx context.Context, s store.KVStore) (found []lead.Fenced, err error) {
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
			if rec.State == grant.RecordAborted && strings.HasPrefix(rec.Reason, record.FencedFor) && len(rec.Unheard) == 0 {
				found = append(found, lead.Fenced{Tx: tx, Unit: rec.UnitUID})
			}
		}
		if len(kvs) < sweepPage {
			break
		}
	}
	return found, nil
}
