package lead

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// Work which is done by itself while an eviction is under way is done: the unit does not
// start again. Work which the eviction has stopped starts again. A preemptor which gives up
// leaves no victim without work.
func TestWorkDoneUnderNoticeIsDone(t *testing.T) {
	drains := func(x *scene, u *work.Unit) { x.do(func() { x.evict(u, txn.EvictAsked{Reason: "Drained"}) }) }
	suspends := func(x *scene, u *work.Unit) { x.wants(u, suspend) }
	preempts := func(x *scene, u *work.Unit) {
		b := x.accepted("b", 8, `"priority":500,"preemptionPolicy":"PreemptLowerPriority",`)
		if x.says(b, grant.Waiting); u.Attempt.Machine.State() != txn.Claimed {
			t.Fatalf("the victim is %s, want Claimed", u.Attempt.Machine.State())
		}
	}
	lands := (*scene).answers
	fails := func(x *scene) { x.give(WriteAnswer{x.next().Token, txn.Conflict, 0, nil}) }
	none := func(*scene) {}
	for name, c := range map[string]struct {
		notice        func(*scene, *work.Unit)
		reason        string
		code          int
		before, after func(*scene) // the end of the work
		want          api.Phase
	}{
		"done before a drain is written":    {drains, "Completed", 0, none, lands, api.Succeeded},
		"done while it drains":              {drains, "Completed", 0, lands, lands, api.Succeeded},
		"stopped by a drain, with code 0":   {drains, "Stopped", 0, lands, lands, api.Pending},
		"failed while it drains":            {drains, "Completed", 1, lands, lands, api.Pending},
		"failed before a drain is written":  {drains, "Completed", 1, none, lands, api.Failed},
		"done while a preemptor waits":      {preempts, "Completed", 0, lands, lands, api.Succeeded},
		"done before a preemption is noted": {preempts, "Completed", 0, none, lands, api.Succeeded},
		"done while a preemptor gives up":   {preempts, "Completed", 0, none, fails, api.Succeeded},
		"stopped by a preemption":           {preempts, "Stopped", 143, lands, lands, api.Pending},
		"done while the owner suspends it":  {suspends, "Completed", 0, lands, lands, api.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorkScene(t)
			u := x.submitWork("train", 2, gangOfTwo)
			x.holdsAll(u)
			c.notice(x, u)
			c.before(x)
			x.ends(u, 0, c.code, c.reason)
			x.ends(u, 1, c.code, c.reason)
			c.after(x)
			x.answers()
			x.settles(u, grant.Tombstone)
			for _, b := range x.work.Units { // the preemptor commits, and its victim is RELEASED with it
				if b != u && b.Attempt != nil {
					x.settles(b, grant.Reserved)
				}
			}
			if got := api.Phase(x.stored(u).Phase); got != c.want || got.Ended() && u.Job.Record.Phase != string(got) {
				t.Errorf("the unit is %s, its job %s, want %s", got, u.Job.Record.Phase, c.want)
			}
			x.check()
		})
	}
}
