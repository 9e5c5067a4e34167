package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
)

func user(tenant, name string) owner { return owner{tenant: resource.TenantID(tenant), user: name} }

// enter asks for a seat beside the test. The caller reads the answer once.
func enter(ctx context.Context, q *Queue, u owner) <-chan *api.Status {
	answer := make(chan *api.Status, 1) // one answer
	go func() {
		_, status := q.Enter(ctx, u)
		answer <- status
	}()
	synctest.Wait()
	return answer
}

// A flood of one tenant leaves seats for the others, and an honest client's request is
// the next but one: it waits for no more than one request of the flood.
func TestAnHonestClientBesideAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(4, 3)
		var waiting []<-chan *api.Status
		for i := range 100 {
			waiting = append(waiting, enter(t.Context(), q, user("flood", fmt.Sprint(i%2))))
		}
		if status := <-enter(t.Context(), q, user("honest", "ada")); status != nil {
			t.Fatalf("beside the flood the honest client gets %v", status)
		}
		second := enter(t.Context(), q, user("honest", "ada")) // all four seats are taken
		if len(second) != 0 {
			t.Fatal("a fifth seat was given away")
		}
		q.leave(user("flood", "0"))
		synctest.Wait()
		q.leave(user("flood", "1"))
		synctest.Wait()
		if status := <-second; status != nil {
			t.Errorf("the honest client's second request: %v", status)
		}
		seated := 0
		for _, w := range waiting {
			if len(w) == 1 {
				seated++
			}
		}
		if seated != 4 {
			t.Errorf("%d requests of the flood have had a seat, want the first 3 and 1 of the 2 that became free", seated)
		}
		time.Sleep(turnWithin)
		synctest.Wait()
		refused := 0
		for _, w := range waiting {
			if status := <-w; status != nil {
				refused++
				if status.Code != 503 || status.RetryAfterSeconds != 1 || !strings.Contains(status.Message, "waited 5s for its turn; nothing was done") {
					t.Fatalf("got %v", status)
				}
			}
		}
		if refused != 96 {
			t.Errorf("%d requests of the flood were refused, want 96", refused)
		}
	})
}

// The queue is bounded before memory grows: one user has so many places, and where all
// places are taken the longest line loses its newest request.
func TestTheLongestLineLosesItsNewestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 1)
		_ = enter(t.Context(), q, user("a", "x"))
		for range mostQueuedOfUser {
			_ = enter(t.Context(), q, user("a", "x"))
		}
		if status := <-enter(t.Context(), q, user("a", "x")); status == nil || status.Code != 503 || !strings.Contains(status.Message, "too many requests of user x of tenant a wait for their turn") {
			t.Fatalf("one more than a user may have waiting: %v", status)
		}
		for i := 0; q.waiting < mostQueued; i++ {
			_ = enter(t.Context(), q, user("b", fmt.Sprint(i%16)))
		}
		honest := enter(t.Context(), q, user("c", "ada"))
		if len(honest) != 0 || q.waiting != mostQueued {
			t.Fatalf("%d wait, want %d with the honest client's", q.waiting, mostQueued)
		}
		if got := len(q.groups[user("a", "")].users[user("a", "x")].waiting); got != mostQueuedOfUser-1 {
			t.Errorf("the longest line has %d, want %d", got, mostQueuedOfUser-1)
		}
		q.leave(user("a", "x")) // the turn of a, b, then c
		q.leave(user("a", "x"))
		q.leave(user("b", "0"))
		synctest.Wait()
		if status := <-honest; status != nil {
			t.Errorf("the honest client: %v", status)
		}
	})
}

// A client that goes away gives its place up.
func TestAClientThatGoesAwayGivesItsPlaceUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 1)
		_ = enter(t.Context(), q, user("a", "x"))
		ctx, cancel := context.WithCancel(t.Context())
		gone := enter(ctx, q, user("b", "y"))
		cancel()
		synctest.Wait()
		if status := <-gone; status == nil || q.waiting != 0 || len(q.turns) != 0 || len(q.groups) != 1 {
			t.Errorf("%v; %d wait in %d groups", status, q.waiting, len(q.groups))
		}
		q.leave(user("a", "x"))
		if q.taken != 0 || len(q.groups) != 0 {
			t.Errorf("%d seats are taken by %d groups", q.taken, len(q.groups))
		}
	})
}

// Invariants of a queue, whatever comes: seats are never more than there are, nobody
// waits beside a free seat, and a group that waits is served once between any two
// requests of another group.
func TestTheQueueIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue(rapid.IntRange(1, 4).Draw(t, "seats"), rapid.IntRange(1, 4).Draw(t, "of a group"))
		type request struct {
			of owner
			p  *place
		}
		var seated []owner
		var waiting []request
		var served []owner // of those that have waited, in order
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			if len(seated) > 0 && rapid.Bool().Draw(t, "leave") {
				at := rapid.IntRange(0, len(seated)-1).Draw(t, "which")
				q.leave(seated[at])
				seated = slices.Delete(seated, at, at+1)
			} else {
				u := user(rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "tenant"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "user"))
				p, status := q.join(u)
				if status != nil {
					t.Fatal(status)
				}
				if p == nil {
					seated = append(seated, u)
				} else {
					waiting = append(waiting, request{u, p})
				}
			}
			waiting = slices.DeleteFunc(waiting, func(r request) bool {
				select {
				case <-r.p.ready:
					seated, served = append(seated, r.of), append(served, r.of)
					return true
				default:
					return false
				}
			})
			if q.taken != len(seated) || q.waiting != len(waiting) || q.taken > q.most {
				t.Fatalf("%d seats are taken and %d wait, the queue says %d of %d and %d", len(seated), len(waiting), q.taken, q.most, q.waiting)
			}
			of := map[owner]int{}
			for _, u := range seated {
				if of[u.group()]++; of[u.group()] > q.mostOfGroup {
					t.Fatalf("%s has %d seats of %d", u.group(), of[u.group()], q.mostOfGroup)
				}
			}
			for _, r := range waiting {
				if q.taken < q.most && of[r.of.group()] < q.mostOfGroup {
					t.Fatalf("%s waits beside a free seat", r.of)
				}
			}
		}
		for len(seated) > 0 {
			q.leave(seated[0])
			seated = seated[1:]
			waiting = slices.DeleteFunc(waiting, func(r request) bool {
				select {
				case <-r.p.ready:
					seated = append(seated, r.of)
					return true
				default:
					return false
				}
			})
		}
		if len(waiting) != 0 || q.taken != 0 || q.waiting != 0 || len(q.groups) != 0 || len(q.turns) != 0 {
			t.Fatalf("at the end %d wait, and the queue has %+v", len(waiting), q)
		}
	})
}

// Administrators have seats of their own: a flood of tenants keeps no operator out.
func TestAdministratorsHaveSeatsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(&Rates{})
		for i := range seats {
			if status := g.Turn(service.Principal{Name: "x", Tenant: resource.TenantID(fmt.Sprint(i))}).Begin(t.Context()); status != nil {
				t.Fatal(status)
			}
		}
		admin := g.Turn(service.Principal{Name: "root", Admin: true})
		if status := admin.Begin(t.Context()); status != nil {
			t.Error(status)
		}
		admin.End()
		admin.End()
		if g.system.taken != 0 {
			t.Errorf("%d seats of administrators are taken after the end", g.system.taken)
		}
		if status := g.Turn(service.Principal{Name: "x", Tenant: "honest"}).Begin(t.Context()); status == nil {
			t.Error("a tenant got a seat beyond all seats")
		}
	})
}

func BenchmarkTurn(b *testing.B) {
	g := New(&Rates{})
	p := service.Principal{Name: "ada", Tenant: "vision"}
	ctx := b.Context()
	for b.Loop() {
		t := g.Turn(p)
		_ = t.Begin(ctx)
		t.End()
	}
}
