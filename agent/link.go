package agent

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/musterd/muster/agent/rpc"
)

// link is an agent's connection to its cluster, as the agent sees it. The zero
// value is that of an agent that has just started.
type link struct {
	registered bool // this process has registered once
	// answered is the time of the latest answer to a registration or a heartbeat,
	// or of the start.
	answered time.Time
	// failure is the error of the latest attempt, nil after an answer.
	failure error
	// alone is the time since which no leader has a session, zero while one has.
	alone time.Time
}

// leaderPatience is the time in which a leader comes: an election takes some
// seconds, and a leader tries an agent again after 3 s.
const leaderPatience = 30 * time.Second

// problem says in plain words why the agent is not part of a cluster at a time,
// "" where it is. silence is the time without an answer that is none yet, address
// is where leaders reach the agent.
func (l link) problem(now time.Time, silence time.Duration, address string) string {
	since := now.Sub(l.answered).Round(time.Second)
	switch {
	case !l.registered && errors.Is(l.failure, rpc.ErrNoCoordinator):
		return "no coordinator is known: coordinators is empty, and the serf ring has no coordinator. Set gossip.join to a coordinator's serf address (default port 7948), or coordinators to its gRPC address (8471)"
	case !l.registered && l.failure != nil:
		return fmt.Sprintf("not registered with a coordinator: %v", l.failure)
	case !l.registered:
		return "not registered with a coordinator yet"
	case l.failure != nil && since > silence:
		return fmt.Sprintf("no coordinator has answered for %s: %v", since, l.failure)
	case since > silence:
		return fmt.Sprintf("no coordinator has answered for %s", since)
	case !l.alone.IsZero() && now.Sub(l.alone) > leaderPatience:
		return fmt.Sprintf("no leader has been connected for %s: coordinators must reach this agent at %s", now.Sub(l.alone).Round(time.Second), address)
	}
	return ""
}

// linkState is the link of an agent. Its methods may be called by any goroutine
// and do not block.
type linkState struct {
	now func() time.Time

	mu    sync.Mutex
	known link
}

func newLinkState(now func() time.Time) *linkState {
	return &linkState{now: now, known: link{answered: now(), alone: now()}}
}

// registers takes the end of an attempt to register.
func (s *linkState) registers(err error) {
	s.attempted(err)
	if err == nil {
		s.mu.Lock()
		s.known.registered = true
		s.mu.Unlock()
	}
}

// attempted takes the end of an attempt to reach a coordinator, nil for an answer.
func (s *linkState) attempted(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.failure = err; err == nil {
		s.known.answered = s.now()
	}
}

// led takes the beginning or the end of a leader's session.
func (s *linkState) led(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case is:
		s.known.alone = time.Time{}
	case s.known.alone.IsZero():
		s.known.alone = s.now()
	}
}

func (s *linkState) state() link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// Problem says in plain words why this agent is not part of a cluster, "" where it
// is: no coordinator is known or answers, or no leader is connected.
func (a *Agent) Problem() string {
	text := a.link.state().problem(a.deps.Now(), 3*a.config.Heartbeat+leaderPatience/2, a.address)
	if rings := a.Rings(); text != "" && rings != nil {
		if err := rings.Serf.JoinError(); err != nil {
			text += "; the serf ring cannot be joined: " + err.Error()
		}
	}
	return text
}
