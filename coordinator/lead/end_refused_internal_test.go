package lead

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
)

// refuseOnce has the store answer all questions, and refuse the write of that number, from
// 0 on. It counts the writes on in n.
func (x *scene) refuseOnce(n *int, number int) {
	x.t.Helper()
	for len(x.asked) > 0 {
		if x.asked[0].Kind == post.ReadKey {
			x.answer()
			continue
		}
		if *n++; *n-1 == number {
			x.give(WriteAnswer{x.next().Token, txn.Conflict, 0, errors.New("no space")})
			continue
		}
		x.answer()
	}
}

// cancelsUntilTaken asks for the end of a job, again and again where the store refuses it.
func (x *scene) cancelsUntilTaken(j *work.Job) {
	x.do(func() {
		x.cancelJob(j, record.Cancellation{Reason: "UserRequested"}, func(s *api.Status) {
			if s != nil && s.Code == 503 {
				x.post.After(time.Second, func() { x.cancelJob(j, record.Cancellation{Reason: "UserRequested"}, func(*api.Status) {}) })
			}
		})
	})
}

// A job that waits for another one ends, whichever of its writes the store refuses once:
// where the dependency cannot come true, where its time to start is over, where its owner
// cancels it, and where these come together.
func TestADependentEndsThoughAWriteIsRefused(t *testing.T) {
	const wait = `"gangScheduling":{"minMembers":1,"timeout":"60s"},`
	for _, members := range []int{1, 3} {
		for name, events := range map[string]string{
			"its time":                       "t",
			"never":                          "n",
			"never, and its time":            "nt",
			"its time, and never":            "tn",
			"its time, and cancelled":        "tc",
			"never, and cancelled":           "nc",
			"never, its time and cancelled":  "ntc",
			"its time, never, and cancelled": "tnc",
			"cancelled, its time, and never": "ctn",
			"cancelled, never, and its time": "cnt",
		} {
			t.Run(fmt.Sprintf("%d/%s", members, name), func(t *testing.T) {
				for number, writes := 0, 1; number < writes; number++ {
					x := newWorkScene(t)
					first := x.suspended("first")
					u := x.submitLife("last", members, dependenciesOf("afterok:first"), wait)
					x.answers()
					writes = 0
					for _, e := range events { // what comes meets the writes of what came before
						switch e {
						case 't':
							x.pass(60*time.Second + work.ClockError)
						case 'n':
							x.cancelsUntilTaken(first.Job)
							for range 3 {
								if len(x.asked) > 0 && api.Phase(first.Job.Record.Phase) != api.Cancelled {
									x.answer()
								}
							}
						case 'c':
							x.cancelsUntilTaken(u.Job)
						}
					}
					for range 20 {
						x.refuseOnce(&writes, number)
						x.pass(time.Second)
					}
					for _, o := range u.Job.Units {
						if !o.Phase().Ended() {
							t.Errorf("write %d refused: unit %s is %s, ending %t, its job %s", number, o.Path, o.Phase(), o.Life.EndAsked(), u.Job.Record.Phase)
						}
					}
					if !api.Phase(u.Job.Record.Phase).Ended() {
						t.Errorf("write %d refused: the job is %s", number, u.Job.Record.Phase)
					}
					x.check()
				}
			})
		}
	}
}

// An allocation that is deleted as its time to start ends, ends also where the store
// refuses both writes: no client asks for its deletion again, and its time stays over.
func TestAnOverdueAllocationEndsThoughItsDeletionIsRefused(t *testing.T) {
	for name, deletedFirst := range map[string]bool{"its time, then deleted": false, "deleted, then its time": true} {
		t.Run(name, func(t *testing.T) {
			x := newWorkScene(t)
			u := x.accepted("a", 64, `"gangScheduling":{"timeout":"60s"},`)
			deletion := func() { x.do(func() { x.end(u, txn.ReleaseAsked{Reason: "UserRequested"}) }) }
			if deletedFirst {
				deletion()
			}
			x.pass(60*time.Second + work.ClockError)
			if !deletedFirst {
				deletion()
			}
			for range 2 {
				if len(x.asked) > 0 {
					x.give(WriteAnswer{x.next().Token, txn.Conflict, 0, errors.New("no space")})
				}
			}
			for range 10 {
				x.answers()
				x.pass(time.Second)
			}
			if !u.Phase().Ended() {
				t.Errorf("the allocation is %s, its end is asked for: %t", u.Phase(), u.Life.EndAsked())
			}
			x.check()
		})
	}
}
