package gossip

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-sockaddr"
	"github.com/hashicorp/memberlist"
)

const (
	// mostPacket is the most bytes of a packet that is read; UDP has no longer ones.
	mostPacket = 64 << 10
	// packetBacklog is the size of the kernel's buffer of packets that wait to be read.
	packetBacklog = 2 << 20
	// firstAcceptPause and lastAcceptPause are the pauses after a stream that could not
	// be accepted, which double.
	firstAcceptPause = 5 * time.Millisecond
	lastAcceptPause  = time.Second
)

// network is a ring's UDP and TCP on one address and port. It does the work of
// memberlist.NetTransport, which reads each packet into 64 KiB of fresh memory: that
// was 40 % of all memory that a cluster of 100 nodes in one process allocated. A
// network reads all packets into one buffer and copies their bytes.
type network struct {
	packets chan *memberlist.Packet
	streams chan net.Conn
	tcp     *net.TCPListener
	udp     *net.UDPConn
	log     *log.Logger
	closed  atomic.Bool
	quit    chan struct{}
	wg      sync.WaitGroup
}

var _ memberlist.NodeAwareTransport = (*network)(nil)

// listen binds TCP and UDP to one address, and to one port that is free for both
// where the port is 0.
func listen(addr string, port int, logger *log.Logger) (*network, error) {
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		return nil, fmt.Errorf("bind address: %w", err)
	}
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, uint16(port))))
	if err != nil {
		return nil, err
	}
	port = tcp.Addr().(*net.TCPAddr).Port
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, uint16(port))))
	if err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	if err := enlargeBacklog(udp); err != nil {
		return nil, errors.Join(err, tcp.Close(), udp.Close())
	}
	n := &network{
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn),
		tcp: tcp, udp: udp, log: logger, quit: make(chan struct{}),
	}
	n.wg.Go(n.readPackets)
	n.wg.Go(n.acceptStreams)
	return n, nil
}

// enlargeBacklog takes the largest backlog that the kernel grants.
func enlargeBacklog(udp *net.UDPConn) (err error) {
	for size := packetBacklog; size > 0; size /= 2 {
		if err = udp.SetReadBuffer(size); err == nil {
			return nil
		}
	}
	return fmt.Errorf("size of the UDP buffer: %w", err)
}

// port is the port of both.
func (n *network) port() int { return n.tcp.Addr().(*net.TCPAddr).Port }

// readPackets hands over each packet with at least one byte.
func (n *network) readPackets() {
	buffer := make([]byte, mostPacket)
	for {
		size, from, err := n.udp.ReadFromUDPAddrPort(buffer)
		at := time.Now()
		switch {
		case n.closed.Load():
			return
		case err != nil:
			n.log.Printf("[ERR] memberlist: Error reading UDP packet: %v", err)
			continue
		case size == 0:
			n.log.Printf("[ERR] memberlist: UDP packet too short (0 bytes) from %s", from)
			continue
		}
		p := &memberlist.Packet{Buf: append([]byte(nil), buffer[:size]...), From: net.UDPAddrFromAddrPort(from), Timestamp: at}
		select {
		case n.packets <- p:
		case <-n.quit:
			return
		}
	}
}

// acceptStreams hands over each stream.
func (n *network) acceptStreams() {
	pause := firstAcceptPause
	for {
		c, err := n.tcp.AcceptTCP()
		if n.closed.Load() {
			if err == nil {
				_ = c.Close()
			}
			return
		}
		if err != nil {
			n.log.Printf("[ERR] memberlist: Error accepting TCP connection: %v", err)
			select {
			case <-time.After(pause):
			case <-n.quit:
				return
			}
			pause = min(2*pause, lastAcceptPause)
			continue
		}
		pause = firstAcceptPause
		select {
		case n.streams <- c:
		case <-n.quit:
			_ = c.Close()
			return
		}
	}
}

// FinalAdvertiseAddr returns the address that was asked for, else the bound one, and
// a private address of the host where all IPv4 addresses are bound.
func (n *network) FinalAdvertiseAddr(ip string, port int) (net.IP, int, error) {
	if ip != "" {
		addr, err := netip.ParseAddr(ip)
		if err != nil {
			return nil, 0, fmt.Errorf("advertised address: %w", err)
		}
		return net.IP(addr.Unmap().AsSlice()), port, nil
	}
	bound := n.tcp.Addr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	if bound != netip.IPv4Unspecified() {
		return net.IP(bound.AsSlice()), n.port(), nil
	}
	private, err := sockaddr.GetPrivateIP()
	if err != nil {
		return nil, 0, fmt.Errorf("look for a private IP address of this host: %w", err)
	}
	addr, err := netip.ParseAddr(private)
	if err != nil {
		return nil, 0, errors.New("this host has no private IP address: set the address to advertise")
	}
	return net.IP(addr.AsSlice()), n.port(), nil
}

// WriteTo sends a packet to "host:port".
func (n *network) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil { // a host's name
		resolved, err := net.ResolveUDPAddr("udp", addr)
		if err != nil {
			return time.Time{}, err
		}
		to = resolved.AddrPort()
	}
	_, err = n.udp.WriteToUDPAddrPort(b, netip.AddrPortFrom(to.Addr().Unmap(), to.Port()))
	return time.Now(), err
}

// WriteToAddress sends a packet to a member.
func (n *network) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return n.WriteTo(b, a.Addr)
}

// PacketCh delivers the packets.
func (n *network) PacketCh() <-chan *memberlist.Packet { return n.packets }

// DialTimeout opens a stream to "host:port".
func (n *network) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", addr, timeout)
}

// DialAddressTimeout opens a stream to a member.
func (n *network) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return n.DialTimeout(a.Addr, timeout)
}

// StreamCh delivers the streams.
func (n *network) StreamCh() <-chan net.Conn { return n.streams }

// Shutdown closes both sockets and waits until nothing is read any more.
func (n *network) Shutdown() error {
	if n.closed.Swap(true) {
		return nil
	}
	close(n.quit)
	err := errors.Join(n.tcp.Close(), n.udp.Close())
	n.wg.Wait()
	return err
}
