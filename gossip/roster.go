package gossip

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/hashicorp/memberlist"

	"github.com/musterd/muster/gossip/digest"
	"github.com/musterd/muster/resource"
)

// maxMembers bounds the names that one ring member remembers, so that invented
// members cost at most some 30 MiB.
const maxMembers = 16384

// roster is the names that a ring holds, with the address of each. It is the
// gate of the ring: memberlist asks it about every message that reports a
// member alive, before it keeps anything of it (memberlist.AliveDelegate).
type roster struct {
	judge func(*memberlist.Node) error // further rules for a member; nil for none

	mu      sync.RWMutex
	members map[string]standing
}

type standing struct {
	addr  netip.AddrPort
	alive bool
}

func newRoster(judge func(*memberlist.Node) error) *roster {
	return &roster{judge: judge, members: make(map[string]standing)}
}

var errRingFull = errors.New("the ring holds its limit of 16384 names")

// NotifyAlive refuses a member whose name is no node id, whose tags break a
// rule, or that is one too many.
func (r *roster) NotifyAlive(n *memberlist.Node) error {
	if err := digest.ValidNodeID(resource.NodeID(n.Name)); err != nil {
		return fmt.Errorf("a member's name: %w", err)
	}
	if r.judge != nil {
		if err := r.judge(n); err != nil {
			return err
		}
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if _, known := r.members[n.Name]; !known && len(r.members) >= maxMembers {
		return errRingFull
	}
	return nil
}

// enter notes a member that memberlist has taken in, at its present address.
func (r *roster) enter(n *memberlist.Node, alive bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[n.Name] = standing{addressOf(n.Addr, n.Port), alive}
}

// forget drops a name that the ring no longer remembers.
func (r *roster) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.members[name].alive {
		delete(r.members, name)
	}
}

func (r *roster) find(name string) (s standing, known bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	s, known = r.members[name]
	return s, known
}

// isAt reports whether the ring has the member at that address.
func (r *roster) isAt(name string, ip []byte, port uint16) bool {
	s, known := r.find(name)
	return known && s.addr.IsValid() && s.addr == addressOf(ip, port)
}

func addressOf(ip net.IP, port uint16) netip.AddrPort {
	addr, ok := netip.AddrFromSlice(ip)
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr.Unmap(), port)
}

// judgeTags refuses a member of Muster whose tags break a rule of Tags.Validate
// or name another member: a member speaks for itself alone. A member without
// Muster's tags, such as a stock serf agent, is let in and has the zero Tags.
func judgeTags(n *memberlist.Node) error {
	raw, err := parseTags(n.Meta)
	if err != nil {
		return fmt.Errorf("tags of member %q: %w", n.Name, err)
	}
	t := decodeTags(raw)
	if t == (Tags{}) { // not of Muster
		return nil
	}
	if err := t.Validate(); err != nil {
		return fmt.Errorf("member %q: %w", n.Name, err)
	}
	if t.ID != n.Name {
		return fmt.Errorf("member %q has the tag id=%q: want its own name", n.Name, t.ID)
	}
	return nil
}

// rosterEvents keeps the roster and passes memberlist's events on.
type rosterEvents struct {
	roster *roster
	memberlist.EventDelegate
}

// NotifyJoin enters a member that lives.
func (e rosterEvents) NotifyJoin(n *memberlist.Node) {
	e.roster.enter(n, true)
	e.EventDelegate.NotifyJoin(n)
}

// NotifyLeave keeps the name of a member that left or failed.
func (e rosterEvents) NotifyLeave(n *memberlist.Node) {
	e.roster.enter(n, false)
	e.EventDelegate.NotifyLeave(n)
}

// NotifyUpdate enters the member's present address.
func (e rosterEvents) NotifyUpdate(n *memberlist.Node) {
	e.roster.enter(n, true)
	e.EventDelegate.NotifyUpdate(n)
}

// aliveDelegates asks the roster first.
type aliveDelegates struct {
	roster  *roster
	refused *refusals
	next    memberlist.AliveDelegate // nil for none
}

// NotifyAlive implements memberlist.AliveDelegate.
func (a aliveDelegates) NotifyAlive(n *memberlist.Node) error {
	if err := a.roster.NotifyAlive(n); err != nil {
		a.refused.add(RefusedTags, err)
		return err
	}
	if a.next == nil {
		return nil
	}
	return a.next.NotifyAlive(n)
}
