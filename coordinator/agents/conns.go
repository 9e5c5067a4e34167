package agents

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire/limits"
)

// conns are connections to agents beside those of the leader's sessions. Each is shared by
// its users, and closes with the last one. The zero value has none.
type conns struct {
	mu  sync.Mutex
	all map[target]*sharedConn
}

// target is an agent at an address.
type target struct {
	node resource.NodeID
	addr string
}

// sharedConn is a connection with its users.
type sharedConn struct {
	*grpc.ClientConn
	users int
}

// errBusy is wrapped where a connection has as many users as it may have.
var errBusy = errors.New("ask again")

// take returns the connection to an agent, for one more user of at most so many.
func (s *conns) take(at target, dial []grpc.DialOption, most int) (*grpc.ClientConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.all[at]
	if c == nil {
		conn, err := grpc.NewClient("passthrough:///"+at.addr, append([]grpc.DialOption{
			grpc.WithAuthority(string(at.node)),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepalivePeriod, Timeout: keepaliveTimeout}),
		}, append(limits.DialOptions(), dial...)...)...)
		if err != nil {
			return nil, fmt.Errorf("agent %s at %s: %w", at.node, at.addr, err)
		}
		c = &sharedConn{ClientConn: conn}
		if s.all == nil {
			s.all = map[target]*sharedConn{}
		}
		s.all[at] = c
	}
	if c.users == most {
		return nil, fmt.Errorf("node %s has %d by this coordinator: %w", at.node, c.users, errBusy)
	}
	c.users++
	return c.ClientConn, nil
}

// release ends a user.
func (s *conns) release(at target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.all[at]
	if c.users--; c.users == 0 {
		delete(s.all, at)
		_ = c.Close()
	}
}
