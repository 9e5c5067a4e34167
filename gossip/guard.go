package gossip

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/musterd/muster/gossip/digest"
	"github.com/musterd/muster/resource"
)

// guard judges each message of the serf ring before serf acts on it or passes
// it on. Every member has the keys of the rings, so every message may come from
// a hostile one, and the sender's name in it may be forged.
//
// It refuses messages that serf would believe or spend memory on without limit:
// queries that change or list keys, answers and relays to addresses that are no
// member's, texts longer than honest members send, clocks that would run over,
// and more new queries, events and names than its budgets allow.
type guard struct {
	memberlist.Delegate // serf's

	roster  *roster
	refused *refusals

	mu      sync.Mutex
	clocks  [3]uint64 // the latest times that were accepted, by clock
	queries crowd
	events  crowd
	budgets [4]budget // by kind of message
}

// The Lamport clocks of serf.
const (
	memberClock = iota
	eventClock
	queryClock
)

// The budgets.
const (
	queryBudget = iota
	eventBudget
	relayBudget
	strangerBudget // joins and leaves of names that are no members
)

const (
	// maxQueryBytes and maxEventBytes are serf's default limits for senders.
	maxQueryBytes = 1024
	maxEventBytes = 512
	// maxAnswerBytes is the limit that Profile.serf sets.
	maxAnswerBytes = answerLimit + envelope
	maxQueryTime   = 10 * time.Minute
	maxRelayFactor = 5 // copies of an answer that go through other members
	// maxStateBytes is for serf's part of an exchange of state: 16,384 names and
	// 512 full event times.
	maxStateBytes = 8 << 20

	// clockFar is the time that clocks must not jump beyond, and clockStep the
	// most by which they may be ahead of this member's clock from there on.
	clockFar  = 1 << 62
	clockStep = 1 << 20
)

func newGuard(r *roster, refused *refusals) *guard {
	g := &guard{roster: r, refused: refused}
	g.budgets = [...]budget{
		queryBudget:    {perSecond: 20, most: 64},
		eventBudget:    {perSecond: 50, most: 1024}, // an exchange brings up to 512 times
		relayBudget:    {perSecond: 50, most: 100},
		strangerBudget: {perSecond: 50, most: 1024},
	}
	return g
}

// NotifyMsg hands the message to serf if it is in order.
func (g *guard) NotifyMsg(b []byte) {
	if len(b) == 0 {
		return
	}
	if kind, err := g.judge(b); err != nil {
		g.refused.add(kind, err)
		return
	}
	g.Delegate.NotifyMsg(b)
}

// errSeen marks a copy of a query or event that was judged before. It is not
// counted: rings send everything several times.
var errSeen = fmt.Errorf("a copy")

func (g *guard) judge(b []byte) (Refusal, error) {
	switch messageType(b[0]) {
	case leaveMessage:
		return g.judgeLeave(b[1:])
	case joinMessage:
		return g.judgeJoin(b[1:])
	case eventMessage:
		return g.judgeEvent(b)
	case queryMessage:
		return g.judgeQuery(b)
	case answerMessage:
		if len(b) > maxAnswerBytes {
			return RefusedSize, fmt.Errorf("an answer of %d bytes, want at most %d", len(b), maxAnswerBytes)
		}
		return "", nil
	case relayMessage:
		return g.judgeRelay(b[1:])
	default:
		return RefusedForm, fmt.Errorf("a message of type %d", b[0])
	}
}

func (g *guard) judgeLeave(body []byte) (Refusal, error) {
	var m leaveBody
	if err := decode(body, &m); err != nil {
		return RefusedForm, fmt.Errorf("a leave: %w", err)
	}
	if s, _ := g.roster.find(m.Node); m.Prune && s.alive {
		return RefusedMember, fmt.Errorf("a leave that removes %q, which lives", m.Node)
	}
	return g.judgeIntent(m.Node, m.LTime)
}

func (g *guard) judgeJoin(body []byte) (Refusal, error) {
	var m joinBody
	if err := decode(body, &m); err != nil {
		return RefusedForm, fmt.Errorf("a join: %w", err)
	}
	return g.judgeIntent(m.Node, m.LTime)
}

func (g *guard) judgeIntent(node string, time uint64) (Refusal, error) {
	if err := digest.ValidNodeID(resource.NodeID(node)); err != nil {
		return RefusedForm, err
	}
	_, known := g.roster.find(node)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !known && !g.budgets[strangerBudget].take() {
		return RefusedRate, fmt.Errorf("a join or leave of %q, which is no member", node)
	}
	return g.witness(memberClock, time)
}

func (g *guard) judgeEvent(b []byte) (Refusal, error) {
	if len(b) > maxEventBytes {
		return RefusedSize, fmt.Errorf("an event of %d bytes, want at most %d", len(b), maxEventBytes)
	}
	var m eventBody
	if err := decode(b[1:], &m); err != nil {
		return RefusedForm, fmt.Errorf("an event: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.countEvent(m.LTime, m.Name, m.Payload)
}

// countEvent admits an event's content once. mu is held.
func (g *guard) countEvent(time uint64, name string, payload []byte) (Refusal, error) {
	if kind, err := g.witness(eventClock, time); err != nil {
		return kind, err
	}
	return g.admit(&g.events, eventBudget, time, fingerprint(name, payload), "event "+clip(name))
}

func (g *guard) judgeQuery(b []byte) (Refusal, error) {
	if len(b) > maxQueryBytes {
		return RefusedSize, fmt.Errorf("a query of %d bytes, want at most %d", len(b), maxQueryBytes)
	}
	var m queryBody
	if err := decode(b[1:], &m); err != nil {
		return RefusedForm, fmt.Errorf("a query: %w", err)
	}
	if strings.HasPrefix(m.Name, serf.InternalQueryPrefix) && m.Name != pingQuery {
		kind := RefusedForm
		if strings.HasSuffix(m.Name, "-key") || strings.HasSuffix(m.Name, "-keys") {
			kind = RefusedKeys
		}
		return kind, fmt.Errorf("the query %s, sent in the name of %q: coordinators alone change gossip keys, and not through the ring", clip(m.Name), clip(m.SourceNode))
	}
	switch {
	case !g.roster.isAt(m.SourceNode, m.Addr, m.Port):
		return RefusedMember, fmt.Errorf("the query %s wants its answers at %s, where the ring has no member %q", clip(m.Name), addressOf(m.Addr, m.Port), clip(m.SourceNode))
	case m.Timeout < 0 || m.Timeout > maxQueryTime:
		return RefusedSize, fmt.Errorf("the query %s for %s, want at most %s", clip(m.Name), m.Timeout, maxQueryTime)
	case m.RelayFactor > maxRelayFactor:
		return RefusedSize, fmt.Errorf("the query %s with relay factor %d, want at most %d", clip(m.Name), m.RelayFactor, maxRelayFactor)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if kind, err := g.witness(queryClock, m.LTime); err != nil {
		return kind, err
	}
	return g.admit(&g.queries, queryBudget, m.LTime, uint64(m.ID), "query "+clip(m.Name))
}

func (g *guard) judgeRelay(body []byte) (Refusal, error) {
	if len(body) > maxAnswerBytes+envelope {
		return RefusedSize, fmt.Errorf("a relay of %d bytes, want at most %d", len(body), maxAnswerBytes+envelope)
	}
	var m relayHead
	rest, err := decodeHead(body, &m)
	if err != nil {
		return RefusedForm, fmt.Errorf("a relay: %w", err)
	}
	if len(rest) == 0 || messageType(rest[0]) != answerMessage {
		return RefusedForm, fmt.Errorf("a relay of something else than an answer")
	}
	if !g.roster.isAt(m.DestName, m.DestAddr.IP, uint16(m.DestAddr.Port)) {
		return RefusedMember, fmt.Errorf("a relay to %s, where the ring has no member %q", m.DestAddr.String(), clip(m.DestName))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.budgets[relayBudget].take() {
		return RefusedRate, fmt.Errorf("a relay to %q", clip(m.DestName))
	}
	return "", nil
}

// admit lets a message through that was not there before, within its budget and
// the limit of one time. mu is held.
func (g *guard) admit(c *crowd, b int, time, id uint64, what string) (Refusal, error) {
	switch c.add(time, id, &g.budgets[b]) {
	case crowdSeen:
		return refusedCopy, errSeen
	case crowdFull:
		return RefusedRate, fmt.Errorf("%s: too many", what)
	}
	return "", nil
}

// witness judges a Lamport time. A member that just joined is far behind its
// ring, so that any time below clockFar is good; above it clocks move in steps,
// and 2^43 steps away from the end. mu is held.
func (g *guard) witness(clock int, time uint64) (Refusal, error) {
	latest := &g.clocks[clock]
	if time > clockFar && time > *latest+clockStep {
		return RefusedClock, fmt.Errorf("the time %d, and the ring's is %d", time, *latest)
	}
	*latest = max(*latest, time)
	return "", nil
}

// MergeRemoteState hands serf the part of another member's state that is in
// order.
func (g *guard) MergeRemoteState(b []byte, join bool) {
	judged, err := g.judgeState(b)
	if err != nil {
		g.refused.add(RefusedForm, fmt.Errorf("another member's state: %w", err))
		return
	}
	g.Delegate.MergeRemoteState(judged, join)
}

// judgeState returns b without the names that are no members, which memberlist
// merged before, and without events that break a rule. It returns b itself when
// all is in order.
func (g *guard) judgeState(b []byte) ([]byte, error) {
	if len(b) == 0 || len(b) > maxStateBytes || messageType(b[0]) != stateMessage {
		return nil, fmt.Errorf("%d bytes, want 1 to %d that begin with type %d", len(b), maxStateBytes, stateMessage)
	}
	var m stateBody
	if err := decode(b[1:], &m); err != nil {
		return nil, err
	}
	dropped := 0
	g.mu.Lock()
	defer g.mu.Unlock()
	for clock, time := range map[int]uint64{memberClock: m.LTime, eventClock: m.EventLTime, queryClock: m.QueryLTime} {
		if _, err := g.witness(clock, time); err != nil {
			return nil, err
		}
	}
	for name, time := range m.StatusLTimes {
		_, known := g.roster.find(name)
		if _, err := g.witness(memberClock, time); !known || err != nil {
			delete(m.StatusLTimes, name)
			dropped++
		}
	}
	left := m.LeftMembers[:0]
	for _, name := range m.LeftMembers {
		if _, known := g.roster.find(name); known {
			left = append(left, name)
		} else {
			dropped++
		}
	}
	m.LeftMembers = left
	events, more := g.judgeEvents(m.Events)
	m.Events = events
	if dropped += more; dropped == 0 {
		return b, nil
	}
	return encode(stateMessage, m)
}

// judgeEvents returns the events of a state that are new and in order, and how
// many are not. mu is held.
func (g *guard) judgeEvents(all []*stateEvents) (kept []*stateEvents, dropped int) {
	for _, at := range all {
		if at == nil {
			continue
		}
		good := &stateEvents{LTime: at.LTime}
		for _, e := range at.Events {
			if len(e.Name)+len(e.Payload) > maxEventBytes {
				dropped++
				continue
			}
			if _, err := g.countEvent(at.LTime, e.Name, e.Payload); err != nil {
				dropped++
				continue
			}
			good.Events = append(good.Events, e)
		}
		if len(good.Events) > 0 {
			kept = append(kept, good)
		}
	}
	return kept, dropped
}

// clip bounds a text from the ring for logs and errors; those print it quoted or
// it is a name that came to be a constant.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}

// Refusal is why something that came through a ring was not taken.
type Refusal string

// The refusals.
const (
	RefusedKeys   Refusal = "keys"   // a query that changes or lists gossip keys
	RefusedForm   Refusal = "form"   // cannot be read, or is of no known kind
	RefusedSize   Refusal = "size"   // longer than honest members send
	RefusedMember Refusal = "member" // names no member, or one at another address
	RefusedTags   Refusal = "tags"   // a member whose tags break a rule
	RefusedClock  Refusal = "clock"  // a time that would make clocks run over
	RefusedRate   Refusal = "rate"   // more than the budget allows
	RefusedStream Refusal = "stream" // a stream too many, or too much in streams
	refusedCopy   Refusal = "copy"
)

// allRefusals lists every reason that is counted.
var allRefusals = [...]Refusal{RefusedKeys, RefusedForm, RefusedSize, RefusedMember, RefusedTags, RefusedClock, RefusedRate, RefusedStream}

// refusals counts and logs: at most one line a second per reason.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex
	counts map[Refusal]uint64
	logged map[Refusal]time.Time
}

func newRefusals(log *slog.Logger) *refusals {
	return &refusals{log: log, counts: make(map[Refusal]uint64), logged: make(map[Refusal]time.Time)}
}

func (r *refusals) add(kind Refusal, err error) {
	if kind == refusedCopy {
		return
	}
	now := time.Now()
	r.mu.Lock()
	r.counts[kind]++
	n := r.counts[kind]
	quiet := now.Sub(r.logged[kind]) < time.Second
	if !quiet {
		r.logged[kind] = now
	}
	r.mu.Unlock()
	if !quiet {
		r.log.Warn("gossip_refused", "reason", string(kind), "total", n, "error", err)
	}
}

func (r *refusals) count(kind Refusal) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[kind]
}
