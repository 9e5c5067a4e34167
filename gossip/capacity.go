package gossip

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/memberlist"

	"github.com/musterd/muster/gossip/digest"
	"github.com/musterd/muster/resource"
)

// capacityConfig configures a member of one cell's capacity ring. See Config
// for the fields' meaning; ID is the member's name.
type capacityConfig struct {
	Cluster string
	Cell    string
	ID      string
	Bind    string
	// Advertise is an IP address or "".
	Advertise  string
	Keyring    *Keyring
	Transports Transports
	Profile    Profile
	Logger     *slog.Logger
}

// Capacity is a member of a capacity ring. Close ends it.
type Capacity struct {
	log    *slog.Logger
	self   resource.NodeID
	cell   string
	addr   string
	port   atomic.Uint32 // own port, 0 until known
	list   *memberlist.Memberlist
	table  *table
	outbox *outbox
	pacer  *pacer
	joiner *joiner
	events *mailbox[resource.NodeID, DigestEvent]
	// refused counts members that were not let in.
	refused *refusals

	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once
	err    error
}

// newCapacity creates the member; run must follow.
func newCapacity(cfg capacityConfig) (*Capacity, error) {
	if cfg.Cell == "" {
		cfg.Cell = DefaultCell
	}
	if err := errors.Join(validCluster(cfg.Cluster), digest.ValidCell(cfg.Cell), digest.ValidNodeID(resource.NodeID(cfg.ID))); err != nil {
		return nil, err
	}
	bind, err := bindAddress("capacity bind address", cfg.Bind, cfg.Keyring)
	if err = errors.Join(err, checkAdvertise(cfg.Advertise)); err != nil {
		return nil, err
	}
	c := &Capacity{
		log:    loggerOr(cfg.Logger).With("ring", "capacity", "cell", cfg.Cell),
		self:   resource.NodeID(cfg.ID),
		cell:   cfg.Cell,
		events: newMailbox[resource.NodeID, DigestEvent](),
	}
	c.joiner, c.refused = newJoiner(c.log), newRefusals(c.log)
	c.table = newTable(c.self, c.cell, func(e DigestEvent) { c.events.put(e.Digest.NodeID, e) })
	mc := cfg.Profile.memberlist()
	c.outbox = newOutbox(c.table.size, mc.RetransmitMult)
	c.pacer = newPacer(c.table.size, func(d digest.Digest) { c.outbox.put(string(c.self), c.table.publish(d)) })

	mc.Name = cfg.ID
	mc.Label = cfg.Cluster + "/capacity/" + cfg.Cell
	mc.BindAddr, mc.BindPort = bind.Addr().String(), int(bind.Port())
	mc.AdvertiseAddr, mc.AdvertisePort = cfg.Advertise, mc.BindPort
	mc.Keyring = cfg.Keyring.memberlist()
	mc.Logger = log.New(&logWriter{logger: loggerOr(cfg.Logger), ring: "capacity"}, "", 0)
	if err := use(cfg.Transports, CapacityRing, cfg.ID, mc); err != nil {
		return nil, fmt.Errorf("capacity ring at %s: %w", bind, err)
	}
	between, err := newSeam(mc, c.refused)
	if err != nil {
		return nil, fmt.Errorf("capacity ring at %s: %w", bind, err)
	}
	d, members := delegate{c}, newRoster(nil)
	mc.Delegate, mc.Events, mc.Merge = d, rosterEvents{members, d}, d
	mc.Alive = aliveDelegates{roster: members, refused: c.refused}
	if c.list, err = memberlist.Create(mc); err != nil {
		return nil, fmt.Errorf("capacity ring at %s: %w", bind, errors.Join(err, between.Shutdown()))
	}
	node := c.list.LocalNode()
	c.port.Store(uint32(node.Port))
	c.addr = net.JoinHostPort(node.Addr.String(), strconv.Itoa(int(node.Port)))
	return c, nil
}

// run starts the member's goroutines.
func (c *Capacity) run(onDigest func(DigestEvent), sources func() ([]string, bool)) {
	c.joiner.own = c.addr
	c.joiner.sources = sources
	c.joiner.known = c.table.others
	c.joiner.join = c.list.Join

	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.wg.Go(func() { c.joiner.run(ctx) })
	c.wg.Go(func() { c.pacer.run(ctx) })
	c.wg.Go(func() {
		c.events.deliver(ctx, func(e DigestEvent) {
			if onDigest != nil {
				onDigest(e)
			}
		})
	})
}

// Addr is the address this member is bound to in the capacity ring.
func (c *Capacity) Addr() string { return c.addr }

// Joined is closed once this member sees another one, or when there is nobody
// to look for.
func (c *Capacity) Joined() <-chan struct{} { return c.joiner.joined }

// JoinError is why the newest attempt to join failed, nil after a success.
func (c *Capacity) JoinError() error { return c.joiner.lastError() }

// Publish spreads this node's digest: at once after a quiet time, else as soon
// as publishInterval allows; of several that wait only the newest is sent, and
// one that is not newer than the last is ignored. It never blocks. It refuses a
// digest that is invalid, or of another node or cell.
//
// A node that restarts and counts Sequence from the start again is ignored by
// the others until its Revision rises, which a registration does.
func (c *Capacity) Publish(d digest.Digest) error {
	if err := d.Validate(); err != nil {
		return err
	}
	if d.NodeID != c.self || d.Cell != c.cell {
		return fmt.Errorf("publish the digest of %s in cell %s: this member is %s in cell %s", d.NodeID, d.Cell, c.self, c.cell)
	}
	c.pacer.offer(d.Clone())
	return nil
}

// Digests returns the newest digest of every member that published one, this
// one included, by node id. They must not be changed.
func (c *Capacity) Digests() []digest.Digest { return c.table.digests() }

// Members counts the ring's living members, this one included.
func (c *Capacity) Members() int { return c.table.size() }

// Counters counts the received digests by their outcome.
func (c *Capacity) Counters() Counters { return c.table.counters() }

// Close leaves the ring and ends the member. It takes less than half a second,
// more only while a callback or a dial blocks. Calling it again returns the
// same result.
func (c *Capacity) Close() error { return c.end(true) }

// Abandon ends the member without a word: the others find out by probing, as
// after a crash. It is for processes that end together with the ring.
func (c *Capacity) Abandon() error { return c.end(false) }

func (c *Capacity) end(leave bool) error {
	c.once.Do(func() {
		c.cancel()
		if leave {
			if err := c.list.Leave(leaveCapacity); err != nil {
				c.log.Debug("ring_leave_incomplete", "error", err)
			}
		}
		c.err = c.list.Shutdown()
		c.wg.Wait()
	})
	return c.err
}

// delegate connects memberlist to the table. Its methods are called under
// memberlist's locks: none blocks, none calls the list.
type delegate struct{ c *Capacity }

// NodeMeta is empty: tags travel in the serf ring.
func (d delegate) NodeMeta(int) []byte { return nil }

// NotifyMsg takes one digest and passes it on when it was news.
func (d delegate) NotifyMsg(b []byte) {
	if node, news := d.c.table.offer(b); news != nil {
		d.c.outbox.put(string(node), news)
	}
}

// GetBroadcasts hands out the digests that wait, least sent first.
func (d delegate) GetBroadcasts(overhead, limit int) [][]byte {
	return d.c.outbox.take(overhead, limit)
}

// LocalState is the whole table.
func (d delegate) LocalState(bool) []byte { return d.c.table.state() }

// MergeRemoteState takes another member's table.
func (d delegate) MergeRemoteState(b []byte, _ bool) { d.c.table.merge(b) }

// NotifyJoin admits a member.
func (d delegate) NotifyJoin(n *memberlist.Node) {
	d.c.table.join(resource.NodeID(n.Name), n.Address())
}

// NotifyLeave drops a member that left or failed.
func (d delegate) NotifyLeave(n *memberlist.Node) { d.c.table.leave(resource.NodeID(n.Name)) }

// NotifyUpdate changes nothing: members carry no metadata.
func (d delegate) NotifyUpdate(*memberlist.Node) {}

// NotifyMerge refuses nobody. It notices when the ring holds this member's name
// at another port: the entry of an earlier run, which stays until the others
// forget it.
func (d delegate) NotifyMerge(peers []*memberlist.Node) error {
	own := d.c.port.Load()
	for _, n := range peers {
		if n.Name == string(d.c.self) && own != 0 && uint32(n.Port) != own && n.State != memberlist.StateLeft {
			d.c.joiner.conflict.Store(true)
		}
	}
	return nil
}
