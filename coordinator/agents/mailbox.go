package agents

import (
	"sync"
	"time"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Bounds of one node's events that wait, and of the share that one Take gives
// it. Bytes are those that the events take in memory, by estimate.
const (
	maxWaiting      = 256
	maxWaitingBytes = 4 << 20
	shareEvents     = 32
	shareBytes      = 512 << 10
)

// Mailbox keeps the events of all nodes until the leader's loop takes them.
// Each node has a box of bounded size: while it is full, Put waits, so that a
// node that sends too much holds up its own stream alone. Of Occupied and
// HealthChanged, which carry the whole state, a box keeps the newest, and the
// Put that replaced one waits for the node's next turn; everything else stays,
// in order. Take goes round the nodes and gives each a bounded share.
//
// Put and Close may be called by any goroutine; Take and Rest by one.
type Mailbox struct {
	// Waited, if not nil, is called for each Put that has to wait.
	Waited func()

	signal chan struct{} // capacity 1: there may be something to take

	mu     sync.Mutex
	boxes  map[resource.NodeID]*box
	ring   []*box // those with events, in the order of their turns
	closed bool
}

// box holds the events of one node.
//
// Invariant: bytes is the sum of the events'; ringed exactly while the box is in
// the ring, which it is while it has events.
type box struct {
	node   resource.NodeID
	events []waiting
	bytes  int
	ringed bool
	room   chan struct{} // closed once events were taken; nil: nobody waits
	// rests: it has no turn before until, and its events wake nobody.
	rests bool
	until time.Time
}

type waiting struct {
	event grant.Event
	bytes int
}

// NewMailbox returns an empty mailbox.
func NewMailbox() *Mailbox {
	return &Mailbox{signal: make(chan struct{}, 1), boxes: map[resource.NodeID]*box{}}
}

// Put adds an event of a node. It waits while the node's box is full, and once
// it has replaced an event until the box is next taken from; after Close it drops
// the event.
func (m *Mailbox) Put(e grant.Event) {
	w := waiting{e, sizeOf(e)}
	for told := false; ; {
		m.mu.Lock()
		if m.closed {
			m.mu.Unlock()
			return
		}
		b := m.boxes[e.NodeID()]
		if b == nil {
			b = &box{node: e.NodeID()}
			m.boxes[b.node] = b
		}
		replaced := b.supersede(e)
		if len(b.events) == 0 || len(b.events) < maxWaiting && b.bytes+w.bytes <= maxWaitingBytes {
			m.add(b, w)
			if b.rests = b.rests && b.until.After(time.Now()); !b.rests {
				m.wake()
			}
			if !replaced {
				m.mu.Unlock()
				return
			}
			room := b.awaitRoom()
			m.mu.Unlock()
			<-room
			return
		}
		room := b.awaitRoom()
		m.mu.Unlock()
		if !told && m.Waited != nil {
			told = true
			m.Waited()
		}
		<-room
	}
}

// add appends an event. m.mu is held.
func (m *Mailbox) add(b *box, w waiting) {
	if !b.ringed {
		b.ringed = true
		m.ring = append(m.ring, b)
	}
	b.events = append(b.events, w)
	b.bytes += w.bytes
}

// awaitRoom is closed when the box is next taken from.
func (b *box) awaitRoom() <-chan struct{} {
	if b.room == nil {
		b.room = make(chan struct{})
	}
	return b.room
}

// supersede drops an earlier event that the new one includes completely, and
// reports whether there was one.
func (b *box) supersede(e grant.Event) bool {
	var same func(grant.Event) bool
	switch e.(type) {
	case grant.Occupied:
		same = func(o grant.Event) bool { _, is := o.(grant.Occupied); return is }
	case grant.HealthChanged:
		same = func(o grant.Event) bool { _, is := o.(grant.HealthChanged); return is }
	default:
		return false
	}
	for i, w := range b.events {
		if same(w.event) {
			b.bytes -= w.bytes
			copy(b.events[i:], b.events[i+1:])
			b.events[len(b.events)-1] = waiting{}
			b.events = b.events[:len(b.events)-1]
			return true
		}
	}
	return false
}

// Waiting is signalled when there may be something to take.
func (m *Mailbox) Waiting() <-chan struct{} { return m.signal }

func (m *Mailbox) wake() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// Take returns the waiting events: of each node in turn at most 32 events and
// 512 KiB, at least one, in the order in which they came; in all about most
// events. Nodes that rest are left out. If anything stays, Waiting is signalled
// again: at once, or when a rest is over.
func (m *Mailbox) Take(now time.Time, most int) []grant.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	var taken []grant.Event
	stays := false
	for turns := len(m.ring); turns > 0; turns-- {
		b := m.ring[0]
		m.ring = m.ring[1:]
		if b.rests = b.rests && b.until.After(now); !b.rests && len(taken) < most {
			taken = b.share(taken)
		}
		if b.ringed = len(b.events) > 0; b.ringed {
			m.ring = append(m.ring, b)
			stays = stays || !b.rests
		}
	}
	if stays {
		m.wake()
	}
	return taken
}

// share moves the box's share to a list.
func (b *box) share(to []grant.Event) []grant.Event {
	n, bytes := 0, 0
	for n < len(b.events) && n < shareEvents && (n == 0 || bytes+b.events[n].bytes <= shareBytes) {
		to = append(to, b.events[n].event)
		bytes += b.events[n].bytes
		n++
	}
	b.bytes -= bytes
	left := copy(b.events, b.events[n:])
	clear(b.events[left:])
	b.events = b.events[:left]
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
	return to
}

// Rest leaves a node out of Take for a while, counted from now.
func (m *Mailbox) Rest(node resource.NodeID, now time.Time, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.boxes[node]; b != nil && !m.closed {
		b.rests, b.until = true, now.Add(d)
		time.AfterFunc(d, m.wake)
	}
}

// Close drops everything, and ends every Put.
func (m *Mailbox) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.ring = true, nil
	for _, b := range m.boxes {
		b.events, b.bytes = nil, 0
		if b.room != nil {
			close(b.room)
			b.room = nil
		}
	}
}

// sizeOf estimates how many bytes an event takes in memory.
func sizeOf(e grant.Event) int {
	const base = 256
	switch e := e.(type) {
	case Connected:
		host := 0
		if t, inv := e.Host.Topology, e.Host.Inventory; t != nil && inv != nil {
			host = 128*len(t.CPUs) + 256*len(t.Nodes) + 8*len(t.Nodes)*len(t.Nodes) + 512*len(inv.Devices) + 8*len(inv.Devices)*len(inv.Devices)
		}
		return base + host + occupancySize(e.Occupancy) + len(e.Quarantine)
	case grant.Occupied:
		return base + occupancySize(e.Occupancy)
	case grant.Replied:
		size := base + len(e.Tx) + membersSize(e.Members)
		for _, r := range e.Reasons {
			size += 96 + len(r.Code) + len(r.Detail) + len(r.Resource)
		}
		return size
	case grant.HealthChanged:
		return base + healthSize(e.Health) + len(e.Quarantine)
	}
	return base
}

func occupancySize(o grant.Occupancy) int {
	size := healthSize(o.Health)
	for _, g := range o.Grants {
		size += 160 + len(g.Tx) + len(g.Unit) + len(g.Name) + len(g.Tenant) + len(g.Origin) + membersSize(g.Members)
	}
	return size
}

func membersSize(members []grant.Member) int {
	size := 0
	for _, m := range members {
		a := &m.Assignment
		size += 128 + 16*len(a.CPUs) + 16*len(a.Memory) + 24*len(a.Hugepages) + 72*len(a.GPUs) + 112*len(a.MIG) + 64*len(a.Counts)
	}
	return size
}

func healthSize(health map[int]grant.DeviceHealth) int {
	size := 0
	for _, h := range health {
		size += 64 + len(h.Reason)
	}
	return size
}
