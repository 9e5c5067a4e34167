package record_test

import (
	"testing"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
)

func TestGoldenFreedNodes(t *testing.T) {
	roundTrip(t, "ready-freed-instant", record.Ready{AtMillis: 1_767_323_046_125, Freed: []record.FreedNode{{Node: "gpu-01", AtMillis: 1_767_326_646_125}, {Node: "gpu-02", AtMillis: 1}}})
}

// TestAgentsKeepAWrittenGrace: agents take such an end for an eviction.
func TestAgentsKeepAWrittenGrace(t *testing.T) {
	r := txRecord()
	r.State, r.By, r.Reason, r.Evicted, r.GraceKept = grant.RecordReleasing, "", "UserRequested", false, true
	roundTrip(t, "tx-grace-kept", r)
	for name, c := range map[string]struct {
		state grant.RecordState
		kept  bool
		want  grant.RecordState
	}{
		"a written grace":                {grant.RecordReleasing, true, grant.RecordEvicting},
		"no written grace":               {grant.RecordReleasing, false, grant.RecordReleasing},
		"the end of a written grace":     {grant.RecordReleased, true, grant.RecordReleased},
		"an eviction, and a written one": {grant.RecordEvicting, true, grant.RecordEvicting},
	} {
		r.State, r.GraceKept = c.state, c.kept
		if state, grace := r.SeenBy("gpu-01"); state != c.want || grace != 30 {
			t.Errorf("%s: the agent sees %s with %d s, want %s with 30 s", name, state, grace, c.want)
		}
	}
}
