// Package netlimit bounds the connections of a listener: in all, by remote
// address, and by the peer that a connection has proven. A new connection is
// unproven: its peer may be anyone. Unproven connections are few, short and
// small; Conn.Prove lifts these limits once the peer has shown a certificate
// or a token. At a limit of unproven connections the oldest one is closed: an
// honest peer proves itself within milliseconds, a hostile one would keep its
// place. The package closes connections and counts them. It does not decide
// whether a proof is good.
package netlimit

import (
	"container/list"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits are the bounds of one listener. A zero is no limit.
type Limits struct {
	// Total bounds all open connections of the listener. A new connection is
	// closed where all open ones are proven.
	Total int
	// Unproven bounds the connections whose peers have proven nothing yet.
	Unproven int
	// PerAddress bounds the unproven connections of one remote address: an IPv4
	// address, or the /64 network of an IPv6 address. Loopback addresses are
	// bounded by Unproven alone, since all processes of a host share them.
	// Beyond Unproven and PerAddress the oldest unproven connection, of the
	// address or of all, is closed.
	PerAddress int
	// ProveWithin is the longest life of an unproven connection.
	ProveWithin time.Duration
	// UnprovenBytes bounds the bytes that an unproven connection may send.
	UnprovenBytes int64
	// Refusals is the number of refused calls after which a connection is
	// closed.
	Refusals int
}

// Reason says why a connection was closed.
type Reason uint8

// The reasons, in the order of the metric's label values.
const (
	OverTotal      Reason = iota // Limits.Total was reached
	OverUnproven                 // Limits.Unproven was reached
	OverAddress                  // Limits.PerAddress was reached
	OverPeer                     // the peer has too many connections (Conn.Prove)
	Late                         // nothing was proven within Limits.ProveWithin
	TooManyBytes                 // more than Limits.UnprovenBytes without a proof
	TooManyRefused               // Limits.Refusals refused calls
	reasons
)

var reasonNames = [reasons]string{"total", "unproven", "address", "peer", "late", "bytes", "refused_calls"}

// String is the value of the metric's label.
func (r Reason) String() string { return reasonNames[r] }

// logEvery is the least time between two log lines of one listener.
const logEvery = 10 * time.Second

// Listener is a net.Listener with limits. Accept returns connections of type
// *Conn. All methods may be called by several goroutines.
type Listener struct {
	net.Listener
	limits Limits
	name   string
	log    *slog.Logger
	closed [reasons]atomic.Uint64

	mu    sync.Mutex
	total int
	// unproven and byAddress hold the unproven connections, oldest first.
	// Invariant: the lists of byAddress are the elements of unproven; none is
	// empty.
	unproven  *list.List
	byAddress map[netip.Addr]*list.List
	byPeer    map[string]int // proven connections; no value is 0
	logged    time.Time
	unlogged  int // connections closed since the last log line
}

// New wraps a listener. name is the label of metrics and log lines; a nil
// logger discards.
func New(l net.Listener, name string, limits Limits, log *slog.Logger) *Listener {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Listener{Listener: l, limits: limits, name: name, log: log, unproven: list.New(), byAddress: map[netip.Addr]*list.List{}, byPeer: map[string]int{}}
}

// Accept returns the next connection that the limits permit, and closes the
// connections that they do not.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &Conn{Conn: raw, listener: l, address: addressOf(raw)}
		c.left.Store(l.limits.UnprovenBytes)
		c.unbounded.Store(l.limits.UnprovenBytes == 0)
		closed, reason := l.admit(c)
		if closed != nil {
			l.report(reason, closed)
			_ = closed.Close() // its peer has proven nothing
		}
		if closed != c {
			return c, nil
		}
	}
}

// admit counts a new connection. Where that is one too many, it returns the
// connection to be closed for it, and the limit.
func (l *Listener) admit(c *Conn) (closed *Conn, reason Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, same := l.limits, l.byAddress[c.address]
	switch {
	case m.PerAddress > 0 && same != nil && same.Len() >= m.PerAddress && c.address.IsValid() && !c.address.IsLoopback():
		closed, reason = oldest(same), OverAddress
	case m.Unproven > 0 && l.unproven.Len() >= m.Unproven:
		closed, reason = oldest(l.unproven), OverUnproven
	case m.Total > 0 && l.total >= m.Total && l.unproven.Len() == 0:
		c.released = true
		return c, OverTotal
	case m.Total > 0 && l.total >= m.Total:
		closed, reason = oldest(l.unproven), OverTotal
	}
	if closed != nil {
		l.uncount(closed)
	}
	l.total++
	if l.byAddress[c.address] == nil {
		l.byAddress[c.address] = list.New()
	}
	c.among, c.amongSame = l.unproven.PushBack(c), l.byAddress[c.address].PushBack(c)
	if m.ProveWithin > 0 {
		c.timer = time.AfterFunc(m.ProveWithin, func() { c.cut(Late) })
	}
	return closed, reason
}

// oldest is the first connection of a list that is not empty.
func oldest(l *list.List) *Conn { return l.Front().Value.(*Conn) }

// uncount takes a connection out of all counts, once. The caller holds mu.
func (l *Listener) uncount(c *Conn) {
	if c.released {
		return
	}
	c.released = true
	l.total--
	if !c.proven {
		l.forgetUnproven(c)
		return
	}
	if c.peer != "" {
		decrement(l.byPeer, c.peer)
	}
}

// forgetUnproven uncounts an unproven connection. The caller holds mu.
func (l *Listener) forgetUnproven(c *Conn) {
	l.unproven.Remove(c.among)
	same := l.byAddress[c.address]
	if same.Remove(c.amongSame); same.Len() == 0 {
		delete(l.byAddress, c.address)
	}
	if c.timer != nil {
		c.timer.Stop()
	}
}

func decrement[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}

// report counts a closed connection and writes at most one log line every 10 s.
func (l *Listener) report(r Reason, c *Conn) {
	l.closed[r].Add(1)
	l.mu.Lock()
	l.unlogged++
	now := time.Now()
	due := now.Sub(l.logged) >= logEvery
	count, total, unproven := l.unlogged, l.total, l.unproven.Len()
	if due {
		l.logged, l.unlogged = now, 0
	}
	l.mu.Unlock()
	if due {
		l.log.Warn("connection_closed", "listener", l.name, "reason", r.String(), "remote", c.address.String(),
			"closed", count, "open", total, "unproven", unproven)
	}
}

// addressOf is the remote address that a connection is counted under; the zero
// address where it has none.
func addressOf(c net.Conn) netip.Addr {
	remote := c.RemoteAddr()
	if remote == nil {
		return netip.Addr{}
	}
	parsed, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Addr{} // an in-memory connection
	}
	a := parsed.Addr().Unmap().WithZone("")
	if a.Is6() && !a.IsLoopback() {
		if network, err := a.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return a
}

// Conn is an accepted connection. Its methods may be called by several
// goroutines.
type Conn struct {
	net.Conn
	listener  *Listener
	address   netip.Addr
	timer     *time.Timer  // ends an unproven connection; nil without that limit
	left      atomic.Int64 // bytes that may still come while unbounded is false
	unbounded atomic.Bool
	refusals  atomic.Int32

	// guarded by listener.mu
	proven           bool
	released         bool // it is in no count
	peer             string
	among, amongSame *list.Element // in listener.unproven and listener.byAddress
}

// Of returns the Conn in a connection, which may be wrapped in TLS; nil where
// there is none. The methods Prove and Refused accept a nil Conn.
func Of(c net.Conn) *Conn {
	for c != nil {
		if found, ok := c.(*Conn); ok {
			return found
		}
		wrapped, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = wrapped.NetConn()
	}
	return nil
}

// Address is the remote address that the connection is counted under: an IPv4
// address or an IPv6 network. It is "" for a nil Conn.
func (c *Conn) Address() string {
	if c == nil {
		return ""
	}
	return c.address.String()
}

// Prove says that the peer has shown a valid proof and ends the limits for
// unproven connections. Of one peer at most most connections are proven at a
// time (0 = any number). An error says that there are so many: this one stays
// unproven, and the caller may close it by CloseFor(OverPeer). Once it has
// succeeded, another call has no effect.
func (c *Conn) Prove(peer string, most int) error {
	if c == nil {
		return nil
	}
	l := c.listener
	l.mu.Lock()
	if c.proven || c.released {
		l.mu.Unlock()
		return nil
	}
	if most > 0 && l.byPeer[peer] >= most {
		l.mu.Unlock()
		return fmt.Errorf("%s has %d open connections to this listener, the limit is %d: close some", peer, most, most)
	}
	c.proven, c.peer = true, peer
	if peer != "" {
		l.byPeer[peer]++
	}
	l.forgetUnproven(c)
	l.mu.Unlock()
	c.unbounded.Store(true)
	return nil
}

// Proven reports whether Prove has succeeded; a nil Conn has no limits and
// counts as proven.
func (c *Conn) Proven() bool {
	if c == nil {
		return true
	}
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	return c.proven
}

// Refused counts a call that was refused, and closes the connection where that
// happens too often.
func (c *Conn) Refused() {
	if c == nil || c.listener.limits.Refusals == 0 {
		return
	}
	if int(c.refusals.Add(1)) == c.listener.limits.Refusals+1 {
		c.cut(TooManyRefused)
	}
}

// CloseFor closes the connection and counts the reason. It may be called on a
// nil Conn.
func (c *Conn) CloseFor(r Reason) {
	if c != nil {
		c.cut(r)
	}
}

// cut closes the connection for a reason.
func (c *Conn) cut(r Reason) {
	l := c.listener
	l.mu.Lock()
	over := c.released || r == Late && c.proven
	l.mu.Unlock()
	if over {
		return
	}
	l.report(r, c)
	_ = c.Close() // the peer's answer does not matter any more
}

// Read reads at most the bytes that an unproven connection has left.
func (c *Conn) Read(b []byte) (int, error) {
	if c.unbounded.Load() {
		return c.Conn.Read(b)
	}
	left := c.left.Load()
	if left <= 0 {
		c.cut(TooManyBytes)
		return 0, fmt.Errorf("read from %s: more than %d bytes without a proof of identity", c.address, c.listener.limits.UnprovenBytes)
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), left)])
	c.left.Add(-int64(n))
	return n, err
}

// Close closes the connection and gives its place to another.
func (c *Conn) Close() error {
	c.listener.mu.Lock()
	c.listener.uncount(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
