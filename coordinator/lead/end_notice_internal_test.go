package lead

import (
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

const usr1 = `"signal":"USR1","signalBefore":"20s",`

// The first start has the whole time; one after an eviction has the rest of ttl, and where
// less than signalBefore is left an eviction alone sends the signal.
func TestAStartSaysWhenTheSignalIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		spec, template string
		ran            time.Duration
		first, second  time.Duration
	}{
		"a deadline counts from each start": {`"activeDeadlineSeconds":60,`, "", 30 * time.Second, 40 * time.Second, 40 * time.Second},
		"ttl goes on":                       {"", `"ttl":"60s",`, 30 * time.Second, 40 * time.Second, 10 * time.Second},
		"too little is left":                {"", `"ttl":"60s",`, 50 * time.Second, 40 * time.Second, 0},
		"no end is known":                   {"", "", 30 * time.Second, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWorkScene(t)
			x.clear()
			u := x.limited(c.spec, c.template+command+usr1)
			x.dueIn(c.first)
			x.pass(c.ran)
			x.finish(func() { x.evict(u, txn.EvictAsked{Reason: "Drained"}) })
			x.settles(u, grant.Tombstone)
			x.clear()
			x.holdsAll(u)
			x.dueIn(c.second)
		})
	}
}

// dueIn checks that one start was sent, whose signal is due after some time.
func (x *scene) dueIn(want time.Duration) {
	x.t.Helper()
	got := x.starts()
	if len(got) != 1 || got[0].Notice.Signal != 10 || got[0].Notice.Before != 20*time.Second || (got[0].Notice.After-want).Abs() > time.Second {
		x.t.Fatalf("starts %+v, want one with a notice of USR1 after %s", got, want)
	}
}

// The signal is written once, and the next leader does not write it again.
func TestTheSignalIsOnRecord(t *testing.T) {
	x := newWorkScene(t)
	u := x.limited(`"activeDeadlineSeconds":60,`, command+usr1)
	report := func(x *scene, u *work.Unit) {
		t.Helper()
		x.hear(grant.Worked{Node: x.memberNode(u, 0), Tx: u.Attempt.Machine.ID(), States: []grant.WorkState{{Phase: grant.WorkRunning, Signaled: true}}})
		x.answers()
	}
	x.pass(40 * time.Second)
	report(x, u)
	written := u.Attempt.Ready
	if written.SignaledMillis == 0 || written.AtMillis == 0 {
		t.Fatalf("the key has %+v, want an instant of the signal", written)
	}
	x.pass(time.Second)
	report(x, u)
	next := x.succeeded()
	next.give(ResumeWork{})
	next.answers()
	u = next.work.Units[u.Path]
	report(next, u)
	if got := u.Attempt.Ready; got.SignaledMillis != written.SignaledMillis || got.AtMillis != written.AtMillis || got.Revision != written.Revision {
		t.Errorf("the next leader has %+v, want %+v", got, written)
	}
	next.check()
}
