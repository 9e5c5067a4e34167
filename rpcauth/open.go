package rpcauth

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// connections are the open connections of one party, in both directions, with
// the identity that the peer of each has proven. A connection ends when its
// peer's certificate does.
type connections struct {
	mu   sync.Mutex
	open map[*watched]struct{}
}

// lookAgain is the longest time between two looks at the end of a certificate:
// timers stand still while a host is suspended, certificates do not.
const lookAgain = time.Hour

// watched is an open connection below its TLS. Closing it ends the connection
// without a word to the peer, and does not block.
type watched struct {
	net.Conn
	of     *connections
	peer   Caller // set once, before the connection is in of.open
	expiry *time.Timer
	over   bool // closed; guarded by of.mu
}

// watch wraps a connection before its handshake.
func (c *connections) watch(conn net.Conn) (net.Conn, *watched) {
	w := &watched{Conn: conn, of: c}
	if s, ok := conn.(syscall.Conn); ok { // gRPC looks at the socket
		return watchedSocket{w, s}, w
	}
	return w, w
}

type watchedSocket struct {
	*watched
	socket syscall.Conn
}

// SyscallConn implements syscall.Conn.
func (w watchedSocket) SyscallConn() (syscall.RawConn, error) { return w.socket.SyscallConn() }

// Close implements net.Conn.
func (w *watched) Close() error {
	w.of.mu.Lock()
	w.over = true
	delete(w.of.open, w)
	if w.expiry != nil {
		w.expiry.Stop()
	}
	w.of.mu.Unlock()
	return w.Conn.Close()
}

// add notes whose connection it is. expired is called when the peer's
// certificate is over, after the connection was ended.
func (c *connections) add(w *watched, peer Caller, expired func(Caller)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.over {
		return
	}
	w.peer = peer
	if c.open == nil {
		c.open = map[*watched]struct{}{}
	}
	c.open[w] = struct{}{}
	end := peer.Certificate.NotAfter
	// A certificate is good until its NotAfter, inclusive, in whole seconds.
	left := func() time.Duration { return time.Until(end.Add(time.Millisecond)) }
	w.expiry = time.AfterFunc(min(left(), lookAgain), func() {
		rest := left()
		if rest > 0 {
			c.mu.Lock()
			defer c.mu.Unlock()
			if _, open := c.open[w]; open {
				w.expiry.Reset(min(rest, lookAgain))
			}
			return
		}
		_ = w.Close() // its reader gets the error
		expired(peer)
	})
}

// sweep ends the connections that are concerned and whose peers are refused, and
// reports each.
func (c *connections) sweep(concerns func(Caller) bool, holds func(Caller) error, closed func(Caller, error)) {
	c.mu.Lock()
	var list []*watched
	for w := range c.open {
		if concerns(w.peer) {
			list = append(list, w)
		}
	}
	c.mu.Unlock()
	for _, w := range list {
		if err := holds(w.peer); err != nil {
			_ = w.Close() // its reader gets the error
			if closed != nil {
				closed(w.peer, err)
			}
		}
	}
}
