package rig

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/resource"
)

// known are the coordinators' addresses that agents are told. With rings they
// are told none.
func (c *Cluster) known() []string {
	if c.options.Rings {
		return nil
	}
	return []string{"c1", "c2", "c3"}
}

// address is what a process is told under: with rings something that looks
// like one.
func (c *Cluster) address(name string) string {
	if !c.options.Rings {
		return name
	}
	addr := ringAddress("rpc", name)
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.net.names[addr] = name
	return addr
}

// seeds are the serf addresses that everybody joins.
func (c *Cluster) seeds() []string {
	return []string{ringAddress(gossip.SerfRing, "c1"), ringAddress(gossip.SerfRing, "c2")}
}

func (c *Cluster) agentGossip(p *process) *agent.GossipConfig {
	if !c.options.Rings {
		return nil
	}
	return &agent.GossipConfig{SerfBind: "127.0.0.1:0", CapacityBind: "127.0.0.1:0", Join: c.seeds(), Transports: transports{c.air, p}}
}

// joinRings makes a coordinator a member of both rings; agents that it sees
// there are where it opens sessions to.
func (k *Coordinator) joinRings() error {
	c := k.cluster
	if !c.options.Rings {
		return nil
	}
	var err error
	k.Rings, err = gossip.Start(gossip.Config{
		Cluster: ClusterName, SerfBind: "127.0.0.1:0", CapacityBind: "127.0.0.1:0", Join: c.seeds(), Logger: c.log,
		Transports: transports{c.air, k.proc}, Tags: gossip.Tags{Role: gossip.RoleCoordinator, ID: k.ID, Addr: c.address(k.ID), API: "v1"},
		OnMember: func(m gossip.Member) {
			if m.Tags.Role != gossip.RoleAgent {
				return
			}
			k.AgentSuspected(resource.NodeID(m.Tags.ID), m.Status != gossip.Alive)
			if m.Status == gossip.Alive {
				k.AgentSeen(resource.NodeID(m.Tags.ID), m.Tags.Addr)
			}
		},
	})
	return err
}

// leaveRings ends the membership; a process that was killed says nothing.
func (k *Coordinator) leaveRings() {
	if k.Rings == nil {
		return
	}
	if err := k.Rings.Close(); err != nil {
		k.cluster.t.Errorf("coordinator %s leaves the rings: %v", k.ID, err)
	}
}

// ringAddress is a member's address in a ring: the same in every life.
func ringAddress(ring gossip.Ring, member string) string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%s", ring, member)
	sum := h.Sum32()
	return fmt.Sprintf("127.%d.%d.%d:7946", byte(sum>>16), byte(sum>>8), 1+byte(sum)%250)
}

// air carries the rings' packets and streams. It may lose packets.
type air struct {
	net *network

	mu      sync.Mutex
	members map[string]*radio // by address
	percent int               // of packets that are lost
	random  *rand.Rand
}

// Lose makes the rings lose a share of their packets, in percent, from now on;
// a seed decides which.
func (c *Cluster) Lose(percent int, seed uint64) {
	c.air.mu.Lock()
	defer c.air.mu.Unlock()
	c.air.percent, c.air.random = percent, rand.New(rand.NewPCG(seed, 0))
}

// CutGossip keeps a process' gossip from another: packets are lost, streams
// wait. HealGossip ends it.
func (c *Cluster) CutGossip(from, to string) { c.Cut("gossip/"+from, "gossip/"+to) }

// HealGossip ends a CutGossip.
func (c *Cluster) HealGossip(from, to string) { c.Heal("gossip/"+from, "gossip/"+to) }

// transports are one process' way to the air.
type transports struct {
	air  *air
	proc *process
}

// Open implements gossip.Transports.
func (t transports) Open(ring gossip.Ring, member string) (memberlist.Transport, error) {
	r := &radio{
		air: t.air, proc: t.proc, name: "gossip/" + t.proc.name, addr: ringAddress(ring, member),
		inbox: make(chan *memberlist.Packet, 256), // what a host's socket buffer holds
		heard: make(chan *memberlist.Packet), streams: make(chan net.Conn), closed: make(chan struct{}),
	}
	t.air.mu.Lock()
	t.air.members[r.addr] = r
	t.air.mu.Unlock()
	go r.listen()
	return r, nil
}

// radio is one ring's transport in one process: a memberlist.NodeAwareTransport.
type radio struct {
	air     *air
	proc    *process
	name    string // for cuts
	addr    string
	inbox   chan *memberlist.Packet
	heard   chan *memberlist.Packet
	streams chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

// listen hands on what has arrived, as long as the process runs.
func (r *radio) listen() {
	for {
		select {
		case p := <-r.inbox:
			if !r.proc.pass() {
				return
			}
			select {
			case r.heard <- p:
			case <-r.closed:
				return
			}
		case <-r.closed:
			return
		}
	}
}

// FinalAdvertiseAddr implements memberlist.Transport.
func (r *radio) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	addr, err := net.ResolveUDPAddr("udp", r.addr) // of numbers: nothing is looked up
	if err != nil {
		return nil, 0, err
	}
	return addr.IP.To4(), addr.Port, nil
}

// WriteTo implements memberlist.Transport.
func (r *radio) WriteTo(b []byte, addr string) (time.Time, error) {
	return r.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress sends a packet, which may be lost.
func (r *radio) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	now := time.Now()
	if !r.proc.pass() {
		return now, net.ErrClosed
	}
	to := r.air.reach(a.Addr)
	if to == nil || r.air.net.cut(r.name, to.name) != nil || r.air.unlucky() {
		return now, nil
	}
	select {
	case to.inbox <- &memberlist.Packet{Buf: append([]byte(nil), b...), From: ringAddr(r.addr), Timestamp: now}:
	default: // its buffer is full
	}
	return now, nil
}

// reach is who has an address now, or nil.
func (a *air) reach(addr string) *radio {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.members[addr]
}

func (a *air) unlucky() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.percent > 0 && a.random.IntN(100) < a.percent
}

// DialTimeout implements memberlist.Transport.
func (r *radio) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return r.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout opens a stream.
func (r *radio) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if !r.proc.pass() {
		return nil, net.ErrClosed
	}
	to := r.air.reach(a.Addr)
	if to == nil {
		return nil, fmt.Errorf("dial %s: nobody listens", a.Addr)
	}
	late := time.NewTimer(timeout)
	defer late.Stop()
	for _, way := range [][2]string{{r.name, to.name}, {to.name, r.name}} {
		if healed := r.air.net.cut(way[0], way[1]); healed != nil {
			select {
			case <-healed:
			case <-late.C:
				return nil, fmt.Errorf("dial %s: no answer within %v", a.Addr, timeout)
			}
		}
	}
	near, far := net.Pipe()
	select {
	case to.streams <- r.air.net.add(&conn{Conn: far, proc: to.proc}):
		return r.air.net.add(&conn{Conn: near, from: r.name, to: to.name, proc: r.proc}), nil
	case <-to.closed:
	case <-late.C:
	}
	return nil, fmt.Errorf("dial %s: refused", a.Addr)
}

// PacketCh implements memberlist.Transport.
func (r *radio) PacketCh() <-chan *memberlist.Packet { return r.heard }

// StreamCh implements memberlist.Transport.
func (r *radio) StreamCh() <-chan net.Conn { return r.streams }

// Shutdown implements memberlist.Transport.
func (r *radio) Shutdown() error {
	r.once.Do(func() {
		close(r.closed)
		r.air.mu.Lock()
		defer r.air.mu.Unlock()
		if r.air.members[r.addr] == r {
			delete(r.air.members, r.addr)
		}
	})
	return nil
}

// ringAddr is an address in a ring.
type ringAddr string

// Network implements net.Addr.
func (ringAddr) Network() string { return "rig" }

// String implements net.Addr.
func (a ringAddr) String() string { return string(a) }
