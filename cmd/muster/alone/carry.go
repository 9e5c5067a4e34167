package alone

import (
	"fmt"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// This file is the leader's shell: it hands inputs in and carries effects out, one
// after the other.

// settle hands the leader the inputs and whatever follows from them, and a pass
// after each batch, until nothing follows any more.
func (c *Cluster) settle() {
	for again := true; again; again = len(c.inputs) > 0 || c.leader.Busy() {
		for i := 0; i < len(c.inputs); i++ {
			c.options.Around(c.inputs[i], func() { c.effects = c.leader.Apply(c.now, c.inputs[i], c.effects[:0]) })
			c.carryOut(c.effects)
		}
		clear(c.inputs)
		c.inputs = c.inputs[:0]
		c.options.Around(nil, func() { c.effects = c.leader.Pass(c.now, c.effects[:0]) })
		c.carryOut(c.effects)
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
		c.noteCommand(e.Command)
		if a := c.agents[e.Node]; a != nil {
			for _, said := range a.Obey(e.Command, c.now) {
				c.inputs = append(c.inputs, lead.AgentEvent{Event: said})
			}
		}
	case post.WriteKeys:
		c.inputs = append(c.inputs, c.write(e))
	case post.ReadKey:
		kv, found := c.store.byID[e.Key]
		c.inputs = append(c.inputs, lead.ReadAnswer{Token: e.Token, Kv: kv, Found: found, Revision: c.store.at})
	case post.WakeAt:
		c.wakeAt = e.At
	case post.AnswerClient:
		if e.Token == c.asked {
			answer := *e
			c.answer = &answer
		}
	case post.AskSettled:
		c.inputs = append(c.inputs, lead.SettleAnswer{Token: e.Token})
	case post.LogEvent:
		if e.Event.Severity == post.SeverityError {
			c.errors = append(c.errors, fmt.Sprint(e.Event.Name, " ", e.Event.Fields))
		}
	case post.TrustNode, post.MeasureValue, post.ReadFenceKeys, post.GrantLease, post.RevokeLease, post.CompactStore:
		// Of no interest here.
	default:
		panic(fmt.Sprintf("alone: effect %d of node %q: %v", e.Kind, e.Node, e.Err))
	}
}

// write writes as the leader asks, and returns the store's answer.
func (c *Cluster) write(e *post.Effect) lead.WriteAnswer {
	compares := e.Write.Compares
	if !e.Write.AnyEpoch {
		compares = append([]record.Compare{c.held()}, compares...)
	}
	if !c.store.commit(compares, e.Write.Ops) {
		return lead.WriteAnswer{Token: e.Token, Outcome: txn.Conflict}
	}
	c.noteDecisions(e.Write.Ops)
	return lead.WriteAnswer{Token: e.Token, Outcome: txn.Landed, Revision: c.store.at}
}

// noteCommand reports the first Commit of each transaction.
func (c *Cluster) noteCommand(command grant.Command) {
	switch command := command.(type) {
	case grant.Reserve:
		c.paths[command.Tx] = command.Name
	case grant.Abort:
		delete(c.paths, command.Tx)
	case grant.Commit:
		path, first := c.paths[command.Tx]
		delete(c.paths, command.Tx)
		if first && c.options.Begun != nil {
			c.options.Begun(path)
		}
	}
}
