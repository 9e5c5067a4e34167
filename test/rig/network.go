package rig

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc/test/bufconn"
)

// network is where processes listen, by name.
type network struct {
	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
}

func newNetwork() *network { return &network{listeners: map[string]*bufconn.Listener{}} }

func (n *network) listen(name string) *bufconn.Listener {
	l := bufconn.Listen(256 << 10)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[name] = l
	return l
}

// unplug takes a listener away, unless its successor is there already.
func (n *network) unplug(name string, l *bufconn.Listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[name] == l {
		delete(n.listeners, name)
	}
}

func (n *network) dial(ctx context.Context, name string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[name]
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: nobody listens", name)
	}
	return l.DialContext(ctx)
}
