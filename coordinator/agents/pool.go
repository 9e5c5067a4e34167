package agents

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
)

// Options configure a Pool. All fields are required but Dial.
type Options struct {
	Cluster  string
	LeaderID string
	Epoch    resource.Epoch
	// Identity returns a node's registration in the store; it is asked before
	// each Hello and may block.
	Identity func(context.Context, resource.NodeID) (resource.Incarnation, resource.Revision, error)
	// Deliver takes events, from one goroutine per node; it may block.
	Deliver func(grant.Event)
	// Dial holds credentials and, in tests, a dialer.
	Dial   []grpc.DialOption
	Logger *slog.Logger
}

// How often and how long.
const (
	firstRetry   = 50 * time.Millisecond
	lastRetry    = 3 * time.Second
	firstPenalty = 5 * time.Second // after a stream whose agent broke the protocol
	lastPenalty  = 5 * time.Minute
	lastBroken   = time.Minute // between streams to an agent that cannot be understood
	hintEvery    = time.Second
	helloTimeout = 10 * time.Second

	keepalivePeriod  = 15 * time.Second
	keepaliveTimeout = 5 * time.Second

	outboxSize = 4096 // commands that wait for a slow agent before its stream is given up
)

// Pool keeps one session to each target open. Methods may be called by any
// goroutine and do not block, Close aside.
type Pool struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	like   atomic.Pointer[fit.Host] // whose score tables a new host of the same kind shares

	mu       sync.Mutex
	sessions map[resource.NodeID]*session
}

// session is one target; its goroutine connects until the target is removed.
type session struct {
	node   resource.NodeID
	addr   string
	cancel context.CancelFunc
	ended  chan struct{} // closed after its last event
	gone   bool          // removed; kept until it has ended. Guarded by Pool.mu.
	hurry  chan struct{} // capacity 1: connect now, without further waiting

	mu     sync.Mutex
	outbox chan *musterv1.LeaderMessage // nil while there is no stream
	giveUp context.CancelFunc           // ends the stream; set while outbox is
	heard  resource.Incarnation         // of the stream's agent; likewise
	hinted time.Time                    // when a hint last counted
	// penalty is the wait before the next stream, which nothing shortens; 0 for
	// none. It doubles each time that the agent breaks the protocol.
	penalty time.Duration
	owed    bool          // it has not been waited out yet
	pardon  chan struct{} // closed when the penalty ends early; set while it is waited out
}

// NewPool returns an empty pool; ctx ends all its sessions.
func NewPool(ctx context.Context, o Options) *Pool {
	ctx, cancel := context.WithCancel(ctx)
	return &Pool{o: o, ctx: ctx, cancel: cancel, sessions: map[resource.NodeID]*session{}}
}

// Close ends all sessions and waits for them.
func (p *Pool) Close() {
	p.cancel()
	p.wg.Wait()
}

// SetTarget opens a session to a node at an address, or moves it there. A call
// is a sign that the node may be there: a session that waits there to connect
// again does so now.
func (p *Pool) SetTarget(node resource.NodeID, addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return
	}
	before := p.sessions[node]
	if before != nil {
		if before.addr == addr && !before.gone {
			before.wake()
			return
		}
		before.cancel()
	}
	ctx, cancel := context.WithCancel(p.ctx)
	s := &session{node: node, addr: addr, cancel: cancel, ended: make(chan struct{}), hurry: make(chan struct{}, 1)}
	p.sessions[node] = s
	p.wg.Go(func() {
		defer p.end(s)
		if before != nil {
			<-before.ended // its Disconnected comes before this one's Connected
		}
		p.run(ctx, s)
	})
}

// end forgets a removed session after its last event.
func (p *Pool) end(s *session) {
	s.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.gone && p.sessions[s.node] == s {
		delete(p.sessions, s.node)
	}
	close(s.ended)
}

// RemoveTarget closes the session to a node.
func (p *Pool) RemoveTarget(node resource.NodeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sessions[node]; s != nil {
		s.cancel()
		s.gone = true
	}
}

// Registered reports that the agent of a node has registered: it lives. A
// session that waits to connect again does so now. A stream to another
// incarnation than the one given, if any is, is to one that is gone, even if
// its connection has not failed yet.
func (p *Pool) Registered(node resource.NodeID, incarnation resource.Incarnation) {
	p.mu.Lock()
	s := p.sessions[node]
	p.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outbox != nil && (incarnation.IsZero() || s.heard == incarnation) {
		return
	}
	s.reconnect()
}

// Hint reports that the agent of a node may be there: a session that waits to
// connect again does so now, at most once a second for this reason.
func (p *Pool) Hint(node resource.NodeID) {
	s := p.session(node)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.hinted) >= hintEvery {
		s.hinted = now
		s.wake()
	}
}

// Distrust ends the stream to a node whose agent broke the protocol. The next
// one is opened after a wait that doubles each time, from 5 s to 5 min.
func (p *Pool) Distrust(node resource.NodeID) {
	s := p.session(node)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outbox != nil {
		s.penalize()
		s.outbox = nil
		s.giveUp()
	}
}

// Trust ends the wait that Distrust began, and has the next one begin anew.
func (p *Pool) Trust(node resource.NodeID) {
	s := p.session(node)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.penalty, s.owed = 0, false
	if s.pardon != nil {
		close(s.pardon)
		s.pardon = nil
	}
}

// penalize lengthens the wait before the next stream. s.mu is held.
func (s *session) penalize() {
	s.penalty, s.owed = min(max(firstPenalty, 2*s.penalty), lastPenalty), true
}

// session is that of a node, nil without one.
func (p *Pool) session(node resource.NodeID) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sessions[node]; s != nil && !s.gone {
		return s
	}
	return nil
}

func (s *session) wake() {
	select {
	case s.hurry <- struct{}{}:
	default: // it hurries already
	}
}

// Reconnect ends the stream to a node; the next one begins at once, with the
// store's registration at that time.
func (p *Pool) Reconnect(node resource.NodeID) {
	p.mu.Lock()
	s := p.sessions[node]
	p.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reconnect()
}

// reconnect ends the stream, if there is one. s.mu is held.
func (s *session) reconnect() {
	if s.outbox != nil {
		s.outbox = nil
		s.giveUp()
	}
	s.wake()
}

// Send queues a command; false means that there is no stream to take it (after
// the next Connected event the caller repeats the commands that matter).
func (p *Pool) Send(node resource.NodeID, c grant.Command) bool {
	p.mu.Lock()
	s := p.sessions[node]
	absent := s == nil || s.gone
	p.mu.Unlock()
	if absent {
		return false
	}
	m := encode(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outbox == nil {
		return false
	}
	select {
	case s.outbox <- m:
		return true
	default:
		s.outbox = nil // too slow: a new stream begins with the agent's whole truth
		s.giveUp()
		return false
	}
}

// run connects again and again until ctx ends.
func (p *Pool) run(ctx context.Context, s *session) {
	wait := firstRetry
	warned := ""
	for ctx.Err() == nil {
		started := time.Now()
		err := p.connect(ctx, s)
		if ctx.Err() != nil {
			return
		}
		var broken *brokenError
		if errors.As(err, &broken) {
			if text := broken.Error(); text != warned { // once: it will be so until somebody mends it
				warned = text
				p.o.Logger.Warn("agent_session_refused", "node", s.node, "addr", s.addr, "error", text)
			}
		} else if time.Since(started) > lastRetry {
			wait = firstRetry
		}
		if !s.waitOut(ctx) {
			return
		}
		p.o.Logger.Debug("agent_session_ended", "node", s.node, "addr", s.addr, "error", err, "retry_in", wait)
		select {
		case <-ctx.Done():
		case <-s.hurry:
			wait = firstRetry
			continue
		case <-time.After(wait + rand.N(wait/4)):
		}
		if broken != nil {
			wait = min(2*wait, lastBroken)
		} else {
			wait = min(2*wait, lastRetry)
		}
	}
}

// waitOut waits until the penalty of a session is over; false if ctx ends before.
func (s *session) waitOut(ctx context.Context) bool {
	s.mu.Lock()
	penalty := s.penalty
	if !s.owed {
		s.mu.Unlock()
		return true
	}
	s.owed = false
	pardon := make(chan struct{})
	s.pardon = pardon
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return false
	case <-pardon:
	case <-time.After(penalty):
	}
	return true
}
