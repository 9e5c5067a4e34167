package lead

import (
	"fmt"
	"github.com/musterd/muster/coordinator/lead/work"
	"testing"
)

// TestAMemberCountsItself: the reason that is stored with a new member of a group says how
// many members there are with it.
func TestAMemberCountsItself(t *testing.T) {
	x := newScene(t)
	for i, want := range []string{
		"1 of 3 members of group g have arrived; they start together",
		"2 of 3 members of group g have arrived; they start together",
		"", // it is about to be tried
	} {
		u := x.submit(fmt.Sprint("m", i), 1, `"scheduling":{"gangScheduling":{"groupId":"g","minMembers":3}},`)
		got := ""
		if w := u.Wait.Told.Waiting; w != nil {
			got = w.Message
		}
		if got != want {
			t.Errorf("member %d of 3 waits for %q, want %q", i+1, got, want)
		}
		if x.answers(); got != "" && x.couldBegin(u) {
			t.Errorf("%d of 3 could begin", i+1)
		}
	}
}

// TestAGroupThatIsTriedWaitsForRoom: the store has the reason of each member, also
// after a suspension.
func TestAGroupThatIsTriedWaitsForRoom(t *testing.T) {
	x := newScene(t)
	first := x.accepted("m0", 9, pairOfGroup)
	second := x.accepted("m1", 9, pairOfGroup)
	x.seconds(2)
	for _, u := range []*work.Unit{first, second} {
		if got := x.waitsFor(u); got != "WaitingForResources" {
			t.Errorf("%s waits for %q", u.Path, got)
		}
	}
	x.changes(second, suspend)
	x.seconds(2)
	if got, want := x.storedWaiting(first).Message, "1 of 2 members of group g have arrived; they start together"; got != want {
		t.Errorf("without the suspended member it waits for %q, want %q", got, want)
	}
}

const pairOfGroup = `"scheduling":{"gangScheduling":{"groupId":"g","minMembers":2}},`
