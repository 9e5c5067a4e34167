package lead

import (
	"slices"
	"testing"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/grant"
)

// TestACommitInDoubtStaysCharged: whether the commit has landed or not, nobody gets
// the quota of a unit before the leader knows.
func TestACommitInDoubtStaysCharged(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*scene)
		group  string // of the unit in doubt and of w
	}{
		"to a limit": {func(x *scene) { x.bounds("6", true) }, ""},
		"to a tree": {func(x *scene) {
			x.shares()
			x.running("b", 4, `"quota":{"groups":{"Org":"one"}},`)
		}, `"quota":{"groups":{"Org":"two"}},`},
	} {
		for _, lands := range []bool{true, false} {
			x := newScene(t)
			c.before(x)
			a := x.submit("a", 4, c.group)
			x.says(a, grant.Reserved)
			x.loses(lands)
			if x.submit("w", 4, c.group); x.asksFor("w") {
				t.Errorf("%s, lands %t: another unit gets the quota of a commit in doubt", name, lands)
			}
			x.answer() // the record is read
			if x.asksFor("w") {
				t.Errorf("%s, lands %t: another unit gets the quota of a commit that was read", name, lands)
			}
		}
	}
}

// TestNobodyIsEvictedBeforeAllNodesOfThePreemptorWait: a node that has not answered
// may say No, and then its victims would have ended for nothing.
func TestNobodyIsEvictedBeforeAllNodesOfThePreemptorWait(t *testing.T) {
	x := newScene(t)
	x.running("a", 8, "")
	x.running("c", 8, "")
	gang := x.submitDocument([]byte(`{"metadata":{"name":"gang"},"spec":{"priority":5,"parallelism":2,"template":{"spec":{"preemptionPolicy":"PreemptLowerPriority",
		"resources":{"requests":{"nvidia.com/gpu":"8"}},"scheduling":{"gangScheduling":{"minMembers":2}}}}}}`))
	x.answers()
	x.clear()
	x.hear(x.reply(gang, grant.Waiting))
	if x.did(post.WriteKeys) || len(x.commands()) > 0 {
		t.Errorf("one node waits: writes %d, commands %v", len(x.asked), x.commands())
	}
	x.settles(gang, grant.Waiting)
	for _, want := range []string{"n1 Evict", "n2 Evict"} {
		if !slices.Contains(x.commands(), want) {
			t.Errorf("both nodes wait: commands %v lack %s", x.commands(), want)
		}
	}
}

// TestTheHeadOfTheOrderGoesFirst: of two units for which there is room for one, the
// head of the order gets the room.
func TestTheHeadOfTheOrderGoesFirst(t *testing.T) {
	for name, c := range map[string]struct{ first, second, head string }{
		"of equals the earlier":  {"", "", "first"},
		"the greater priority":   {"", `"priority":3,`, "second"},
		"the earlier is greater": {`"priority":3,`, "", "first"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			a := x.running("a", 8, "")
			x.running("c", 8, "")
			x.submit("first", 8, c.first)
			x.accepted("second", 8, c.second)
			x.leaves("a")
			x.settles(a, grant.Tombstone)
			for _, unit := range []string{"first", "second"} {
				if asks := x.asksFor(unit); asks != (unit == c.head) {
					t.Errorf("the %s is tried: %t", unit, asks)
				}
			}
		})
	}
}

// TestAPromiseOfSomethingElseIsNoVote: the node is isolated, and the unit goes
// elsewhere.
func TestAPromiseOfSomethingElseIsNoVote(t *testing.T) {
	x := newScene(t)
	a := x.submit("a", 2, "")
	lie := x.reply(a, grant.Reserved)
	lie.Members[0].Assignment.GPUs = lie.Members[0].Assignment.GPUs[1:]
	x.clear()
	x.hear(lie)
	if !x.did(post.DistrustNode) {
		t.Errorf("%s is trusted though it promises one GPU of two", lie.Node)
	}
	x.answers()
	if x.pass(lastBackoff); !slices.Contains(x.commands(), "n2 Reserve") {
		t.Errorf("the other node is not asked: %v", x.commands())
	}
}
