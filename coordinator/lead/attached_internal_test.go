package lead

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/grant"
)

// TestAnAllocationEndsWithItsAttachedWork: launchers report how the members have ended.
func TestAnAllocationEndsWithItsAttachedWork(t *testing.T) {
	for name, c := range map[string]struct {
		code   int
		phase  api.Phase
		reason string
	}{
		"success": {0, api.Succeeded, "its work is done"},
		"failure": {3, api.Failed, "a exited with code 3"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			u := x.submit("a", 8, "")
			x.holdsAll(u)
			node, tx := x.memberNode(u, 0), u.Attempt.Machine.ID()
			x.hear(grant.Worked{Node: node, Tx: tx, States: []grant.WorkState{{Phase: grant.WorkRunning}}})
			if u.Life.EndAsked() {
				t.Fatal("the unit ends while its work runs")
			}
			x.ends(u, 0, c.code, grant.WorkCompleted)
			x.answers()
			x.settles(u, grant.Tombstone)
			if u.Phase() != c.phase || u.Record.Reason != c.reason || len(u.Record.Exits) != 1 || u.Record.Exits[0].Code != c.code {
				t.Errorf("the unit is %s, %q, with the exits %+v", u.Phase(), u.Record.Reason, u.Record.Exits)
			}
			x.check()
		})
	}
}

// TestAJobWithoutACommandFollowsItsPolicy: its attached work counts as that of a command.
func TestAJobWithoutACommandFollowsItsPolicy(t *testing.T) {
	x := newScene(t)
	u := x.submitDocument([]byte(`{"metadata":{"name":"train"},"spec":{"parallelism":1,"backoffLimit":1,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":"8"}}}}}}`))
	x.answers()
	x.holdsAll(u)
	x.ends(u, 0, 1, grant.WorkCompleted)
	x.answers()
	x.settles(u, grant.Tombstone)
	if u.Phase() != api.Pending || u.Record.Retries != 1 {
		t.Fatalf("the unit is %s after %d retries, want a retry", u.Phase(), u.Record.Retries)
	}
	x.check()
}

// TestTimeEndsAttachedWorkWithAGrace: a launcher that has attached nothing has none.
func TestTimeEndsAttachedWorkWithAGrace(t *testing.T) {
	for attached, want := range map[bool]int{true: DefaultGrace, false: 0} {
		t.Run(fmt.Sprint(attached), func(t *testing.T) {
			x := newScene(t)
			u := x.submit("a", 8, `"ttl":"10s",`)
			x.holdsAll(u)
			if attached {
				x.hear(grant.Worked{Node: x.memberNode(u, 0), Tx: u.Attempt.Machine.ID(), States: []grant.WorkState{{Phase: grant.WorkRunning}}})
			}
			limit, limited := work.LimitOf(u.Attempt)
			if !limited {
				t.Fatal("the unit has no limit")
			}
			x.do(func() { x.expire(u.Attempt, limit) })
			if !u.Life.EndAsked() || int(u.Life.Ending().GraceSeconds) != want {
				t.Errorf("the end is %+v, want a grace of %d s", u.Life.Ending(), want)
			}
		})
	}
}
