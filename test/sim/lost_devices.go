package sim

import (
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is devices that are gone while a unit holds them. An agent names them
// with its heartbeats (agent/lost.go), and the configuration of the leaders says
// whether their units are evicted.

// lostReason begins the reason of an eviction for a lost device.
const lostReason = "DeviceLost: "

// reported is what a host's heartbeats said last, as the store has it.
type reported struct {
	text string
	rev  resource.Revision
}

// planLostDevices draws whether units that hold a lost device are evicted.
func (s *Sim) planLostDevices(o Options) {
	_, drawn := o.draw(LostDevices, 1, 2)
	s.evictsLost = drawn && s.evictions
}

// actLose takes a card from a host where something runs, or puts the card back.
func (s *Sim) actLose() bool {
	h := pick(s, s.hosts)
	if h.agent == nil || len(h.running) == 0 {
		return false
	}
	h.agent.rehost(1 - min(h.kind, 1))
	s.logf("%s: its hardware changes to kind %d", h.node, h.kind)
	return true
}

// status is the key of the store with the conditions that a host's heartbeats
// reported last.
func (h *host) status() record.KV {
	if a := h.agent; a != nil && !a.dead && !h.lying() {
		if text := strings.Join(a.lost(), " "); text != h.reported.text {
			h.reported = reported{text, h.reported.rev + 1}
		}
	}
	if h.reported.rev == 0 {
		return record.KV{}
	}
	status := record.NodeStatus{}
	if h.reported.text != "" {
		status.Conditions = []record.Condition{{Type: "DeviceLost", Status: "True", Reason: "HeldDeviceGone", Message: h.reported.text + " ; held, and gone"}}
	}
	return record.KV{Key: record.NodeStatusKey(h.node), Value: record.MustEncode(status), ModRev: h.reported.rev}
}

// lost lists the devices that grants hold and that the host does not have.
func (a *agent) lost() []string {
	var lost []string
	for _, g := range a.l.Snapshot().Grants {
		if g.State == grant.Tombstone {
			continue
		}
		for _, m := range g.Members {
			for _, d := range m.Assignment.GPUs {
				if !a.h.has(d.UUID) {
					lost = append(lost, d.UUID)
				}
			}
		}
	}
	slices.Sort(lost)
	return slices.Compact(lost)
}

// has reports whether a host has a device.
func (h *host) has(uuid string) bool {
	for _, d := range h.hardware().Inventory().Devices {
		if d.UUID == uuid {
			return true
		}
	}
	return false
}

// gangReason begins the reason of an eviction of the members that came after a gang.
const gangReason = "its gang was evicted: "

// noteEviction tells the checker that an eviction for a lost device was asked for, or one
// that follows from the eviction of a gang.
// Without the part nothing is evicted for that.
func (s *Sim) noteEviction(path, reason string) {
	if strings.HasPrefix(reason, gangReason) {
		s.noteWished(path)
		return
	}
	if !strings.HasPrefix(reason, lostReason) {
		return
	}
	s.stats["evicted for a lost device"]++
	if !s.evictsLost {
		s.fail("devices", "%s is evicted though it may keep its devices: %s", path, reason)
		return
	}
	s.noteWished(path)
}

// noteWished says that the eviction of a unit was asked for.
func (s *Sim) noteWished(path string) {
	for _, kv := range s.store.all(record.UnitsPrefix) {
		if u := s.store.units.of(kv); u.Path().String() == path && u.TxID != "" {
			s.evictionAsked(u.TxID)
		}
	}
}

// checkLostDevices verifies, when all is quiet, that a committed unit holds no
// lost device where such units are evicted.
func (s *Sim) checkLostDevices() {
	for _, kv := range s.store.all(record.TxPrefix) {
		r := s.store.txs.of(kv)
		if r.State != grant.RecordCommitted {
			continue
		}
		for _, m := range r.Members {
			h := s.host(m.Node)
			for _, d := range m.AsMember().Assignment.GPUs {
				switch {
				case h.lying() || h.has(d.UUID):
				case s.evictsLost:
					s.fail("devices", "%s keeps %s, which %s has lost", kv.Key, d.UUID, h.node)
				default:
					s.stats["lost devices kept"]++
				}
			}
		}
	}
}
