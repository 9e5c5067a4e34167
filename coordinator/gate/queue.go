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
// A request takes one seat or several at once.
//
// Invariant: a group below its own limit waits only where the next request in turn
// wants more seats than are free.
type Queue struct {
	most, mostOfGroup            int64
	mostQueued, mostQueuedOfUser int
	within                       time.Duration // how long a request waits

	mu      sync.Mutex
	taken   int64
	waiting int
	groups  map[owner]*group
	turns   []*group // the groups with waiting users, the next one first
}

// group is the requests of one tenant, or of a user without a tenant.
type group struct {
	taken int64
	users map[owner]*line // with waiting requests alone
	turns []*line         // the same, the next one first
}

// next is the seats that the next request of a group wants. The group waits.
func (g *group) next() int64 { return g.turns[0].waiting[0].seats }

// line is the waiting requests of one user, the oldest first.
type line struct {
	user    owner
	waiting []*place
}

// place is a request that waits. ready is closed once: with its seats where refused is
// false.
type place struct {
	seats   int64
	ready   chan struct{}
	refused bool
}

// denial is the reason why a request gets no seats.
type denial int

const (
	granted     denial = iota
	late               // it has waited for within
	gone               // its context has ended
	ownLine            // too many requests of its user wait
	longestLine        // too many requests wait, and its user has most of them
)

func newQueue(most, mostOfGroup int64) *Queue {
	return &Queue{most: most, mostOfGroup: mostOfGroup, mostQueued: mostQueued, mostQueuedOfUser: mostQueuedOfUser, within: turnWithin, groups: map[owner]*group{}}
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
	switch q.take(ctx, user, 1) {
	case late:
		return nil, overloaded("a request waited " + q.within.String() + " for its turn")
	case gone:
		return nil, overloaded("the client went away before its turn")
	case ownLine:
		return nil, overloaded("too many requests of " + user.String() + " wait for their turn")
	case longestLine:
		return nil, overloaded("too many requests wait, and the longest queue is that of " + user.String())
	}
	return func() { q.leave(user, 1) }, nil
}

// take waits for seats, at most for within. The caller gives them back by leave where
// they are granted.
func (q *Queue) take(ctx context.Context, user owner, seats int64) denial {
	p, refused := q.join(user, seats)
	if refused != granted || p == nil {
		return refused
	}
	end := time.NewTimer(q.within)
	defer end.Stop()
	select {
	case <-p.ready:
	case <-end.C:
		refused = late
	case <-ctx.Done():
		refused = gone
	}
	if refused != granted && q.giveUp(user, p) {
		return refused
	}
	if p.refused {
		return longestLine
	}
	return granted
}

// fits reports whether a group may take seats now. q.mu is held.
func (q *Queue) fits(g *group, seats int64) bool {
	return q.taken+seats <= q.most && g.taken+seats <= q.mostOfGroup
}

// nextTurn is the index in turns of the group whose request is the next one; -1 for
// none. q.mu is held.
func (q *Queue) nextTurn() int {
	return slices.IndexFunc(q.turns, func(g *group) bool { return g.taken+g.next() <= q.mostOfGroup })
}

// join takes seats, or a place in the queue; nil for seats.
func (q *Queue) join(user owner, seats int64) (*place, denial) {
	q.mu.Lock()
	defer q.mu.Unlock()
	g := q.groups[user.group()]
	if g == nil {
		g = &group{users: map[owner]*line{}}
		q.groups[user.group()] = g
	}
	if q.fits(g, seats) && q.nextTurn() < 0 { // a small request does not pass a large one for ever
		q.taken += seats
		g.taken += seats
		return nil, granted
	}
	l := g.users[user]
	if l != nil && len(l.waiting) >= q.mostQueuedOfUser {
		return nil, ownLine
	}
	if q.waiting >= q.mostQueued {
		q.refuseOne()
		q.groups[user.group()] = g // which refuseOne may have ended, and the line too
	}
	if l = g.users[user]; l == nil {
		l = &line{user: user}
		g.users[user] = l
		if len(g.turns) == 0 {
			q.turns = append(q.turns, g)
		}
		g.turns = append(g.turns, l)
	}
	p := &place{seats: seats, ready: make(chan struct{})}
	l.waiting = append(l.waiting, p)
	q.waiting++
	q.seatNext() // the refused one may have kept smaller requests waiting
	return p, granted
}

// leave gives seats back, to the next groups in turn.
func (q *Queue) leave(user owner, seats int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := user.group()
	g := q.groups[key]
	q.taken -= seats
	g.taken -= seats
	if g.taken == 0 && len(g.turns) == 0 {
		delete(q.groups, key)
	}
	q.seatNext()
}

// seatNext gives the free seats to the groups that wait, in turn. q.mu is held.
func (q *Queue) seatNext() {
	for {
		at := q.nextTurn()
		if at < 0 || !q.fits(q.turns[at], q.turns[at].next()) {
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
		q.taken += p.seats
		g.taken += p.seats
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
	if of.taken == 0 && len(of.turns) == 0 {
		delete(q.groups, longest.user.group())
	}
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
	q.seatNext() // it may have kept smaller requests waiting
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
