package lead

import (
	"fmt"
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
		if w := u.told.waiting; w != nil {
			got = w.Message
		}
		if got != want {
			t.Errorf("member %d of 3 waits for %q, want %q", i+1, got, want)
		}
		x.answers()
	}
}
