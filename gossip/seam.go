package gossip

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// seam is a ring's transport with two additions: install runs once, after serf
// has entered its own delegates into the ring's settings and before memberlist
// starts the goroutines that read them, and streams from others are bounded.
//
// serf.Create sets the delegates and calls memberlist.Create at once, so that a
// caller has no chance to put its own in front. But memberlist asks its
// transport for the address to advertise in between (newMemberlist, before the
// first go statement), in the goroutine that called Create.
type seam struct {
	memberlist.Transport
	once    sync.Once
	install func() // nil for none
	streams <-chan net.Conn
	intake  *intake
}

// newSeam puts a seam in front of the transport of mc, and opens the host's
// network where mc has none. The ring shuts it down.
func newSeam(mc *memberlist.Config, refused *refusals) (*seam, error) {
	if mc.Transport == nil {
		t, err := openNetwork(mc)
		if err != nil {
			return nil, err
		}
		mc.Transport = t
	}
	s := &seam{Transport: mc.Transport, intake: newIntake(refused)}
	s.streams = s.intake.follow(mc.Transport.StreamCh())
	mc.Transport = s
	return s, nil
}

// bindTries is how often a free port is looked for: UDP and TCP need the same.
const bindTries = 10

// openNetwork binds UDP and TCP as memberlist does for settings without a
// transport, and enters a port that was free into mc.
func openNetwork(mc *memberlist.Config) (*network, error) {
	tries := 1
	if mc.BindPort == 0 {
		tries = bindTries
	}
	var err error
	for range tries {
		var t *network
		if t, err = listen(mc.BindAddr, mc.BindPort, mc.Logger); err != nil {
			continue
		}
		if mc.BindPort == 0 {
			mc.BindPort = t.port()
			mc.AdvertisePort = mc.BindPort
		}
		return t, nil
	}
	return nil, fmt.Errorf("cannot bind: %w", err)
}

// FinalAdvertiseAddr runs install before it returns the address for the first
// time.
func (s *seam) FinalAdvertiseAddr(ip string, port int) (net.IP, int, error) {
	s.once.Do(func() {
		if s.install != nil {
			s.install()
		}
	})
	return s.Transport.FinalAdvertiseAddr(ip, port)
}

// StreamCh delivers the streams that intake admits.
func (s *seam) StreamCh() <-chan net.Conn { return s.streams }

// WriteToAddress implements memberlist.NodeAwareTransport.
func (s *seam) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if t, ok := s.Transport.(memberlist.NodeAwareTransport); ok {
		return t.WriteToAddress(b, a)
	}
	return s.WriteTo(b, a.Addr)
}

// DialAddressTimeout implements memberlist.NodeAwareTransport.
func (s *seam) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if t, ok := s.Transport.(memberlist.NodeAwareTransport); ok {
		return t.DialAddressTimeout(a, timeout)
	}
	return s.DialTimeout(a.Addr, timeout)
}

// Shutdown ends the transport and the goroutine that follows its streams.
func (s *seam) Shutdown() error {
	s.intake.stop()
	defer s.intake.end() // until then the transport may wait to hand over a stream
	return s.Transport.Shutdown()
}
