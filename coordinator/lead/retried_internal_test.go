package lead

import (
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/grant"
)

// TestTheRecordOfARetryHasItsOwnInstants: the records of the runs of one unit, one after
// the other, never overlap.
func TestTheRecordOfARetryHasItsOwnInstants(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitLife("train", 2, `"backoffLimit":1,`, gangOfTwo)
	x.holdsAll(u)
	x.fails(u, 1, 7, "Completed")
	x.pass(10 * time.Second)
	x.answers()
	x.holdsAll(u)
	x.pass(time.Minute)
	x.fails(u, 0, 1, "Completed")
	kvs, _, err := x.kv.Range(t.Context(), record.TxPrefix, store.RangeOptions{})
	if err != nil || len(kvs) != 2 {
		t.Fatalf("%d records, error %v, want 2", len(kvs), err)
	}
	var runs [2]record.Tx
	for i, kv := range kvs {
		if runs[i], err = record.Decode[record.Tx](kv.Key, kv.Value); err != nil || runs[i].State != grant.RecordReleased {
			t.Fatalf("%s is %s, error %v", kv.Key, runs[i].State, err)
		}
	}
	first, second := runs[0], runs[1]
	if first.CommittedMillis > second.CommittedMillis {
		first, second = second, first
	}
	if second.CommittedMillis-first.EndedMillis != 10_000 || second.EndedMillis-second.CommittedMillis != 60_000 {
		t.Errorf("the runs are %d to %d and %d to %d, want 10 s between them and 60 s of the second", first.CommittedMillis, first.EndedMillis, second.CommittedMillis, second.EndedMillis)
	}
	if at := time.UnixMilli(second.CommittedMillis).UTC().Format(time.RFC3339); second.Committed != at {
		t.Errorf("committed %s, want %s", second.Committed, at)
	}
}
