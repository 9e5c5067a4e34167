package gate

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/musterd/muster/api"
)

// Bounds of the requests that are served and that wait for their turn.
const (
	// seats is how many requests of tenants are decided on at a time, seatsOfTenant how
	// many of one tenant: a flood of one tenant leaves seats for the others.
	seats         = 256
	seatsOfTenant = 192
	// systemSeats are the seats of administrators, apart from those of tenants.
	systemSeats = 256
	// mostQueued bounds the requests that wait for a seat, of all tenants and of one
	// user. Beyond the first bound the longest queue loses its newest request.
	mostQueued       = 2_048
	mostQueuedOfUser = 256
	// turnWithin is how long a request waits for its turn.
	turnWithin = 5 * time.Second
)

// Queue shares seats among groups of users, and within a group among its users: in
// turn (round robin), and first come first served for one user. A group with one
// request waits for at most one request of each other group, however many those have.
//
// Invariant: free seats and a waiting group below its own limit do not exist together.
type Queue struct {
	most, mostOfGroup int

	mu      sync.Mutex
	taken   int
	waiting int
	groups  map[owner]*group
	turns   []*group // the groups with waiting users, the next one first
}

// group is the requests of one tenant, or of a user without a tenant.
type group struct {
	taken int
	users map[owner]*line // with waiting requests alone
	turns []*line         // the same, the next one first
}

// line is the waiting requests of one user, the oldest first.
type line struct {
	user    owner
	waiting []*place
}

// place is a request that waits. ready is closed once: with a seat where refused is
// false.
type place struct {
	ready   chan struct{}
	refused bool
}

func newQueue(most, mostOfGroup int) *Queue {
	return &Queue{most: most, mostOfGroup: mostOfGroup, groups: map[owner]*group{}}
}

// overloaded is the refusal of a request that gets no seat.
func overloaded(why string) *api.Status {
	status := api.Errorf(http.StatusServiceUnavailable, "this coordinator is overloaded: %s; nothing was done: ask again, or another coordinator", why)
	status.RetryAfterSeconds = 1
	return status
}

// Enter waits for a seat, at most for turnWithin. The caller calls leave once where
// status is nil.
func (q *Queue) Enter(ctx context.Context, user owner) (leave func(), status *api.Status) {
	leave = func() { q.leave(user) }
	p, status := q.join(user)
	switch {
	case status != nil:
		return nil, status
	case p == nil:
		return leave, nil
	}
	late := time.NewTimer(turnWithin)
	defer late.Stop()
	select {
	case <-p.ready:
	case <-late.C:
		status = overloaded("a request waited " + turnWithin.String() + " for its turn")
	case <-ctx.Done():
		status = overloaded("the client went away before its turn")
	}
	if status != nil && q.giveUp(user, p) {
		return nil, status
	}
	if p.refused {
		return nil, overloaded("too many requests wait, and the longest queue is that of " + user.String())
	}
	return leave, nil
}

// join takes a seat, or a place in the queue; nil for a seat.
func (q *Queue) join(user owner) (*place, *api.Status) {
	q.mu.Lock()
	defer q.mu.Unlock()
	g := q.groups[user.group()]
	if g == nil {
		g = &group{users: map[owner]*line{}}
		q.groups[user.group()] = g
	}
	if q.taken < q.most && g.taken < q.mostOfGroup {
		q.taken++
		g.taken++
		return nil, nil
	}
	l := g.users[user]
	if l != nil && len(l.waiting) >= mostQueuedOfUser {
		return nil, overloaded("too many requests of " + user.String() + " wait for their turn")
	}
	if q.waiting >= mostQueued {
		q.refuseOne()
	}
	if l = g.users[user]; l == nil { // which refuseOne may have ended
		l = &line{user: user}
		g.users[user] = l
		if len(g.turns) == 0 {
			q.turns = append(q.turns, g)
		}
		g.turns = append(g.turns, l)
	}
	p := &place{ready: make(chan struct{})}
	l.waiting = append(l.waiting, p)
	q.waiting++
	return p, nil
}

// leave gives a seat back, to the next group in turn.
func (q *Queue) leave(user owner) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := user.group()
	g := q.groups[key]
	q.taken--
	g.taken--
	if g.taken == 0 && len(g.turns) == 0 {
		delete(q.groups, key)
	}
	q.seatNext()
}

// seatNext gives the free seats to the groups that wait, in turn. q.mu is held.
func (q *Queue) seatNext() {
	for q.taken < q.most {
		at := slices.IndexFunc(q.turns, func(g *group) bool { return g.taken < q.mostOfGroup })
		if at < 0 {
			return
		}
		g := q.turns[at]
		q.turns = slices.Delete(q.turns, at, at+1)
		l := g.turns[0]
		g.turns = g.turns[1:]
		p := l.waiting[0]
		l.waiting = l.waiting[1:]
		if len(l.waiting) > 0 {
			g.turns = append(g.turns, l)
		} else {
			delete(g.users, l.user)
		}
		if len(g.turns) > 0 {
			q.turns = append(q.turns, g)
		}
		q.waiting--
		q.taken++
		g.taken++
		close(p.ready)
	}
}

// refuseOne refuses the newest request of the longest line. q.mu is held, and some
// request waits.
func (q *Queue) refuseOne() {
	var of *group
	var longest *line
	for _, g := range q.turns {
		for _, l := range g.turns {
			if longest == nil || len(l.waiting) > len(longest.waiting) {
				of, longest = g, l
			}
		}
	}
	p := longest.waiting[len(longest.waiting)-1]
	p.refused = true
	q.remove(of, longest, p)
	close(p.ready)
}

// giveUp ends the wait of a request; false where the request has just got a seat or a
// refusal.
func (q *Queue) giveUp(user owner, p *place) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-p.ready:
		return false
	default:
	}
	g := q.groups[user.group()]
	q.remove(g, g.users[user], p)
	if g.taken == 0 && len(g.turns) == 0 {
		delete(q.groups, user.group())
	}
	return true
}

// remove takes a waiting request out of its line. q.mu is held.
func (q *Queue) remove(g *group, l *line, p *place) {
	l.waiting = slices.DeleteFunc(l.waiting, func(other *place) bool { return other == p })
	q.waiting--
	if len(l.waiting) > 0 {
		return
	}
	delete(g.users, l.user)
	g.turns = slices.DeleteFunc(g.turns, func(other *line) bool { return other == l })
	if len(g.turns) == 0 {
		q.turns = slices.DeleteFunc(q.turns, func(other *group) bool { return other == g })
	}
}
