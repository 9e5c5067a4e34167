package lead

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// limited is a job of one member that runs, and is held since the present instant.
func (x *scene) limited(spec, template string) *work.Unit {
	x.t.Helper()
	u := x.submitDocument(fmt.Appendf(nil, `{"metadata":{"name":"j"},"spec":{%s"template":{"spec":{%s"resources":{"requests":{"nvidia.com/gpu":"1"}}}}}}`, spec, template))
	x.answers()
	x.holdsAll(u)
	return u
}

func TestAUnitEndsWithItsTime(t *testing.T) {
	const deadline, ttl = `"activeDeadlineSeconds":60,`, `"ttl":"90s",`
	for name, c := range map[string]struct {
		spec, template string
		after          time.Duration
		phase          api.Phase
		message        string
		grace          int64
	}{
		"a deadline is a failure":              {deadline, "", time.Minute, api.Failed, "DeadlineExceeded: the unit has run for the 1m0s of activeDeadlineSeconds", 0},
		"a ttl is a success":                   {"", ttl, 90 * time.Second, api.Succeeded, "TTLExpired: the 1m30s of ttl have passed", 0},
		"the first of both":                    {deadline, ttl, time.Minute, api.Failed, "DeadlineExceeded", 0},
		"a command gets a grace":               {deadline, command, time.Minute, api.Failed, "DeadlineExceeded", DefaultGrace},
		"the greatest deadline overflows none": {`"activeDeadlineSeconds":9223372036854775807,`, ttl, 90 * time.Second, api.Succeeded, "TTLExpired", 0},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorkScene(t)
			u := x.limited(c.spec, c.template)
			x.clear()
			x.pass(c.after + work.ClockError - time.Millisecond)
			if x.answers(); u.Phase() != api.Running {
				t.Fatalf("before its time the unit is %s", u.Phase())
			}
			x.pass(time.Millisecond)
			x.answers()
			tx := u.Attempt.Machine.ID()
			if u.Phase() != api.Terminating {
				t.Fatalf("after its time the unit is %s", u.Phase())
			}
			for _, e := range x.left {
				if r, is := e.Command.(grant.Release); is && r.Tx == tx && r.Grace != time.Duration(c.grace)*time.Second {
					t.Errorf("a grace of %s, want %d s", r.Grace, c.grace)
				}
			}
			x.settles(u, grant.Tombstone)
			if got := x.stored(u); api.Phase(got.Phase) != c.phase || !strings.HasPrefix(got.Reason, c.message) {
				t.Errorf("the unit is %s: %s, want %s: %s", got.Phase, got.Reason, c.phase, c.message)
			}
			if j := u.Job.Record; api.Phase(j.Phase) != c.phase || !strings.HasPrefix(j.Message, c.message) {
				t.Errorf("the job is %s: %s, want %s: %s", j.Phase, j.Message, c.phase, c.message)
			}
			x.check()
		})
	}
}

// The instants are in the store: another leader ends the unit at the same time.
func TestTheNextLeaderKeepsTheTime(t *testing.T) {
	x := newWorkScene(t)
	u := x.limited(`"activeDeadlineSeconds":3600,`, "")
	x.pass(50 * time.Minute)
	x.answers()
	next := x.succeeded()
	next.give(ResumeWork{})
	next.answers()
	u = next.work.Units[u.Path]
	next.pass(10*time.Minute + work.ClockError - time.Millisecond)
	if next.answers(); u.Phase() != api.Running {
		t.Fatalf("before its time the unit is %s", u.Phase())
	}
	next.pass(time.Millisecond)
	if next.answers(); u.Phase() != api.Terminating {
		t.Errorf("after its time the unit is %s", u.Phase())
	}
}

// The time of ttl goes on while an evicted unit waits; a deadline begins anew with the
// next start.
func TestTtlGoesOnOverAnEviction(t *testing.T) {
	for name, c := range map[string]struct {
		spec, template string
		want           api.Phase
	}{
		"ttl":      {"", `"ttl":"60s",`, api.Terminating},
		"deadline": {`"activeDeadlineSeconds":60,`, "", api.Running},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorkScene(t)
			u := x.limited(c.spec, c.template)
			x.finish(func() { x.evict(u, txn.EvictAsked{Reason: "Drained"}) })
			x.settles(u, grant.Tombstone)
			if u.Attempt == nil {
				t.Fatalf("the unit is %s and not tried again", u.Phase())
			}
			x.pass(58 * time.Second)
			x.holdsAll(u)
			x.pass(work.ClockError + 2*time.Second)
			if x.answers(); u.Phase() != c.want {
				t.Errorf("a minute after the first start the unit is %s, want %s", u.Phase(), c.want)
			}
		})
	}
}
