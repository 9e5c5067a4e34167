package work_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/txn"
)

// after is a life that has taken steps, with the store's phase first.
func after(p api.Phase, steps ...work.Step) work.Life {
	var l work.Life
	l.Restore(p)
	for _, s := range steps {
		l.Take(s, true)
	}
	return l
}

func TestEachPhaseIsReachedAndTheEndIsTheEnd(t *testing.T) {
	reached := map[work.Phase]bool{work.Creating: true}
	for range work.Phases {
		for s := range work.Steps {
			for p := range work.Phases {
				next, ok := p.After(s, true)
				switch {
				case ok && p == work.Ended && next != work.Ended:
					t.Errorf("what has ended is %s after it was %s", next, s)
				case ok && reached[p]:
					reached[next] = true
				}
			}
		}
	}
	for p := range work.Phases {
		if !reached[p] {
			t.Errorf("no steps lead to %s", p)
		}
	}
}

func TestThePhaseOfAUnitInTheStore(t *testing.T) {
	for p, want := range map[api.Phase]work.Phase{
		api.Pending: work.Waiting, api.Running: work.Live, api.Terminating: work.Closing,
		api.Succeeded: work.Ended, api.Failed: work.Ended, api.Cancelled: work.Ended,
	} {
		l := after(p)
		if l.Phase() != want {
			t.Errorf("a unit that is %s in the store is %s, want %s", p, l.Phase(), want)
		}
	}
}

func TestAUnitOutsideTheStoreIsCreatedAgain(t *testing.T) {
	var l work.Life
	l.Take(work.StepLaunched, false)
	if l.Take(work.StepAborted, false); l.Phase() != work.Creating || l.Check() != nil {
		t.Errorf("after its attempt a unit that is not stored is %s (%v), want creating", l.Phase(), l.Check())
	}
}

func TestAStepThatTheTableDoesNotHaveIsTold(t *testing.T) {
	l := after(api.Pending, work.StepCommitted, work.StepStored)
	if err := l.Check(); err == nil || err.Error() != "is waiting and cannot be committed" {
		t.Errorf("got %v, want the first step alone", err)
	}
}

func TestWhatALifeMustNotBe(t *testing.T) {
	asked := txn.ReleaseAsked{GraceSeconds: 3}
	for name, c := range map[string]struct {
		life func() work.Life
		want string
	}{
		"a creation of a stored unit": {
			func() work.Life { l := after(api.Pending); l.Begin(work.WriteCreation); return l },
			"waiting, write 1, end asked false, gone false: want a new unit to be creating",
		},
		"an adoption beside an attempt": {
			func() work.Life { l := after(api.Running); l.Begin(work.WriteAdoption); return l },
			"live, write 2, end asked false, gone false: want a unit for adoption to wait",
		},
		"an adoption while waiting": {func() work.Life { l := after(api.Pending); l.Begin(work.WriteAdoption); return l }, ""},
		"an adoption in the backoff": {
			func() work.Life { l := after(api.Pending, work.StepRefused); l.Begin(work.WriteAdoption); return l }, "",
		},
		"a request that nobody made is written": {
			func() work.Life { l := after(api.Running); l.Begin(work.WriteEndRequest); return l },
			"live, write 3, end asked false, gone false: want a request to write",
		},
		"an end that nobody asked for is written": {
			func() work.Life { l := after(api.Pending); l.Begin(work.WriteEnd); return l },
			"waiting, write 4, end asked false, gone false: want a request to write",
		},
		"a request is written": {
			func() work.Life {
				l := after(api.Running)
				l.AskEnd(asked, 1, nil)
				l.Begin(work.WriteEndRequest)
				return l
			}, "",
		},
		"a second document is written": {
			func() work.Life {
				l := after(api.Running)
				l.Begin(work.WriteChange)
				l.Begin(work.WriteEnd)
				l.Finish(work.WriteEnd)
				return l
			},
			"is being written by Txn 6, and Txn 4 cannot begin",
		},
		"an end is asked for after the removal": {
			func() work.Life { l := after(api.Succeeded, work.StepRemoved); l.AskEnd(asked, 1, nil); return l },
			"is gone and cannot be asked to end",
		},
		"a unit ends beside its request": {
			func() work.Life {
				l := after(api.Pending)
				l.AskEnd(asked, 1, nil)
				l.Begin(work.WriteEndRequest)
				l.Begin(work.WriteEnd)
				return l
			}, "",
		},
		"a document is written": {func() work.Life { l := after(api.Running); l.Begin(work.WriteChange); return l }, ""},
	} {
		l, got := c.life(), ""
		if err := l.Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// naive is a life in lists: the requests, newest last, and whether the store has the last
// request.
type naive struct {
	requests []txn.ReleaseAsked
	instants []int64
	askers   []*post.Author
	durable  bool
	write    work.Write
}

// TestALifeIsWhatWasAskedLast compares requests and writes with lists.
func TestALifeIsWhatWasAskedLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, n := after(api.Running), naive{}
		for range rapid.IntRange(1, 40).Draw(t, "inputs") {
			asked, instant := txn.ReleaseAsked{GraceSeconds: rapid.Int64Range(0, 9).Draw(t, "grace")}, rapid.Int64Range(1, 9).Draw(t, "instant")
			switch w := work.Write(rapid.IntRange(int(work.WriteEndRequest), int(work.WriteChange)).Draw(t, "write")); rapid.IntRange(0, 5).Draw(t, "input") {
			case 0:
				by := &post.Author{}
				l.AskEnd(asked, instant, by)
				n.requests, n.instants, n.askers, n.durable = append(n.requests, asked), append(n.instants, instant), append(n.askers, by), false
			case 1:
				l.RestoreEnd(asked, instant)
				n.requests, n.instants, n.askers, n.durable = append(n.requests, asked), append(n.instants, instant), append(n.askers, nil), true
			case 2:
				l.EndAnswered(true)
				n.durable = len(n.requests) > 0
			case 3:
				l.EndAnswered(false)
				n.requests, n.instants, n.durable = nil, nil, false
			case 4:
				if l.IsBeingWritten() {
					continue
				}
				l.Begin(w)
				n.write = w
			default:
				if l.Finish(w); w == n.write {
					n.write = work.NoWrite
				}
			}
			want, got := "none", "none"
			if k := len(n.requests); k > 0 {
				want = fmt.Sprint(n.requests[k-1], n.instants[k-1], n.durable)
			}
			if l.EndAsked() {
				got = fmt.Sprint(*l.Ending(), l.Asked(), l.EndDurable())
			} else if l.Asked() != 0 || l.EndDurable() {
				t.Fatalf("without a request: asked at %d, durable %t", l.Asked(), l.EndDurable())
			}
			var asker *post.Author
			if len(n.askers) > 0 {
				asker = n.askers[len(n.askers)-1]
			}
			if diff := cmp.Diff(want, got); diff != "" || l.Asker() != asker || l.Writing() != n.write {
				t.Fatalf("the request (-want +got):\n%s\nwrite %d, want %d; the last asker %t", diff, l.Writing(), n.write, l.Asker() == asker)
			}
			if waits := n.write != work.NoWrite && n.write != work.WriteEndRequest; l.IsBeingWritten() != waits || l.IsBeingAdopted() {
				t.Fatalf("write %d: is being written %t, adopted %t", n.write, l.IsBeingWritten(), l.IsBeingAdopted())
			}
		}
	})
}

func TestWhatIsRemovedIsGone(t *testing.T) {
	l := after(api.Succeeded)
	if l.Gone() {
		t.Error("what has ended is gone before the removal")
	}
	if l.Take(work.StepRemoved, true); !l.Gone() || l.Phase() != work.Ended || l.Check() != nil {
		t.Errorf("removed: gone %t, %s, %v", l.Gone(), l.Phase(), l.Check())
	}
}
