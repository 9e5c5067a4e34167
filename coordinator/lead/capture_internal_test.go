package lead

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestASnapshotHasTheFailedAttemptsOfUnits: the leader that goes on waits for the rest of a
// unit's backoff, avoids the same nodes, and counts further failures from there.
func TestASnapshotHasTheFailedAttemptsOfUnits(t *testing.T) {
	x := newScene(t)
	u := x.submit("a", 2, "")
	for range 3 {
		x.settles(u, grant.No)
		x.pass(time.Millisecond)
		for range 2 { // until the next try
			if u.Attempt == nil {
				x.pass(u.Wait.Rested.Sub(x.clock))
			}
		}
	}
	x.settles(u, grant.No)
	captured := x.capture().Refused
	want := []RefusedUnit{{Unit: u.Path, UID: u.Record.UID, Times: 4, Avoid: map[resource.NodeID]int{}, Until: u.Wait.Rested}}
	for id, times := range u.Wait.Avoid {
		want[0].Avoid[id] = times
	}
	if diff := cmp.Diff(want, captured); diff != "" || len(u.Wait.Avoid) == 0 {
		t.Fatalf("the snapshot (-want +got):\n%s", diff)
	}

	y := newScene(t)
	y.clock = x.clock
	waits := y.submit("a", 100, "") // nothing tries it before the snapshot is read
	y.answers()
	captured[0].UID = waits.Record.UID
	y.do(func() { y.resumeRefused(captured) })
	if diff := cmp.Diff(want[0].Avoid, waits.Wait.Avoid); diff != "" || waits.Wait.Refusals != 4 || waits.Life.Phase() != work.Resting || !waits.Wait.Rested.Equal(u.Wait.Rested) {
		t.Errorf("%d refusals, %s until %v, avoids (-want +got):\n%s", waits.Wait.Refusals, waits.Life.Phase(), waits.Wait.Rested, diff)
	}
	if y.pass(u.Wait.Rested.Sub(y.clock)); waits.Life.Phase() != work.Waiting {
		t.Errorf("after the backoff the unit is %s, want waiting", waits.Life.Phase())
	}
	if err := waits.Check(); err != nil {
		t.Error(err)
	}

	captured[0].UID, captured[0].Times = "of another unit at this path", 9
	if y.do(func() { y.resumeRefused(captured) }); waits.Wait.Refusals != 4 {
		t.Errorf("%d refusals are of another unit", waits.Wait.Refusals)
	}
}
