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
	// All is the limit of all callers together, 0 for none. The last quarter of All is for
	// tenants that have at most Small, so that they find room, however much others want.
	All, Small int64
	// Next says what the caller may do.
	Next string
}

// The bounds of a caller, over REST and gRPC together. All of Watches is a bound of each
// codec.
var (
	// Watches are the open watches.
	Watches = Bound{Noun: "watches", User: 128, Tenant: 512, Next: "close some, or ask again"}
	// Sessions are the further commands in members (exec).
	Sessions = Bound{Noun: "sessions of exec", User: 16, Tenant: 64, Next: "end some, or ask again"}
	// Waits are the requests that wait for their object.
	Waits = Bound{Noun: "requests that wait (wait=)", User: 256, Tenant: 1024, Next: "ask without wait, and get again later"}
	// Lists are the lists that are being made or sent.
	Lists = Bound{Noun: "lists that are being made", User: 16, Tenant: 32, Next: "ask again"}
	// Forwards are the requests that are being passed on to the leader.
	Forwards = Bound{Noun: "requests on their way to the leader", User: 256, Tenant: 512, Next: "ask again"}
	// Bodies are the bytes of bodies that are being read or decided on.
	Bodies = Bound{Noun: "bytes of bodies that are being read", User: 8 << 20, Tenant: 16 << 20, All: 64 << 20, Small: 256 << 10, Next: "send fewer at a time"}
	// Answers are the bytes of large answers over gRPC that are being sent.
	Answers = Bound{Noun: "bytes of answers that are being sent", User: 16 << 20, Tenant: 32 << 20, All: 64 << 20, Small: 1 << 20, Next: "read the answers, or ask for smaller pages"}
	// Parked are the bytes of bodies of requests that wait for their object.
	Parked = Bound{Noun: "bytes of bodies of requests that wait", User: 64 << 20, Tenant: 128 << 20, All: 256 << 20, Small: 1 << 20, Next: "ask without wait, and get again later"}
)

// Bounds counts the open requests of each caller. Its methods may be called by several
// goroutines. The zero value is empty.
type Bounds struct {
	mu sync.Mutex
	// open has an element for each user and tenant with open requests alone.
	open map[held]int64
	// all are the sums over all callers of the bounds with All, by their nouns.
	all map[string]int64
}

// held is one count: a bound by its noun, and a user or a tenant.
type held struct {
	noun string
	of   owner
}

// Hold counts n more of a bound for a caller, and refuses what is beyond the caller's
// limits with a 429 that names the bound. The caller of Hold calls release once. Administrators have
// the limit of all callers alone.
func (b *Bounds) Hold(p service.Principal, of Bound, n int64) (release func(), status *api.Status) {
	release, status, _ = b.HoldShared(p, of, n)
	return release, status
}

// HoldShared is Hold. A refusal is shared where it is due to the requests of others.
func (b *Bounds) HoldShared(p service.Principal, of Bound, n int64) (release func(), status *api.Status, shared bool) {
	system := isSystem(p)
	if b == nil || system && of.All == 0 {
		return func() {}, nil, false
	}
	user := ownerOf(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !system {
		if status := b.beyond(user, of, n); status != nil {
			return nil, status, false
		}
	}
	if of.All > 0 {
		have, free := b.open[held{of.Noun, user.group()}], of.All-b.all[of.Noun]
		if n > free || !system && have+n > of.Small && free-n < of.All/4 {
			return nil, tooMany("%s has %d %s, and there is no room for %d more: all callers together have %d of %d, the last quarter of which is for those with at most %d; ask again", user.group(), have, of.Noun, n, of.All-free, of.All, of.Small), true
		}
	}
	b.add(user, of, n, system)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.add(user, of, -n, system)
	}, nil, false
}

// beyond refuses n more of a bound that are beyond the limits of a user or the user's
// tenant. b.mu is held.
func (b *Bounds) beyond(user owner, of Bound, n int64) *api.Status {
	for _, c := range []struct {
		of   owner
		most int64
	}{{user, of.User}, {user.group(), of.Tenant}} {
		if have := b.open[held{of.Noun, c.of}]; have+n > c.most {
			return tooMany("%s has %d %s, and %d more are beyond the limit of %d: %s", c.of, have, of.Noun, n, c.most, of.Next)
		}
	}
	return nil
}

// tooMany is a 429 after which the caller may ask again.
func tooMany(format string, args ...any) *api.Status {
	status := api.Errorf(http.StatusTooManyRequests, format, args...)
	status.RetryAfterSeconds = 1
	return status
}

// add changes the counts of a user and of the user's tenant, which a system has none of.
// b.mu is held.
func (b *Bounds) add(user owner, of Bound, n int64, system bool) {
	if b.open == nil {
		b.open, b.all = map[held]int64{}, map[string]int64{}
	}
	if of.All > 0 {
		b.all[of.Noun] += n
	}
	if system {
		return
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
