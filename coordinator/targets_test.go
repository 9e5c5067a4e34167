package coordinator

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
)

func TestTargets(t *testing.T) {
	at := func(addr string) record.NodeSpec { return record.NodeSpec{AgentAddr: addr} }
	severed := at("a:1")
	severed.Violation = &record.Violation{Reason: lead.ViolationPanic, Severed: true}
	lied := at("a:1")
	lied.Violation = &record.Violation{Reason: lead.ViolationVote}
	cases := map[string]struct {
		then func(*Coordinator) // after a registration at a:1, revision 5
		want string             // the address dialled, "" for none
	}{
		"a registered address":                {func(*Coordinator) {}, "a:1"},
		"another one, registered later":       {func(c *Coordinator) { c.registeredAt("n1", at("b:1"), 6) }, "b:1"},
		"another one, registered before":      {func(c *Coordinator) { c.registeredAt("n1", at("b:1"), 4) }, "a:1"},
		"one that may not be dialled":         {func(c *Coordinator) { c.registeredAt("n1", at("forbidden:1"), 6) }, ""},
		"gossip with another address":         {func(c *Coordinator) { c.AgentSeen("n1", "b:1") }, "a:1"},
		"a node that has lied is still heard": {func(c *Coordinator) { c.registeredAt("n1", lied, 6) }, "a:1"},
		"a node that is severed is not":       {func(c *Coordinator) { c.registeredAt("n1", severed, 6) }, ""},
		"until the store says no more":        {func(c *Coordinator) { c.registeredAt("n1", severed, 6); c.registeredAt("n1", at("a:1"), 7) }, "a:1"},
		"one that this process has severed":   {func(c *Coordinator) { c.targets["n1"] = target{addr: "a:1", revision: 5, fell: true} }, ""},
		"a registration does not let it back": {func(c *Coordinator) {
			c.targets["n1"] = target{addr: "a:1", revision: 5, fell: true}
			c.registeredAt("n1", at("a:1"), 6)
		}, ""},
		"an operator does":                    {func(c *Coordinator) { c.targets["n1"] = target{addr: "a:1", revision: 5, fell: true}; c.letBack("n1") }, "a:1"},
		"gossip about a node that is unknown": {func(c *Coordinator) { c.AgentSeen("ghost", "b:1") }, "a:1"},
		"a suspicion of a node that is unknown": {func(c *Coordinator) {
			for range mostSuspects + 10 {
				c.AgentSuspected("ghost", true)
			}
		}, "a:1"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := New(Config{ID: "c", Cluster: "c", Logger: slog.New(slog.DiscardHandler), CheckAgent: func(addr string) error {
				if addr == "forbidden:1" {
					return errors.New("forbidden")
				}
				return nil
			}}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			c.registeredAt("n1", at("a:1"), 5)
			test.then(c)
			got := ""
			if at := c.targets["n1"]; at.mayDial() {
				got = at.addr
			}
			if got != test.want {
				t.Errorf("dials %q, want %q", got, test.want)
			}
			if c.targets["ghost"].mayDial() {
				t.Error("a node that nobody registered is dialled")
			}
		})
	}
}
