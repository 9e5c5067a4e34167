package coordinator_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/test/rig"
)

// TestTheLeaderChangesNoRecordThatItHasWritten: the follower in the same process shows the
// records that the leader has written, without decoding their bytes. So each of them still
// says what its bytes say after the leader has gone through the life of the units.
func TestTheLeaderChangesNoRecordThatItHasWritten(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		var mu sync.Mutex
		var written []record.Op
		k.Gate.OnTxn(func(x record.Txn) rig.Fault {
			mu.Lock()
			defer mu.Unlock()
			for _, op := range x.Then {
				if op.Of != nil {
					written = append(written, op)
				}
			}
			return rig.None
		})
		allocate(t, k, rig.Submission{Name: "a", GPUs: 8, RequestID: "r-1"})
		phase(t, c, "a", api.Running)
		submit(t, k, rig.Submission{Name: "j", GPUs: 2, Members: 4, Gang: 2})
		allocate(t, k, rig.Submission{Name: "important", GPUs: 8, Priority: 100, Policy: "PreemptLowerPriority"})
		remove(t, k, "a")
		phase(t, c, "a", "")
		phase(t, c, "important", api.Running)
		remove(t, k, "important")
		phase(t, c, "important", "")
		mu.Lock()
		defer mu.Unlock()
		kinds := map[string]int{}
		for _, op := range written {
			var now []byte
			switch r := op.Of.(type) {
			case *record.Tx:
				now = record.MustEncode(*r)
				kinds["transaction"]++
			case *record.Unit:
				now = record.MustEncode(*r)
				kinds["unit"]++
			case *record.Ready:
				now = record.MustEncode(*r)
				kinds["readiness"]++
			case *record.Request:
				now = record.MustEncode(*r)
				kinds["request"]++
			default:
				t.Errorf("%s: a record of type %T, which this test cannot encode", op.Key, r)
			}
			if !bytes.Equal(now, op.Value) {
				t.Errorf("%s was written as %s, and its record now says %s", op.Key, op.Value, now)
			}
		}
		for _, kind := range []string{"transaction", "unit", "readiness", "request"} {
			if kinds[kind] == 0 {
				t.Errorf("no record of a %s was written: %v", kind, kinds)
			}
		}
	})
}
