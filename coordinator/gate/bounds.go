package gate

import (
	"net/http"
	"sync"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// Bound is a bound on one kind of request that is open for long or takes memory: the
// most that one user, and that one tenant, has at a time.
type Bound struct {
	// Noun names the bounded things, in the plural.
	Noun string
	// User and Tenant are the limits of one user and of one tenant.
	User, Tenant int64
	// Next says what the caller may do.
	Next string
}

// The bounds of a caller. The bounds of all callers together are those of the codecs.
var (
	// Watches are the open watches.
	Watches = Bound{"watches", 128, 512, "close some, or ask again"}
	// Waits are the requests that wait for their object.
	Waits = Bound{"requests that wait (wait=)", 256, 1024, "ask without wait, and get again later"}
	// Lists are the lists that are being made.
	Lists = Bound{"lists that are being made", 16, 32, "ask again"}
	// Forwards are the requests that are being passed on to the leader.
	Forwards = Bound{"requests on their way to the leader", 256, 512, "ask again"}
	// Bodies are the bytes of bodies that are being read or decided on.
	Bodies = Bound{"bytes of bodies that are being read", 8 << 20, 16 << 20, "send fewer at a time"}
)

// Bounds counts the open requests of each caller. Its methods may be called by several
// goroutines. The zero value is empty.
type Bounds struct {
	mu sync.Mutex
	// open has an element for each user and tenant with open requests alone.
	open map[held]int64
}

// held is one count: a bound by its noun, and a user or a tenant.
type held struct {
	noun string
	of   owner
}

// Hold counts n more of a bound for a caller, and refuses what is beyond the caller's
// limits with a 429 that names the bound. The caller of Hold calls release once, and
// may release a part before. Administrators have no limits here.
func (b *Bounds) Hold(p service.Principal, of Bound, n int64) (release func(), status *api.Status) {
	if b == nil || isSystem(p) {
		return func() {}, nil
	}
	user := ownerOf(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range []struct {
		of   owner
		most int64
	}{{user, of.User}, {user.group(), of.Tenant}} {
		if have := b.open[held{of.Noun, c.of}]; have+n > c.most {
			status := api.Errorf(http.StatusTooManyRequests, "%s has %d %s, and %d more are beyond the limit of %d: %s", c.of, have, of.Noun, n, c.most, of.Next)
			status.RetryAfterSeconds = 1
			return nil, status
		}
	}
	b.add(user, of, n)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.add(user, of, -n)
	}, nil
}

// add changes the counts of a user and of the user's tenant. b.mu is held.
func (b *Bounds) add(user owner, of Bound, n int64) {
	if b.open == nil {
		b.open = map[held]int64{}
	}
	counted := []owner{user}
	if group := user.group(); group != user {
		counted = append(counted, group)
	}
	for _, o := range counted {
		key := held{of.Noun, o}
		if b.open[key] += n; b.open[key] == 0 {
			delete(b.open, key)
		}
	}
}
