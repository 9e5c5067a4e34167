package lead

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/grant"
)

// submission is one of an allocation, as a client sends it.
func (x *scene) submission(name, hash, id string) *submission {
	x.t.Helper()
	document := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"resources":{"requests":{"nvidia.com/gpu":"1"}}}}`, name)
	doc, status := api.DecodeAllocation(document)
	if status != nil {
		x.t.Fatal(status)
	}
	s, status := x.submissionOfAllocation(Submitted{Namespace: "default", Document: document, Hash: hash, RequestID: id}, doc)
	if status != nil {
		x.t.Fatal(status)
	}
	return s
}

// TestARepeatedRequest: the same id and document name what was made; anything else is
// refused.
func TestARepeatedRequest(t *testing.T) {
	x := newScene(t)
	x.accepts(x.submission("a", "hash", "id"))
	first := x.work.Units["default/alloc/a/0"]
	x.settles(first, grant.Reserved)
	for name, c := range map[string]struct {
		s        *submission
		repeated bool
		says     string
	}{
		"the same":                  {x.submission("a", "hash", "id"), true, ""},
		"another document":          {x.submission("a", "other", "id"), false, "was used for another document"},
		"another name":              {x.submission("b", "hash", "id"), false, "has been deleted since"},
		"the same name":             {x.submission("a", "hash", "another"), false, "already exists"},
		"the same name, without id": {x.submission("a", "hash", ""), false, "already exists"},
	} {
		u, repeated, status := x.accept(c.s)
		switch {
		case repeated != c.repeated || (status == nil) != c.repeated:
			t.Errorf("%s: repeated %t, %v", name, repeated, status)
		case c.repeated && u != first:
			t.Errorf("%s: %s", name, u.Path)
		case !c.repeated && (status.Code != 409 || !strings.Contains(status.Message, c.says)):
			t.Errorf("%s: %v, want 409 with %q", name, status, c.says)
		}
	}
	first.Record.UID = "another" // it was deleted and made anew without an id
	if _, _, status := x.accept(x.submission("a", "hash", "id")); status == nil {
		t.Error("another object of the name counts as the one that was made")
	}
}

// TestANameThatIsJustBeingTakenIsWaitedFor: a refusal would tell of an object that may
// come to nothing.
func TestANameThatIsJustBeingTakenIsWaitedFor(t *testing.T) {
	x := newScene(t)
	first := x.submission("a", "hash", "id")
	x.accepts(first)
	for id, waits := range map[string]bool{"": true, "another": true, "id": false} {
		if u := x.undecided(x.submission("a", "hash", id)); u != nil != waits {
			t.Errorf("id %q waits for %v", id, u)
		}
	}
	x.says(first.units[0], grant.Reserved)
	if x.answers(); x.undecided(x.submission("a", "hash", "")) != nil {
		t.Error("what is stored is waited for")
	}
}

// TestTheCensusAgreesWithTheUnits: whatever comes and goes. Check compares the two.
func TestTheCensusAgreesWithTheUnits(t *testing.T) {
	x := newScene(t)
	x.submitJob("j", 3, 1)
	x.accepts(x.submission("a", "", ""))
	counted := x.used("default")
	for _, u := range x.work.Units {
		u.SetCounted(count.Use{})
	}
	x.census = work.Census{}
	if again := x.used("default"); again != counted || again.Allocations != 4 || again.Jobs != 1 {
		t.Errorf("kept %+v, counted %+v", counted, again)
	}
	a := x.work.Units["default/alloc/a/0"]
	x.do(func() { x.removeUnit(a); x.removeUnit(a) })
	if got := x.used("default").Allocations; got != 3 {
		t.Errorf("%d allocations are left, want 3", got)
	}
	x.check()
}

// TestWhatTheStoreTakesInOneTxn: a submission that needs more is refused at once.
func TestWhatTheStoreTakesInOneTxn(t *testing.T) {
	for less, refused := range map[int]bool{1: true, 0: false} {
		all := newScene(t)
		x := newSceneOn(t, sceneRules(), all.opsOf(all.submission("a", "", ""))-less)
		s := x.submission("a", "", "")
		_, _, status := x.accept(s)
		if (status != nil) != refused || status != nil && status.Code != 422 {
			t.Errorf("%d operations less: %v", less, status)
		}
	}
}

// TestADeletionIsAnsweredWhenItIsDurable: and the second one as well, or with 404.
func TestADeletionIsAnsweredWhenItIsDurable(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 2, "")
	x.clear()
	x.give(ClientRequest{1, DeleteAllocation{Namespace: "default", Name: "a"}})
	if x.did(post.AnswerClient) {
		t.Error("it is answered before it is durable")
	}
	x.answers()
	if !x.did(post.AnswerClient) || x.code() != 0 {
		t.Errorf("answered %v", x.status())
	}

	x.clear() // of what leaves already
	x.give(ClientRequest{2, DeleteAllocation{Namespace: "default", Name: "a"}})
	if x.did(post.AnswerClient) || !x.did(post.AskSettled) {
		t.Error("it is answered before all that landed is known")
	}
	x.settles(a, grant.Tombstone)
	for _, e := range x.left {
		if e.Kind == post.AskSettled {
			x.give(SettleAnswer{e.Token})
		}
	}
	if x.code() != 404 {
		t.Errorf("gone meanwhile: answered %v", x.status())
	}
	x.clear()
	if x.give(ClientRequest{3, DeleteAllocation{Namespace: "default", Name: "a"}}); x.code() != 404 {
		t.Errorf("of what is gone: answered %v", x.status())
	}
}

// TestOnlyARefusalOfWhatHasBegunIsFinal: others are served again, with what landed
// meanwhile.
func TestOnlyARefusalOfWhatHasBegunIsFinal(t *testing.T) {
	x := newScene(t)
	x.submitJob("j", 2, 1)
	x.settles(x.work.Units["default/job/j/0"], grant.Reserved)
	final := func(r Request) bool {
		x.clear()
		x.give(ClientRequest{9, r})
		x.answers()
		for _, e := range x.left {
			if e.Kind == post.AnswerClient {
				return e.Final
			}
		}
		t.Fatalf("%T has no answer", r)
		return false
	}
	for want, requests := range map[bool][]Request{
		false: {
			DeleteAllocation{Namespace: "default", Name: "none"}, DeleteAllocation{Namespace: "default", Name: "j-0"}, FenceNode{Node: "none"},
			EvictUnit{Options: EvictOptions{Namespace: "default", Name: "none"}}, EndJob{Namespace: "default", Name: "none"}, PatchNode{Node: "none"},
		},
		true: {FenceNode{Node: "n1"}, ReconcileNode{Node: "none"}, DrainNode{Node: "n2"}},
	} {
		for _, r := range requests {
			if final(r) != want {
				t.Errorf("the answer to %T is final: %t", r, !want)
			}
		}
	}
}

// TestAClientWaitsAsLongAsItAsked: until its unit runs, or its time is over; in any
// case until the store has the unit.
func TestAClientWaitsAsLongAsItAsked(t *testing.T) {
	create := func(x *scene, gpus string, wait time.Duration) {
		document := fmt.Appendf(nil, `{"metadata":{"name":"a"},"spec":{"resources":{"requests":{"nvidia.com/gpu":%q}}}}`, gpus)
		doc, status := api.DecodeAllocation(document)
		if status != nil {
			t.Fatal(status)
		}
		x.clear()
		x.give(ClientRequest{1, CreateAllocation{Submitted{Namespace: "default", Document: document}, doc, wait}})
	}
	x := newScene(t)
	create(x, "9", 0)
	if x.did(post.AnswerClient) {
		t.Error("it is answered before it is stored")
	}
	if x.answers(); !x.did(post.AnswerClient) {
		t.Error("it is not answered though nobody wants to wait")
	}
	x = newScene(t)
	create(x, "9", time.Minute)
	x.answers()
	if x.pass(time.Minute - 1); x.did(post.AnswerClient) {
		t.Error("it is answered too early")
	}
	if x.pass(1); !x.did(post.AnswerClient) {
		t.Error("it is not answered in time")
	}
	x = newScene(t)
	create(x, "2", time.Minute)
	x.says(x.work.Units["default/alloc/a/0"], grant.Reserved)
	if x.answers(); !x.did(post.AnswerClient) {
		t.Error("it is not answered though it runs")
	}
	x = newScene(t)
	create(x, "9", time.Minute)
	x.answers()
	x.give(ClientGone{1})
	if x.pass(time.Hour); x.did(post.AnswerClient) {
		t.Error("who has given up is answered")
	}
}

// TestWhomAnEvictionMayName: what is stored and runs, with a member on the node.
func TestWhomAnEvictionMayName(t *testing.T) {
	x := newScene(t)
	a := x.running("a", 2, "")
	waits := x.submit("w", 9, "")
	for name, c := range map[string]struct {
		o    EvictOptions
		code int
	}{
		"it runs":                   {EvictOptions{Namespace: "default", Name: "a"}, 0},
		"it runs, on that node":     {EvictOptions{Namespace: "default", Name: "a", Node: "n1"}, 0},
		"it runs, on another":       {EvictOptions{Namespace: "default", Name: "a", Node: "n2"}, 404},
		"by its transaction":        {EvictOptions{Tx: a.Attempt.Machine.ID()}, 0},
		"another transaction":       {EvictOptions{Tx: "none"}, 404},
		"it is not there":           {EvictOptions{Namespace: "default", Name: "none"}, 404},
		"it waits, and is unstored": {EvictOptions{Namespace: "default", Name: "w"}, 404},
	} {
		_, status := x.evictee(c.o)
		if code := codeOf(status); code != c.code {
			t.Errorf("%s: %v", name, status)
		}
	}
	x.answers()
	if _, status := x.evictee(EvictOptions{Namespace: "default", Name: "w"}); codeOf(status) != 409 || waits.Attempt != nil {
		t.Errorf("it waits: %v", status)
	}
	b := x.submit("b", 2, "")
	b.Stored = 1
	if _, status := x.evictee(EvictOptions{Tx: b.Attempt.Machine.ID()}); codeOf(status) != 409 {
		t.Errorf("it is undecided: %v", status)
	}
}

func codeOf(s *api.Status) int {
	if s == nil {
		return 0
	}
	return s.Code
}
