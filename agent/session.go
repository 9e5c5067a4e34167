package agent

import (
	"context"
	"fmt"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/devices"
)

// opening is a leader at the door.
type opening struct {
	hello rpc.Hello
	out   *rpc.Outbox
	done  chan welcome // capacity 1: the owner never waits
}

type welcome struct {
	rpc.Welcome
	err error
}

// Open implements rpc.Owner.
func (o *owner) Open(ctx context.Context, hello rpc.Hello, out *rpc.Outbox) (rpc.Welcome, error) {
	op := &opening{hello, out, make(chan welcome, 1)}
	if err := o.send(ctx, item{open: op}); err != nil {
		return rpc.Welcome{}, err
	}
	select {
	case w := <-op.done:
		return w.Welcome, w.err
	case <-ctx.Done():
		return rpc.Welcome{}, ctx.Err()
	case <-o.ended:
		return rpc.Welcome{}, rpc.ErrStopping
	}
}

// Submit implements rpc.Owner.
func (o *owner) Submit(ctx context.Context, order rpc.Order, out *rpc.Outbox) error {
	return o.send(ctx, item{command: order.Command, resync: order.Resync, start: order.Start, refused: order.Refused, out: out})
}

// Close implements rpc.Owner. Its wish is dropped where the owner has ended:
// then there is no session any more.
func (o *owner) Close(out *rpc.Outbox) {
	_ = o.send(context.Background(), item{query: func(o *owner) {
		if o.session == out {
			o.session = nil
			o.agent.link.led(false)
			o.log.Info("leader_session_ended", "reason", out.Reason())
		}
	}})
}

// endSession ends the leader's session once run has returned.
func (o *owner) endSession(reason error) {
	<-o.ended
	if o.session != nil {
		o.session.End(reason)
	}
}

// admit lets a leader in: its epoch is taken up, the session before it ends,
// and its welcome leaves once the epoch is in the journal. In quarantine any
// leader is let in, for it has to be one of a restored store that ends it; none
// is obeyed in anything else.
func (o *owner) admit(op *opening) {
	quarantine := o.ledger.Quarantine()
	highest := o.ledger.Epoch()
	if op.hello.Epoch < highest && quarantine.IsZero() {
		o.doubt(fmt.Sprintf("leader %s has epoch %d, epoch %d was seen here", op.hello.LeaderID, op.hello.Epoch, highest))
		op.done <- welcome{err: &rpc.StaleEpochError{Got: op.hello.Epoch, Highest: highest}}
		return
	}
	o.decide(ledger.NewEpoch{Epoch: op.hello.Epoch})
	if o.session != nil {
		o.session.End(rpc.ErrReplaced)
	}
	o.session = op.out
	o.agent.link.led(true)
	o.log.Info("leader_session_opened", "leader", op.hello.LeaderID, "epoch", int64(op.hello.Epoch))
	if op.hello.Epoch > highest && quarantine.IsZero() {
		wake(o.agent.audit) // an election may be the first sign of a store that was restored
	}
	registered := o.ledger.Registration()
	// If the leader knows a registration that this agent does not know, another
	// agent made it, or the answer to this agent was lost. An older
	// registration is one that the leader read before this agent registered.
	switch {
	case registered > 0 && op.hello.Revision > registered:
		wake(o.agent.register)
	case op.hello.Revision < registered:
		o.doubt(fmt.Sprintf("leader %s has seen its registration at revision %d, it was at %d", op.hello.LeaderID, op.hello.Revision, registered))
	}
	w := welcome{Welcome: rpc.Welcome{
		Node: o.agent.config.Node, Incarnation: o.incarnation, Revision: registered,
		Host: o.agent.hardware.Load().wire, Occupancy: o.occupancy(), LedgerHash: o.hash(),
		Quarantine: quarantine.String(),
	}}
	o.answers = append(o.answers, answer{done: func(ledger.Reply) { op.done <- w }})
}

// tell queues a message for the leader, if the session may get any yet.
func (o *owner) tell(body rpc.Body) {
	if o.session != nil && o.ledger.Known() {
		o.answers = append(o.answers, answer{out: o.session, body: body, hash: o.hash()})
	}
}

// hash is the ledger's, and that of an empty one before the registration, when
// messages carry no grants.
func (o *owner) hash() uint64 {
	if !o.ledger.Known() {
		return 0
	}
	return o.ledger.Hash()
}

// occupancy is everything the ledger holds. Before the registration it is
// empty, for no claim may leave then, not even that a device is free; in
// quarantine it is sent, for an operator has to see it.
func (o *owner) occupancy() rpc.Occupancy {
	v := o.ledger.Snapshot()
	occupancy := rpc.Occupancy{Cordoned: v.Cordoned, DiskFull: v.DiskFull, MemoryPressure: v.MemoryPressure, Health: unhealthy(v), KubeletPool: v.KubeletPool}
	if o.ledger.Known() {
		occupancy.Grants, occupancy.Work = v.Grants, o.work()
	}
	return occupancy
}

func (o *owner) health() rpc.HealthChange {
	v := o.ledger.Snapshot()
	return rpc.HealthChange{Health: unhealthy(v), Cordoned: v.Cordoned, DiskFull: v.DiskFull, MemoryPressure: v.MemoryPressure, Quarantine: v.Quarantine.String()}
}

func unhealthy(v *ledger.View) []rpc.DeviceHealth {
	var list []rpc.DeviceHealth
	for _, g := range v.GPUs {
		if g.Health != devices.OK {
			list = append(list, rpc.DeviceHealth{Index: g.Index, Health: g.Health, Reason: g.Reason})
		}
	}
	return list
}
