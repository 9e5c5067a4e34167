package attach

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// This file bounds the connections of each user, and of all users.

const (
	// mostOfUser bounds the open connections of one user, mostOfAll those of all users but
	// root.
	mostOfUser = 32
	mostOfAll  = 128
	// everySecond and atOnce bound the connections of one user over time, but those of root.
	everySecond = 50
	atOnce      = 200
	// mostUsers bounds the users whose rate is kept. A host with more begins anew.
	mostUsers = 1024
)

// Open listens at a path, at which every user may connect. A socket that an earlier agent
// has left is replaced; any other file stays.
func Open(path string) (*net.UnixListener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("attach socket %s: a file that is no socket is there", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("attach socket: %w", err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("attach socket: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		l.Close()
		return nil, fmt.Errorf("attach socket: %w", err)
	}
	return l, nil
}

// listener accepts connections within the bounds, and closes others at once.
type listener struct {
	*net.UnixListener
	mu    sync.Mutex
	open  map[uint32]int // by user
	sum   int            // of all but root
	rates map[uint32]*rate.Limiter
}

func newListener(l *net.UnixListener) *listener {
	return &listener{UnixListener: l, open: map[uint32]int{}, rates: map[uint32]*rate.Limiter{}}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := peerOf(c)
		if err != nil || !l.admit(uid, time.Now()) {
			c.Close()
			continue
		}
		return &bounded{Conn: c, uid: uid, of: l}, nil
	}
}

// admit takes a place for a connection of a user, unless there is none.
func (l *listener) admit(uid uint32, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if uid != 0 {
		if l.rates[uid] == nil {
			if len(l.rates) == mostUsers {
				clear(l.rates)
			}
			l.rates[uid] = rate.NewLimiter(everySecond, atOnce)
		}
		if l.sum >= mostOfAll || l.open[uid] >= mostOfUser || !l.rates[uid].AllowN(now, 1) {
			return false
		}
		l.sum++
	}
	l.open[uid]++
	return true
}

func (l *listener) leave(uid uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if uid != 0 {
		l.sum--
	}
	if l.open[uid]--; l.open[uid] == 0 {
		delete(l.open, uid)
	}
}

// bounded is a connection that has a place.
type bounded struct {
	net.Conn
	uid  uint32
	of   *listener
	once sync.Once
}

// Close may be called again.
func (b *bounded) Close() error {
	b.once.Do(func() { b.of.leave(b.uid) })
	return b.Conn.Close()
}
