package shim

import (
	"net"
	"slices"
	"sync"
	"time"
)

// Silent bounds the connections of a socket before their request. A further connection beyond
// the bound ends the oldest of these: callers send their request at once, so a caller with many
// silent connections delays no other caller. The zero value is ready, and the method may be
// called by any goroutine.
type Silent struct {
	mu   sync.Mutex
	list []net.Conn // the oldest first
}

// mostSilent bounds the silent connections of a socket.
const mostSilent = 64

// Enter takes a new connection, which ends at requestTimeout or beyond the bound. The caller
// calls leave once the request is there, or the connection has failed.
func (s *Silent) Enter(c net.Conn) (leave func()) {
	_ = c.SetReadDeadline(time.Now().Add(requestTimeout)) // a connection without a deadline has failed
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) >= mostSilent {
		_ = s.list[0].Close()
		s.list = slices.Delete(s.list, 0, 1)
	}
	s.list = append(s.list, c)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = slices.DeleteFunc(s.list, func(other net.Conn) bool { return other == c })
	}
}
