package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file holds the inputs of the leader and passes each to the code for it.

// Input is one event for the leader.
type Input interface{ input() }

type (
	// AgentEvent is a message of an agent, or an event of the agent's stream.
	AgentEvent struct{ Event grant.Event }
	// StreamOpened is the event of an AgentEvent that opens a stream. The coordinator
	// makes Fit of Host.
	StreamOpened struct {
		grant.Hello
		Fit *fit.Host
	}
	// WriteAnswer answers WriteKeys. Revision is set where the write landed; Err
	// explains another outcome.
	WriteAnswer struct {
		Token    post.Token
		Outcome  txn.Outcome
		Revision resource.Revision
		Err      error
	}
	// ReadAnswer answers ReadKey. Revision is the store's at the read.
	ReadAnswer struct {
		Token    post.Token
		Kv       record.KV
		Found    bool
		Revision resource.Revision
	}
	// NodeReadAnswer answers ReadNodeKeys. Certified is zero where the node has no
	// certificate.
	NodeReadAnswer struct {
		Token     post.Token
		Kvs       []record.KV
		Certified record.KV
		Err       error
	}
	// FenceReadAnswer answers ReadFenceKeys.
	FenceReadAnswer struct{ Found []Fenced }
	// LeaseAnswer answers GrantLease.
	LeaseAnswer struct{ Lease record.LeaseID }
	// CompactAnswer answers CompactStore with the store's revision.
	CompactAnswer struct{ Revision resource.Revision }
	// AlarmDue comes at or after the instant of a WakeAt.
	AlarmDue struct{}
	// SecondPassed comes once a second.
	SecondPassed struct{}
	// ResignAllowed answers AskToResign: the term ends for the sake of the node.
	ResignAllowed struct {
		Node     resource.NodeID
		Epoch    resource.Epoch // the newest that the node's agent has seen
		Revision resource.Revision
	}
	// NodeRegistered is a registration of a node, as the store has it.
	NodeRegistered struct {
		Node     resource.NodeID
		Spec     record.NodeSpec
		Revision resource.Revision
		// Known restricts the input to a node that the leader has already.
		Known bool
	}
	// NodeSuspected is the opinion of gossip about a node.
	NodeSuspected struct {
		Node      resource.NodeID
		Suspected bool
	}
	// NodeFacts is the content of the coordinator's cache of the store for a node.
	NodeFacts struct {
		Node     resource.NodeID
		Leased   bool
		Lease    record.LeaseID // of the agent's heartbeats, 0 for none
		Ban      *record.Ban
		Identity resource.Revision // of the registration, 0 for none
		Outdated bool              // the registration is older than the store's last restoration
		Status   record.KV         // the agent's last report; zero for none
		Observed resource.Revision // of the leader's observation, 0 for none
		Lost     resource.Revision // of the key of lost devices, 0 for none
	}
	// ConfigWritten says that the next Count of the config's writes are durable.
	ConfigWritten struct {
		Count    int
		Revision resource.Revision
	}
	// BeginAccount starts the decision log of the term.
	BeginAccount struct{}
	// StoreRestored says that the store was restored from a backup.
	StoreRestored struct{ Why decisions.Restored }
	// ResumeWork makes the leader continue the transactions of earlier leaders.
	ResumeWork struct{}
	// NodeThrottled says that the node repeats itself and is not read before Until.
	NodeThrottled struct {
		Node  resource.NodeID
		Until time.Time
	}
)

// NodeID implements [grant.Event].
func (e StreamOpened) NodeID() resource.NodeID { return e.Node }

func (AgentEvent) input()      {}
func (WriteAnswer) input()     {}
func (ReadAnswer) input()      {}
func (NodeReadAnswer) input()  {}
func (FenceReadAnswer) input() {}
func (LeaseAnswer) input()     {}
func (CompactAnswer) input()   {}
func (AlarmDue) input()        {}
func (SecondPassed) input()    {}
func (ResignAllowed) input()   {}
func (NodeRegistered) input()  {}
func (NodeSuspected) input()   {}
func (NodeFacts) input()       {}
func (ConfigWritten) input()   {}
func (BeginAccount) input()    {}
func (StoreRestored) input()   {}
func (ResumeWork) input()      {}
func (NodeThrottled) input()   {}

// Apply takes one input at a time and appends its effects to out.
func (l *Leader) Apply(now time.Time, in Input, out []post.Effect) []post.Effect {
	return l.handle(now, out, func() { l.react(in); l.writeSeats() })
}

// handle runs f as the handling of one input.
func (l *Leader) handle(now time.Time, out []post.Effect, f func()) []post.Effect {
	l.post.Begin(now, out)
	f()
	l.followChanges()
	l.takeQueueNews()
	l.advanceReconciliation()
	l.desk.Recheck()
	return l.post.Take()
}

// Pass tries to place the waiting units and appends the effects to out.
func (l *Leader) Pass(now time.Time, out []post.Effect) []post.Effect {
	return l.handle(now, out, func() { l.schedule(); l.writeSeats() })
}

func (l *Leader) react(in Input) {
	switch in := in.(type) {
	case AgentEvent:
		l.agentEvent(in.Event)
	case WriteAnswer:
		l.reached = max(l.reached, in.Revision)
		l.post.Wrote(in.Token, in.Outcome, in.Revision, in.Err)
	case ReadAnswer:
		l.reached = max(l.reached, in.Revision)
		l.post.HasRead(in.Token, in.Kv, in.Found, in.Revision)
	case NodeReadAnswer:
		l.post.HasReadNode(in.Token, post.NodeKeys{Kvs: in.Kvs, Certified: in.Certified, Err: in.Err})
	case FenceReadAnswer:
		l.retireFences(in.Found)
	case LeaseAnswer:
		l.post.TakeLease(in.Lease)
	case CompactAnswer:
		l.compactRev = in.Revision
	case AlarmDue:
		l.post.Ring()
	case SecondPassed:
		l.housekeep()
	case ResignAllowed:
		l.resign(in)
	case NodeRegistered:
		if in.Known && l.nodes[in.Node] == nil { // it was deleted since, or is not connected yet
			return
		}
		l.takeSpec(l.node(in.Node), in.Spec, in.Revision)
	case NodeSuspected:
		if n := l.nodes[in.Node]; n != nil {
			n.setSuspect(in.Suspected)
		}
	case NodeFacts:
		l.follow(in)
	case ConfigWritten:
		l.takeConfig(in)
	case BeginAccount:
		l.keepAccount()
	case StoreRestored:
		l.noteRestored(in.Why)
	case ResumeWork:
		l.resume()
	case ClientRequest:
		l.serve(in)
	case ClientGone:
		l.desk.Gone(in.Token)
	case SettleAnswer:
		l.desk.Settled(in.Token)
	case NodeThrottled:
		if n := l.nodes[in.Node]; n != nil {
			n.setLoud(in.Until)
			n.setTripped(l.post.Now())
		}
	}
}

// Same reports whether f equals o.
func (f NodeFacts) Same(o NodeFacts) bool {
	return f.Leased == o.Leased && f.Lease == o.Lease && f.Status.ModRev == o.Status.ModRev && f.Identity == o.Identity && f.Outdated == o.Outdated && f.Observed == o.Observed && f.Lost == o.Lost && (f.Ban == nil) == (o.Ban == nil) && (f.Ban == nil || *f.Ban == *o.Ban)
}
