package gossip

import (
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"
)

// Profile chooses the rings' timings. All members of a cluster should use one.
type Profile uint8

const (
	// LAN suits hosts of one data centre: a dead host is noticed within about
	// five to ten seconds.
	LAN Profile = iota
	// Local suits many members in one process or on one machine: slower probes,
	// patient with a busy processor, and cheap.
	Local
)

const (
	// broadcastTimeout is stock serf's. `serf tags` and `serf force-leave` wait until
	// their message has been sent as often as memberlist sends one: in a ring of
	// two, four times in 0.8 s. A shorter time makes both fail although they are
	// done. A graceful leave waits twice in the same way.
	broadcastTimeout = 5 * time.Second
	// leavePropagate is the time in which a member that has left still answers
	// probes.
	leavePropagate = 200 * time.Millisecond
	// leaveCapacity bounds the wait of a member that leaves the capacity ring: its
	// departure is only a hint there.
	leaveCapacity = 400 * time.Millisecond
	// answerLimit is the most bytes of a query's answer, envelope its encoding
	// around it: the answering member's name and a few numbers.
	answerLimit = 1024
	envelope    = 256
	// queryMult makes serf's default timeout of a query half of its own.
	queryMult = 8
)

// memberlist returns the ring's timings; name, addresses, label, keyring and
// delegates are the caller's.
func (p Profile) memberlist() *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.EnableCompression = false
	// A name whose owner failed may return at another address after this long;
	// one that left may at once.
	c.DeadNodeReclaimTime = 2 * time.Second
	if p == Local {
		c.TCPTimeout = time.Second
		// Loopback carries it whole, and it holds less than 255 of the smallest
		// messages, which is as many as memberlist can count in a packet.
		c.UDPBufferSize = 4 << 10
		c.PushPullInterval = 20 * time.Second
		c.ProbeInterval = 2 * time.Second
		c.ProbeTimeout = time.Second
		c.SuspicionMaxTimeoutMult = 3
		c.DeadNodeReclaimTime = time.Second
	}
	return c
}

// serf returns serf's own settings around m.
func (p Profile) serf(m *memberlist.Config) *serf.Config {
	c := serf.DefaultConfig()
	c.MemberlistConfig = m
	c.ProtocolVersion = serf.ProtocolVersionMax
	c.BroadcastTimeout = broadcastTimeout
	c.LeavePropagateDelay = leavePropagate
	c.QueryTimeoutMult = queryMult
	c.QueryResponseSizeLimit = answerLimit + envelope
	// Off: after a crash and a restart at another address the vote would end the
	// member that is alive, because the others still remember the dead one.
	c.EnableNameConflictResolution = false
	return c
}
