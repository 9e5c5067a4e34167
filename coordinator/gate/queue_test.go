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
		q.leave(user("flood", "0"), 1)
		synctest.Wait()
		q.leave(user("flood", "1"), 1)
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
		q.leave(user("a", "x"), 1) // the turn of a, b, then c
		q.leave(user("a", "x"), 1)
		q.leave(user("b", "0"), 1)
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
		q.leave(user("a", "x"), 1)
		if q.taken != 0 || len(q.groups) != 0 {
			t.Errorf("%d seats are taken by %d groups", q.taken, len(q.groups))
		}
	})
}

// Invariants of a queue, whatever comes: seats are never more than there are, nobody
// waits beside free seats unless the next in turn wants more than are free, and the
// requests of one user come in their order.
func TestTheQueueIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Int64Range(1, 4).Draw(t, "seats")
		q := newQueue(most, rapid.Int64Range(1, most).Draw(t, "of a group"))
		type request struct {
			of owner
			n  int64
			p  *place
		}
		var seated, waiting []request // in the order in which they came
		settle := func() {
			waiting = slices.DeleteFunc(waiting, func(r request) bool {
				select {
				case <-r.p.ready:
					for _, other := range waiting {
						if other.p == r.p {
							break
						}
						if other.of == r.of && other.p.ready != nil && !isReady(other.p) {
							t.Fatalf("a later request of %s was served before an earlier one", r.of)
						}
					}
					seated = append(seated, r)
					return true
				default:
					return false
				}
			})
		}
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch act := rapid.IntRange(0, 4).Draw(t, "act"); {
			case act < 2 && len(seated) > 0:
				at := rapid.IntRange(0, len(seated)-1).Draw(t, "which")
				q.leave(seated[at].of, seated[at].n)
				seated = slices.Delete(seated, at, at+1)
			case act == 2 && len(waiting) > 0:
				at := rapid.IntRange(0, len(waiting)-1).Draw(t, "which")
				if !q.giveUp(waiting[at].of, waiting[at].p) {
					t.Fatal("a request that waits could not give up")
				}
				waiting = slices.Delete(waiting, at, at+1)
			default:
				u := user(rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "tenant"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "user"))
				n := rapid.Int64Range(1, q.mostOfGroup).Draw(t, "n")
				p, refused := q.join(u, n)
				if refused != granted {
					t.Fatal(refused)
				}
				if p == nil {
					seated = append(seated, request{u, n, nil})
				} else {
					waiting = append(waiting, request{u, n, p})
				}
			}
			settle()
			taken, of := int64(0), map[owner]int64{}
			for _, r := range seated {
				taken += r.n
				if of[r.of.group()] += r.n; of[r.of.group()] > q.mostOfGroup {
					t.Fatalf("%s has %d seats of %d", r.of.group(), of[r.of.group()], q.mostOfGroup)
				}
			}
			if q.taken != taken || q.waiting != len(waiting) || q.taken > q.most {
				t.Fatalf("%d seats are taken and %d wait, the queue says %d of %d and %d", taken, len(waiting), q.taken, q.most, q.waiting)
			}
			if at := q.nextTurn(); at >= 0 && q.taken+q.turns[at].next() <= q.most {
				t.Fatalf("the next in turn waits for %d seats beside %d free ones", q.turns[at].next(), q.most-q.taken)
			} else if at < 0 && slices.ContainsFunc(waiting, func(r request) bool {
				return of[r.of.group()]+r.n <= q.mostOfGroup && q.groups[r.of.group()].turns[0].waiting[0] == r.p
			}) {
				t.Fatal("a request that may have its turn is not in turn")
			}
		}
		for len(seated) > 0 {
			q.leave(seated[0].of, seated[0].n)
			seated = seated[1:]
			settle()
		}
		if len(waiting) != 0 || q.taken != 0 || q.waiting != 0 || len(q.groups) != 0 || len(q.turns) != 0 {
			t.Fatalf("at the end %d wait, and the queue has %+v", len(waiting), q)
		}
	})
}

func isReady(p *place) bool {
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

// A large request gets its seats, though small ones come without end.
func TestALargeRequestIsNotPassedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(4)
		release, ok := r.Take(t.Context(), service.Principal{Name: "x", Tenant: "small"}, 1)
		if !ok {
			t.Fatal("no room in an empty room")
		}
		large := make(chan bool, 1) // one answer
		go func() {
			_, ok := r.Take(t.Context(), service.Principal{Name: "y", Tenant: "large"}, 9)
			large <- ok
		}()
		synctest.Wait()
		small := make(chan bool, 1) // one answer
		go func() {
			_, ok := r.Take(t.Context(), service.Principal{Name: "z", Tenant: "other"}, 1)
			small <- ok
		}()
		synctest.Wait()
		if len(large)+len(small) != 0 {
			t.Fatal("a request passes the large one that waits")
		}
		release()
		if !<-large {
			t.Error("the large request, which takes all, gets no room")
		}
		if <-small {
			t.Error("a small request has room beside one that takes all")
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

// Beside two tenants that flood a room, a third one waits for one request of each.
func TestARoomGoesRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(100)
		served := make(chan string, 300)
		ask := func(tenant string) {
			go func() {
				release, ok := r.Take(t.Context(), service.Principal{Name: "x", Tenant: resource.TenantID(tenant)}, 100)
				if !ok {
					served <- "refused"
					return
				}
				time.Sleep(300 * time.Millisecond)
				served <- tenant
				release()
			}()
			synctest.Wait()
		}
		for range 100 {
			ask("a")
			ask("b")
		}
		ask("honest")
		var order []string
		for len(order) < 4 {
			order = append(order, <-served)
		}
		if !slices.Contains(order, "honest") || slices.Contains(order, "refused") {
			t.Errorf("served were %q, want honest among the first four", order)
		}
		time.Sleep(time.Minute)
	})
}
