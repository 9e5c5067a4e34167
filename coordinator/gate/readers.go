package gate

import (
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// Bounds of the readers of watches. A reader that has taken nothing for StalledAfter is
// stalled; one user, and one tenant, has only so many stalled readers and so many bytes
// that wait for readers. Beyond that the reader that stalled longest is cut. Every
// reader is cut after ReaderTime.
const (
	StalledAfter = time.Second
	ReaderTime   = 10 * time.Second

	// deadlineSlack is the most time between the moment at which a caller sets the
	// deadline of its write, ReaderTime ahead, and its call of Send.
	deadlineSlack = 50 * time.Millisecond

	mostStalledOfUser, mostStalledOfTenant = 16, 64
	mostBytesOfUser, mostBytesOfTenant     = 2 << 20, 8 << 20
)

// Readers are the readers of watches and of output that are being sent something. Its methods may be
// called by several goroutines. A nil Readers bounds nothing.
type Readers struct {
	log     *slog.Logger
	counted *prometheus.CounterVec

	mu sync.Mutex
	// by has the sendings of each user and each tenant, the oldest first.
	by map[owner][]*Sending
}

// NewReaders returns readers that count and log the ones that are cut. r may be nil.
func NewReaders(r prometheus.Registerer, log *slog.Logger) *Readers {
	counted := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_coordinator_slow_readers_total", Help: "Watches that were ended with the reason SlowReader, by the door (rest, grpc) and the bound (time, user, tenant).",
	}, []string{"door", "bound"})
	for _, door := range []string{"rest", "grpc"} {
		for _, bound := range []string{"time", "user", "tenant"} {
			counted.WithLabelValues(door, bound)
		}
	}
	if r != nil {
		r.MustRegister(counted)
	}
	return &Readers{log: log, counted: counted, by: map[owner][]*Sending{}}
}

// Sending is one message on its way to the reader of a watch.
type Sending struct {
	readers *Readers
	to      owner
	bound   bool // by the limits of users and tenants
	door    string
	kind    string
	bytes   int64
	began   time.Time
	cut     func()
	reason  string // the bound by which the reader was cut, "" while it was not
}

// Send notes that bytes are sent to the reader of a watch of a kind from now on. cut
// makes the write fail; it is called at most once, by any goroutine, and must not block.
// The caller calls End once.
func (r *Readers) Send(p service.Principal, door, kind string, bytes int64, cut func()) *Sending {
	if r == nil {
		return nil
	}
	s := &Sending{readers: r, to: ownerOf(p), bound: !isSystem(p), door: door, kind: kind, bytes: bytes, cut: cut}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.began = time.Now() // under mu: the lists are in the order of began
	for _, o := range s.owners() {
		r.by[o] = append(r.by[o], s)
	}
	if s.bound {
		r.relieve(s.to, "user", mostStalledOfUser, mostBytesOfUser)
		if group := s.to.group(); group != s.to {
			r.relieve(group, "tenant", mostStalledOfTenant, mostBytesOfTenant)
		}
	}
	return s
}

// owners are those that a sending counts for.
func (s *Sending) owners() []owner {
	if group := s.to.group(); group != s.to {
		return []owner{s.to, group}
	}
	return []owner{s.to}
}

// relieve cuts stalled readers of an owner until the owner is within the bounds, those
// that stalled longest first. r.mu is held.
func (r *Readers) relieve(o owner, bound string, most int, mostBytes int64) {
	now, stalled, bytes := time.Now(), 0, int64(0)
	for _, s := range r.by[o] {
		if s.reason == "" {
			bytes += s.bytes
			if now.Sub(s.began) >= StalledAfter {
				stalled++
			}
		}
	}
	for _, s := range r.by[o] {
		if stalled <= most && bytes <= mostBytes || now.Sub(s.began) < StalledAfter {
			return
		}
		if s.reason == "" {
			s.reason, stalled, bytes = bound, stalled-1, bytes-s.bytes
			s.cut()
		}
	}
}

// End notes that the reader has taken the message, or that the write has failed. It
// returns the status that ends the watch where the reader was too slow, else nil.
func (s *Sending) End(err error) *api.Status {
	if s == nil {
		return nil
	}
	r := s.readers
	r.mu.Lock()
	took := time.Since(s.began)
	for _, o := range s.owners() {
		if r.by[o] = slices.DeleteFunc(r.by[o], func(other *Sending) bool { return other == s }); len(r.by[o]) == 0 {
			delete(r.by, o)
		}
	}
	bound := s.reason
	r.mu.Unlock()
	if bound == "" && err != nil && took >= ReaderTime-deadlineSlack {
		bound = "time"
	}
	if bound == "" {
		return nil
	}
	r.counted.WithLabelValues(s.door, bound).Inc()
	r.log.Warn("watch_cut", "reason", api.SlowReader, "bound", bound, "door", s.door, "kind", s.kind, "reader", s.to.String(), "bytes", s.bytes, "took", took)
	return api.Errorf(http.StatusTooManyRequests, "the watch of %s ended: its reader, %s, had not taken %d bytes in %s (bound: %s); read faster, or open fewer watches, and go on after the last event",
		s.kind, s.to, s.bytes, took.Round(time.Millisecond), bound).Because(api.SlowReader)
}
