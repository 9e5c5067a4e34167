package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent/rpc"
)

func TestAnAgentOutsideACluster(t *testing.T) {
	start := time.Unix(1000, 0)
	unknown := fmt.Errorf("register: %w", rpc.ErrNoCoordinator)
	refused := errors.New("register: coordinator 127.0.0.1:8471: connection refused")
	good := link{registered: true, answered: start}
	for name, c := range map[string]struct {
		link  link
		after time.Duration // since start
		want  string        // begins the text; "" for none
	}{
		"has just started":     {link{answered: start, alone: start}, 0, "not registered with a coordinator yet"},
		"knows no coordinator": {link{answered: start, failure: unknown}, time.Second, "no coordinator is known: coordinators is empty, and the serf ring has no coordinator. Set gossip.join to"},
		"is not let in":        {link{answered: start, failure: refused}, time.Second, "not registered with a coordinator: register: coordinator 127.0.0.1:8471: connection refused"},
		"has registered, and its leader is on its way":       {link{registered: true, answered: start, alone: start}, leaderPatience, ""},
		"has registered, and no leader comes":                {link{registered: true, answered: start.Add(time.Minute), alone: start}, time.Minute, "no leader has been connected for 1m0s: coordinators must reach this agent at 127.0.0.1:8472"},
		"is led":                                             {good, 40 * time.Second, ""},
		"is led, and one heartbeat failed":                   {link{registered: true, answered: start, failure: refused}, 45 * time.Second, ""},
		"is led, and nobody has answered for a while":        {link{registered: true, answered: start, failure: refused}, 46 * time.Second, "no coordinator has answered for 46s: register: coordinator"},
		"is led, and heartbeats have neither end nor answer": {good, time.Hour, "no coordinator has answered for 1h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.link.problem(start.Add(c.after), 45*time.Second, "127.0.0.1:8472")
			if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestALinkRemembersTheLatest(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newLinkState(func() time.Time { return now })
	lost := errors.New("lost")
	for _, step := range []struct {
		do   func()
		want link
	}{
		{func() {}, link{answered: now, alone: now}},
		{func() { s.registers(lost) }, link{answered: now, alone: now, failure: lost}},
		{func() { now = now.Add(time.Second); s.registers(nil) }, link{registered: true, answered: now.Add(time.Second), alone: now}},
		{func() { s.led(true) }, link{registered: true, answered: now.Add(time.Second)}},
		{func() { now = now.Add(time.Second); s.attempted(lost) }, link{registered: true, answered: now.Add(time.Second), failure: lost}},
		{func() { s.attempted(nil); s.led(false) }, link{registered: true, answered: now.Add(2 * time.Second), alone: now.Add(2 * time.Second)}},
		{func() { now = now.Add(time.Second); s.led(false) }, link{registered: true, answered: now.Add(2 * time.Second), alone: now.Add(2 * time.Second)}},
	} {
		step.do()
		if got := s.state(); got != step.want {
			t.Errorf("%+v, want %+v", got, step.want)
		}
	}
}
