package txn_test

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// scene is one preemption's surroundings: several records, hosts with one
// device each, leaders one after the other with a machine per transaction, and
// everything that is on its way. Every Txn is checked when it lands.
type scene struct {
	t *rapid.T

	rev     resource.Revision
	epoch   int
	records map[resource.TxID]row
	ever    map[resource.TxID]int // how often RELEASED was entered
	hosts   []*host

	machines map[resource.TxID]*txn.Machine // of the present leader
	answers  []posted                       // of the store, to the present leader
	messages []posted                       // of hosts, which may be lost
	commands []posted                       // to hosts: they too
	late     []intent                       // Txns without an answer that may still land
	deleted  map[resource.TxID]bool         // by its owner
}

type row struct {
	state grant.RecordState
	mod   resource.Revision
	by    resource.TxID
}

// host has one device: at most one transaction holds it, the preemptor may wait
// for it.
type host struct {
	node       resource.NodeID
	registered resource.Revision
	victim     resource.TxID // that was placed here at first, or ""
	preempted  bool          // the preemptor wants it
	states     map[resource.TxID]place
	promised   resource.Revision // to the preemptor, under that registration
}

type place string

const (
	waits    place = "WAITING"
	promises place = "RESERVED"
	holds    place = "HELD"
	leaves   place = "EVICTING"
	buried   place = "TOMBSTONE"
)

// posted is an input or a command for one machine.
type posted struct {
	tx   resource.TxID
	in   txn.Input
	what txn.Effect
}

// intent is a Txn as it was sent.
type intent struct {
	kind  string
	tx    resource.TxID
	epoch int
	mods  map[resource.TxID]resource.Revision   // of the records that it changes
	ids   map[resource.NodeID]resource.Revision // of the registrations
}

const preemptor resource.TxID = "p"

func newScene(t *rapid.T) *scene {
	s := &scene{
		t: t, rev: 10, records: map[resource.TxID]row{}, ever: map[resource.TxID]int{}, machines: map[resource.TxID]*txn.Machine{},
		deleted: map[resource.TxID]bool{},
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "hosts") {
		h := &host{node: resource.NodeID(fmt.Sprint("n", i)), registered: resource.Revision(i + 1), states: map[resource.TxID]place{}}
		h.victim = rapid.SampledFrom([]resource.TxID{"", "v", "v", "w"}).Draw(t, "victim")
		h.preempted = i == 0 || rapid.Bool().Draw(t, "wanted")
		s.hosts = append(s.hosts, h)
	}
	s.hosts[0].victim = "v"
	for _, v := range s.victims() {
		s.set(v, grant.RecordCommitted, "")
		s.machines[v], _ = txn.Recover(v, txn.Found{State: grant.RecordCommitted, Revision: s.rev}, s.votes(v))
	}
	for _, h := range s.hosts {
		if h.victim != "" {
			h.states[h.victim] = holds
		}
	}
	var nodes []resource.NodeID
	for _, h := range s.wanted() {
		nodes = append(nodes, h.node)
	}
	var effects []txn.Effect
	s.machines[preemptor], effects = txn.New(preemptor, nodes, s.victims()...)
	s.perform(preemptor, effects, true)
	return s
}

func (s *scene) victims() []resource.TxID {
	seen := map[resource.TxID]bool{}
	for _, h := range s.hosts {
		if h.victim != "" {
			seen[h.victim] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func (s *scene) wanted() []*host {
	return slices.DeleteFunc(slices.Clone(s.hosts), func(h *host) bool { return !h.preempted })
}

// parts are the hosts of a transaction.
func (s *scene) parts(tx resource.TxID) []*host {
	if tx == preemptor {
		return s.wanted()
	}
	return slices.DeleteFunc(slices.Clone(s.hosts), func(h *host) bool { return h.victim != tx })
}

func (s *scene) votes(tx resource.TxID) map[resource.NodeID]txn.Vote {
	votes := map[resource.NodeID]txn.Vote{}
	for _, h := range s.parts(tx) {
		votes[h.node] = txn.Vote{Revision: h.registered}
	}
	return votes
}

func (s *scene) host(n resource.NodeID) *host {
	i := slices.IndexFunc(s.hosts, func(h *host) bool { return h.node == n })
	return s.hosts[i]
}

func (s *scene) set(tx resource.TxID, state grant.RecordState, by resource.TxID) {
	if state == grant.RecordReleased {
		s.ever[tx]++
	}
	s.records[tx] = row{state, s.rev, by}
}

func (s *scene) must(ok bool, format string, args ...any) {
	if !ok {
		s.t.Fatalf(format+"; records %v", append(args, s.records)...)
	}
}

// land tries a Txn on the store.
func (s *scene) land(x intent) (bool, resource.Revision) {
	if x.kind != "aborted" && x.epoch != s.epoch {
		return false, 0
	}
	for tx, mod := range x.mods {
		if s.records[tx].mod != mod {
			return false, 0
		}
	}
	for node, id := range x.ids {
		if s.host(node).registered != id {
			return false, 0
		}
	}
	s.rev++
	switch x.kind {
	case "commit":
		s.landCommit(x)
	case "aborted":
		s.set(x.tx, grant.RecordAborted, "")
	case "evictions":
		for _, h := range s.wanted() {
			s.must(h.states[preemptor] == waits || h.states[preemptor] == promises, "I7: evicted while %s is %q for the preemptor", h.node, h.states[preemptor])
		}
		for _, v := range s.victims() {
			s.must(s.records[v].state == grant.RecordCommitted, "evicted twice")
			s.set(v, grant.RecordEvicting, preemptor)
		}
	case "evicting":
		s.must(s.records[x.tx].state == grant.RecordCommitted, "noticed twice")
		s.set(x.tx, grant.RecordEvicting, "")
	case "releasing":
		s.must(s.records[x.tx].state == grant.RecordCommitted || s.records[x.tx].state == grant.RecordEvicting, "I11: no edge to RELEASING")
		s.set(x.tx, grant.RecordReleasing, "")
	case "released":
		s.must(s.records[x.tx].state == grant.RecordReleasing, "I11: no edge to RELEASED")
		s.mustBeFree(x.tx)
		s.set(x.tx, grant.RecordReleased, "")
	}
	return true, s.rev
}

func (s *scene) landCommit(x intent) {
	for _, h := range s.wanted() {
		s.must(h.states[preemptor] == promises && h.promised == h.registered, "I3: committed while %s is %q", h.node, h.states[preemptor])
	}
	s.set(preemptor, grant.RecordCommitted, "")
	for _, v := range s.victims() {
		s.must(s.records[v].state == grant.RecordEvicting, "I11: committed over a victim that is %d", s.records[v].state)
		s.mustBeFree(v)
		s.set(v, grant.RecordReleased, "")
	}
}

func (s *scene) mustBeFree(tx resource.TxID) {
	for _, h := range s.parts(tx) {
		s.must(h.states[tx] == buried, "I10: %s RELEASED while %s is %q", tx, h.node, h.states[tx])
	}
	s.must(s.ever[tx] == 0, "I5: %s RELEASED twice", tx)
}

// obey lets a host act on a command.
func (s *scene) obey(c posted, refuses bool) {
	switch e := c.what.(type) {
	case txn.SendReserve:
		h := s.host(e.Node)
		if h.states[c.tx] == "" && !refuses && s.records[c.tx].state == grant.RecordAbsent {
			h.states[c.tx], h.promised = promises, h.registered
			if v := h.states[h.victim]; v != "" && v != buried {
				h.states[c.tx] = waits
			}
		}
		s.answer(h)
	case txn.SendCommit:
		if h := s.host(e.Node); h.states[c.tx] == promises {
			h.states[c.tx] = holds
		}
	case txn.SendAbort:
		h := s.host(e.Node)
		s.must(h.states[c.tx] != holds, "aborted what %s holds", h.node)
		delete(h.states, c.tx)
	case txn.SendEvict:
		if h := s.host(e.Node); h.states[c.tx] == holds {
			h.states[c.tx] = leaves
		} else {
			s.answerFreed(h, c.tx)
		}
	case txn.SendRelease:
		s.bury(s.host(e.Node), c.tx)
	}
}

// answer repeats what the host says to the preemptor.
func (s *scene) answer(h *host) {
	vote := txn.Vote{Revision: h.promised}
	switch h.states[preemptor] {
	case promises:
		s.messages = append(s.messages, posted{tx: preemptor, in: txn.Voted{Node: h.node, Vote: vote}})
	case waits:
		s.messages = append(s.messages, posted{tx: preemptor, in: txn.Waited{Node: h.node, Vote: vote}})
	case "":
		s.messages = append(s.messages, posted{tx: preemptor, in: txn.Refused{Node: h.node}})
	}
}

func (s *scene) answerFreed(h *host, tx resource.TxID) {
	if h.states[tx] == buried {
		s.messages = append(s.messages, posted{tx: tx, in: txn.Freed{Node: h.node}})
	}
}

// bury frees the device; in the same step whoever waits gets it.
func (s *scene) bury(h *host, tx resource.TxID) {
	h.states[tx] = buried
	s.answerFreed(h, tx)
	if h.states[preemptor] == waits && tx != preemptor {
		h.states[preemptor] = promises
		s.answer(h)
	}
}

// resolve is a host that lost patience with the preemptor.
func (s *scene) resolve(h *host) {
	if st := h.states[preemptor]; st != waits && st != promises {
		return
	}
	if s.records[preemptor].state == grant.RecordAbsent {
		s.rev++
		s.set(preemptor, grant.RecordAborted, "")
	}
	switch s.records[preemptor].state {
	case grant.RecordAborted:
		delete(h.states, preemptor)
	case grant.RecordCommitted:
		h.states[preemptor] = holds
	}
}

// restart is an OS crash: a new registration, then the records are read.
func (s *scene) restart(h *host) {
	s.rev++
	h.registered = s.rev
	for tx := range h.states {
		switch {
		case h.states[tx] == buried:
		case s.records[tx].state == grant.RecordCommitted:
			h.states[tx] = holds
		case s.records[tx].state == grant.RecordEvicting, s.records[tx].state == grant.RecordReleasing:
			s.bury(h, tx)
		default:
			delete(h.states, tx)
		}
	}
	if h.states[preemptor] == promises && s.records[preemptor].state != grant.RecordCommitted {
		delete(h.states, preemptor) // a bury above has woken it
	}
	for tx := range h.states { // as at every new session
		s.messages = append(s.messages, posted{tx: tx, in: txn.Reconnected{Node: h.node}})
		s.answerFreed(h, tx)
	}
}
