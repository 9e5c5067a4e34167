package agent_test

import (
	"testing"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// TestAnEndIsReportedUntilItsRecordIsTerminal: also over a restart of the agent, which
// finds all folders of ended work, and which may not report them for ever: their output
// would be kept for ever, too.
func TestAnEndIsReportedUntilItsRecordIsTerminal(t *testing.T) {
	for name, over := range map[string]bool{"the record is COMMITTED": false, "the record is gone": true} {
		t.Run(name, func(t *testing.T) {
			r := newWorkRig(t)
			r.start()
			l := r.lead(1)
			r.grant(l, "a", 1)
			l.send(startOf("a", "exit 3"))
			l.work("a", musterv1.WorkState_ENDED)
			if over {
				r.store.set(func(s *store) { delete(s.records, "a") })
				l.send(&musterv1.Release{Tx: "a", Epoch: 1})
				mustBe(t, l.reply("a"), musterv1.Reply_FREED)
				l.send(&musterv1.Forget{Tx: "a"})
				mustBe(t, l.reply("a"), musterv1.Reply_NONE)
			}
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			r.start()
			r.lead(1)
			reports := func() int {
				next, err := r.try(r.store.hello(1)) // a session begins with all states
				if err != nil {
					return -1 // the session before is not closed yet
				}
				return len(next.hello.GetOccupancy().GetWork())
			}
			want := 1
			if over {
				want = 0
			}
			eventually(t, "the agent reports what is not over", func() bool { return reports() == want })
		})
	}
}
