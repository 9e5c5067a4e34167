package rig

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc/test/bufconn"
)

// network is where processes listen, by name, and what connects them.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	conns     map[*conn]struct{} // both ends of every connection that is open
	cuts      map[[2]string]chan struct{}
	names     map[string]string // of processes, by the address that gossip tells
}

// listener gives the connections it accepts to the process that listens.
type listener struct {
	*bufconn.Listener
	net  *network
	proc *process
}

func newNetwork() *network {
	return &network{listeners: map[string]*listener{}, conns: map[*conn]struct{}{}, cuts: map[[2]string]chan struct{}{}, names: map[string]string{}}
}

func (n *network) listen(name string, p *process) *listener {
	l := &listener{bufconn.Listen(256 << 10), n, p}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[name] = l
	return l
}

// name is the process at an address, which may be its name.
func (n *network) name(addr string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, told := n.names[addr]; told {
		return name
	}
	return addr
}

// unplug takes a listener away, unless its successor is there already.
func (n *network) unplug(name string, l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[name] == l {
		delete(n.listeners, name)
	}
}

// dialer is how a process reaches the others.
func (n *network) dialer(from string, p *process) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, to string) (net.Conn, error) {
		if !p.pass() {
			return nil, fmt.Errorf("dial %s: %s has died", to, from)
		}
		to = n.name(to)
		for _, way := range [][2]string{{from, to}, {to, from}} {
			if healed := n.cut(way[0], way[1]); healed != nil {
				select {
				case <-healed:
				case <-ctx.Done():
					return nil, fmt.Errorf("dial %s: %w", to, ctx.Err())
				}
			}
		}
		n.mu.Lock()
		l := n.listeners[to]
		n.mu.Unlock()
		if l == nil {
			return nil, fmt.Errorf("dial %s: nobody listens", to)
		}
		c, err := l.DialContext(ctx)
		if err != nil {
			return nil, err
		}
		return n.add(&conn{Conn: c, from: from, to: to, proc: p}), nil
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.net.add(&conn{Conn: c, proc: l.proc}), nil
}

func (n *network) add(c *conn) *conn {
	c.net, c.closed = n, make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns[c] = struct{}{}
	return c
}

// sever closes every connection of a process, as the kernel does for one that
// was killed.
func (n *network) sever(p *process) {
	n.mu.Lock()
	var mine []*conn
	for c := range n.conns {
		if c.proc == p {
			mine = append(mine, c)
		}
	}
	n.mu.Unlock()
	for _, c := range mine {
		c.Close()
	}
}

// cut is the channel that closes when nothing keeps one process' bytes from
// another any more; nil when nothing does.
func (n *network) cut(from, to string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cuts[[2]string{from, to}]
}

// Cut keeps what one process sends from another, connections that are open
// included: bytes wait, as they do under TCP. The other way stays open.
func (c *Cluster) Cut(from, to string) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.net.cuts[[2]string{from, to}] == nil {
		c.net.cuts[[2]string{from, to}] = make(chan struct{})
	}
}

// Heal ends a Cut.
func (c *Cluster) Heal(from, to string) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if healed := c.net.cuts[[2]string{from, to}]; healed != nil {
		close(healed)
		delete(c.net.cuts, [2]string{from, to})
	}
}

// conn is one end of a connection. The dialer's end, which knows both names,
// holds what a cut keeps back; each end holds what its paused process does.
type conn struct {
	net.Conn
	net      *network
	from, to string // "" at the listener's end
	proc     *process

	once   sync.Once
	closed chan struct{}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && !c.hold(c.to, c.from) {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if !c.hold(c.from, c.to) {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// hold waits until bytes may pass; false if the connection has ended.
func (c *conn) hold(from, to string) bool {
	for {
		if !c.proc.pass() {
			return false
		}
		healed := c.net.cut(from, to)
		if healed == nil {
			return true
		}
		select {
		case <-healed:
		case <-c.closed:
			return false
		}
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.net.mu.Lock()
		delete(c.net.conns, c)
		c.net.mu.Unlock()
	})
	return c.Conn.Close()
}
