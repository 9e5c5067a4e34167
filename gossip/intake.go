package gossip

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// Bounds of the streams that others have open to one ring member. memberlist
// reads up to 20 MiB of a stream before it knows whether the sender has a key,
// so that these hold for peers outside the ring as well.
const (
	maxStreams = 256
	// maxStreamsOfHost is for one address that is not of this host.
	maxStreamsOfHost = 32
	// maxStreamBytes is for all open streams together: an exchange with a ring
	// of 10,000 members has about 5 MiB.
	maxStreamBytes = 32 << 20
)

// errIntakeFull ends a stream that would need more memory than all streams may.
var errIntakeFull = errors.New("gossip: the streams that are open hold 32 MiB together; this one is closed")

// intake bounds the streams of a ring member.
type intake struct {
	refused *refusals
	bytes   atomic.Int64 // read from streams that are still open

	quit, over        chan struct{} // closed by stop and by end
	stopOnce, endOnce sync.Once

	mu    sync.Mutex
	total int
	hosts map[netip.Addr]int
}

func newIntake(refused *refusals) *intake {
	return &intake{refused: refused, quit: make(chan struct{}), over: make(chan struct{}), hosts: make(map[netip.Addr]int)}
}

// follow passes on the streams that fit. Its goroutine closes them from stop on,
// and ends with end: the source may be blocked handing one over until then.
func (i *intake) follow(from <-chan net.Conn) <-chan net.Conn {
	to := make(chan net.Conn)
	go func() {
		for {
			select {
			case <-i.quit:
				i.drain(from)
				return
			case c := <-from:
				admitted, ok := i.admit(c)
				if !ok {
					i.refused.add(RefusedStream, fmt.Errorf("a stream from %v: too many are open", c.RemoteAddr()))
					_ = c.Close()
					continue
				}
				select {
				case to <- admitted:
				case <-i.quit:
					_ = admitted.Close()
				}
			}
		}
	}()
	return to
}

func (i *intake) drain(from <-chan net.Conn) {
	for {
		select {
		case <-i.over:
			return
		case c := <-from:
			_ = c.Close()
		}
	}
}

func (i *intake) stop() { i.stopOnce.Do(func() { close(i.quit) }) }

// end ends the goroutine of follow. Nothing hands over streams any more.
func (i *intake) end() { i.endOnce.Do(func() { close(i.over) }) }

// admit counts a stream until it is closed.
func (i *intake) admit(c net.Conn) (net.Conn, bool) {
	host := hostOf(c.RemoteAddr())
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.total >= maxStreams || !host.IsLoopback() && i.hosts[host] >= maxStreamsOfHost {
		return nil, false
	}
	i.total++
	i.hosts[host]++
	return &admitted{Conn: c, intake: i, host: host}, true
}

// hostOf is the zero address where the transport has none: such streams share
// one count.
func hostOf(a net.Addr) netip.Addr {
	if a == nil {
		return netip.Addr{}
	}
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr().Unmap()
}

func (i *intake) release(a *admitted) {
	i.bytes.Add(-a.read.Load())
	i.mu.Lock()
	defer i.mu.Unlock()
	i.total--
	if i.hosts[a.host]--; i.hosts[a.host] <= 0 {
		delete(i.hosts, a.host)
	}
}

// admitted is a stream whose bytes count until it is closed.
type admitted struct {
	net.Conn
	intake *intake
	host   netip.Addr
	read   atomic.Int64
	once   sync.Once
}

// Read fails with errIntakeFull once all streams together hold too much.
func (a *admitted) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	a.read.Add(int64(n))
	if a.intake.bytes.Add(int64(n)) > maxStreamBytes {
		a.intake.refused.add(RefusedStream, fmt.Errorf("a stream from %v: %w", a.RemoteAddr(), errIntakeFull))
		return 0, errors.Join(errIntakeFull, a.Close())
	}
	return n, err
}

// Close gives the stream's share back.
func (a *admitted) Close() error {
	err := a.Conn.Close()
	a.once.Do(func() { a.intake.release(a) })
	return err
}
