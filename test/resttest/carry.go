package resttest

import (
	"context"
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// This file is the leader's shell: it hands inputs in and carries effects out,
// one after the other.

// settle hands the leader what it has not taken yet, and what follows from that,
// until nothing follows any more. The leader collects some writes for a moment (ADR 46);
// a timer that is due so soon goes off at once, so that a reader sees what the request
// before has led to. c.mu is held.
func (c *Cluster) settle() {
	c.drain()
	for range mostSoon {
		if c.wakeAt.IsZero() || c.wakeAt.Sub(c.time()) > soon {
			break
		}
		if c.wakeAt.After(c.reached) {
			c.reached = c.wakeAt
		}
		c.drain()
	}
	c.arm()
}

const (
	// soon is the longest time for which the leader collects writes.
	soon = 20 * time.Millisecond
	// mostSoon bounds the timers that go off one after the other.
	mostSoon = 100
)

// drain is settle without the timers that are due soon.
func (c *Cluster) drain() {
	c.ring()
	for again := true; again; again = len(c.inputs) > 0 {
		for len(c.inputs) > 0 {
			in := c.inputs[0]
			c.inputs = c.inputs[1:]
			c.carryOut(c.leader.Apply(c.time(), in, nil))
		}
		if c.follow(); len(c.inputs) == 0 {
			c.carryOut(c.leader.Pass(c.time(), nil))
		}
	}
}

func (c *Cluster) carryOut(effects []post.Effect) {
	for i := range effects {
		c.carry(&effects[i])
	}
}

func (c *Cluster) carry(e *post.Effect) {
	switch e.Kind {
	case post.SendCommand:
		if a := c.agents[e.Node]; a != nil {
			c.hear(a.Obey(e.Command, c.time())...)
		}
	case post.OpenStream:
		if a := c.agents[e.Node]; a != nil {
			c.inputs = append(c.inputs, a.Hello())
		}
	case post.WriteKeys:
		c.inputs = append(c.inputs, c.wrote(e.Token, e.Write))
	case post.ReadKey:
		in := lead.ReadAnswer{Token: e.Token}
		in.Kv, in.Found, in.Revision = c.key(e.Key)
		c.inputs = append(c.inputs, in)
	case post.ReadNodeKeys:
		in := lead.NodeReadAnswer{Token: e.Token, Kvs: c.keys(record.NodeIn(e.Node))}
		in.Certified, _, _ = c.key(record.EnrolledKey(e.Node))
		c.inputs = append(c.inputs, in)
	case post.WakeAt:
		c.wakeAt = e.At
	case post.AnswerClient:
		if client := c.clients[e.Token]; client != nil {
			delete(c.clients, e.Token)
			client <- reply{e.Result, e.Status}
		}
	case post.AskSettled:
		c.inputs = append(c.inputs, lead.SettleAnswer{Token: e.Token})
	case post.TrustNode, post.LogEvent, post.MeasureValue, post.ReadFenceKeys, post.GrantLease, post.RevokeLease, post.CompactStore:
		// Nobody looks at it here, or a cluster does not live that long.
	case post.DistrustNode, post.AskToResign, post.EndTerm:
		panic(fmt.Sprintf("resttest: the leader gives up on its agents or its term: effect %d, node %q, %v", e.Kind, e.Node, e.Err))
	}
}

// hear queues what agents say.
func (c *Cluster) hear(events ...grant.Event) {
	for _, e := range events {
		c.inputs = append(c.inputs, lead.AgentEvent{Event: e})
	}
}

// wrote writes as the leader wants, and returns the store's answer.
func (c *Cluster) wrote(k post.Token, w post.Write) lead.WriteAnswer {
	compares := w.Compares
	if !w.AnyEpoch {
		compares = append([]record.Compare{c.held}, compares...)
	}
	result, err := c.store.Txn(context.Background(), record.Txn{If: compares, Then: w.Ops})
	if err != nil || !result.Succeeded {
		return lead.WriteAnswer{Token: k, Outcome: txn.Conflict, Err: err}
	}
	close(c.changed)
	c.changed = make(chan struct{})
	c.shows.take(w.Ops, result.Revision, c.time())
	return lead.WriteAnswer{Token: k, Outcome: txn.Landed, Revision: result.Revision}
}

// follow tells the leader what the store has of its nodes, as far as that has
// changed. The agent of a node that was fenced ends, as that of a lost host.
func (c *Cluster) follow() {
	for id := range c.leader.Specifications() {
		identity, found, _ := c.key(record.NodeIdentityKey(id))
		_, leased, _ := c.key(record.NodeLeaseKey(id))
		now := lead.NodeFacts{Node: id, Leased: leased, Identity: identity.ModRev}
		if before, known := c.told[id]; known && before.Same(now) {
			continue
		}
		c.told[id] = now
		c.inputs = append(c.inputs, now)
		if found && c.agents[id] != nil {
			who, err := record.Decode[record.NodeIdentity](identity.Key, identity.Value)
			must(err)
			if who.Fenced {
				delete(c.agents, id)
				c.hear(grant.Disconnected{Node: id, Err: context.Canceled})
			}
		}
	}
}

// ring has everybody do what is due.
func (c *Cluster) ring() {
	now := c.time()
	if !c.wakeAt.IsZero() && !c.wakeAt.After(now) {
		c.wakeAt = time.Time{}
		c.inputs = append(c.inputs, lead.AlarmDue{})
	}
	for _, a := range c.agents {
		c.hear(a.Tick(now)...)
	}
	c.inputs = append(c.inputs, lead.SecondPassed{})
}

// arm sets the timer to what is due next.
func (c *Cluster) arm() {
	next := c.wakeAt
	for _, a := range c.agents {
		if at, any := a.Due(); any && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if next.IsZero() || c.still {
		return
	}
	c.timer = time.AfterFunc(max(0, next.Sub(c.time())), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if next.After(c.reached) {
			c.reached = next
		}
		c.settle()
	})
}
