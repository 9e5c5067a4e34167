package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file holds the inputs of the leader and hands each to the code for it.

// input is one thing that the leader is told.
type Input interface{ input() }

type (
	// heard is a message of an agent, or of its stream.
	Heard struct{ Event grant.Event }
	// opened is the message that opens a stream, among those of heard. Fit is made of
	// Host.
	Opened struct {
		grant.Hello
		Fit *fit.Host
	}
	// wrote answers writeKeys: at revision if it landed. err says more of
	// another outcome.
	Wrote struct {
		Token    Token
		Outcome  txn.Outcome
		Revision resource.Revision
		Err      error
	}
	// hasRead answers readKey. revision is the store's at the read.
	HasRead struct {
		Token    Token
		Kv       record.KV
		Found    bool
		Revision resource.Revision
	}
	// hasReadNode answers readNodeKeys; certified is zero where the node has no
	// certificate.
	HasReadNode struct {
		Token     Token
		Kvs       []record.KV
		Certified record.KV
		Err       error
	}
	// hasReadFences answers readFenceKeys.
	HasReadFences struct{ Found []Fenced }
	// granted answers grantLease.
	Granted struct{ Lease record.LeaseID }
	// storeIsAt answers compactStore with the store's revision.
	StoreIsAt struct{ Revision resource.Revision }
	// woken comes at or after the instant of a wakeAt.
	Woken struct{}
	// ticked comes once a second.
	Ticked struct{}
	// mayGo answers askToResign: the term is to end for the node's sake.
	MayGo struct {
		Node     resource.NodeID
		Epoch    resource.Epoch // that its agent has seen
		Revision resource.Revision
	}
	// registered is a registration of a node, as the store has it.
	Registered struct {
		Node     resource.NodeID
		Spec     record.NodeSpec
		Revision resource.Revision
		// known: it counts only if the leader knows the node.
		Known bool
	}
	// measured is what a node's agent measured on its host.
	Measured struct {
		Node  resource.NodeID
		Usage resource.Vector
	}
	// suspected is what gossip believes of a node.
	Suspected struct {
		Node      resource.NodeID
		Suspected bool
	}
	// followed is what the coordinator's cache of the store has of a node.
	Followed struct {
		Node     resource.NodeID
		Leased   bool
		Ban      *record.Ban
		Identity resource.Revision // of the registration, 0 for none
		Status   record.KV         // with the conditions that the agent tells; zero for none
	}
	// configWritten says that the next count of configOps are durable.
	ConfigWritten struct {
		Count    int
		Revision resource.Revision
	}
	// begins has the leader keep its account from now on.
	Begins struct{}
	// wasRestored says that the store was restored from a backup.
	WasRestored struct{ Why decisions.Restored }
	// resumes has the leader go on with what earlier leaders began.
	Resumes struct{}
	// flooded: the node goes on saying nothing new, and rests until then.
	Flooded struct {
		Node  resource.NodeID
		Until time.Time
	}
)

// NodeID implements grant.Event.
func (e Opened) NodeID() resource.NodeID { return e.Node }

func (Heard) input()         {}
func (Wrote) input()         {}
func (HasRead) input()       {}
func (HasReadNode) input()   {}
func (HasReadFences) input() {}
func (Granted) input()       {}
func (StoreIsAt) input()     {}
func (Woken) input()         {}
func (Ticked) input()        {}
func (MayGo) input()         {}
func (Registered) input()    {}
func (Measured) input()      {}
func (Suspected) input()     {}
func (Followed) input()      {}
func (ConfigWritten) input() {}
func (Begins) input()        {}
func (WasRestored) input()   {}
func (Resumes) input()       {}
func (Flooded) input()       {}

// apply takes one input at a time and appends its effects to out.
func (l *Leader) Apply(now time.Time, in Input, out []Effect) []Effect {
	return l.handle(now, out, func() { l.react(in) })
}

// handle runs f as the handling of one input.
func (l *Leader) handle(now time.Time, out []Effect, f func()) []Effect {
	l.setNow(now)
	l.out.effects = out
	f()
	l.goOnReconciling()
	l.lookAgain()
	out, l.out.effects = l.out.effects, nil
	return out
}

// pass tries what waits and appends the effects to out.
func (l *Leader) Pass(now time.Time, out []Effect) []Effect {
	return l.handle(now, out, l.schedule)
}

func (l *Leader) react(in Input) {
	switch in := in.(type) {
	case Heard:
		l.agentEvent(in.Event)
	case Wrote:
		if done, waits := l.writes[in.Token]; waits {
			delete(l.writes, in.Token)
			done(in.Outcome, in.Revision, in.Err)
		}
	case HasRead:
		if answer, waits := l.reads[in.Token]; waits {
			delete(l.reads, in.Token)
			answer(in.Kv, in.Found, in.Revision)
		}
	case HasReadNode:
		if answer, waits := l.nodeReads[in.Token]; waits {
			delete(l.nodeReads, in.Token)
			answer(in)
		}
	case HasReadFences:
		l.buryFences(in.Found)
	case Granted:
		l.requestLease = in.Lease
	case StoreIsAt:
		l.compactRev = in.Revision
	case Woken:
		l.ring()
	case Ticked:
		l.housekeep()
	case MayGo:
		l.resign(in)
	case Registered:
		if in.Known && l.nodes[in.Node] == nil { // it was deleted since, or is not connected yet
			return
		}
		l.takeSpec(l.node(in.Node), in.Spec, in.Revision)
	case Measured:
		if n := l.nodes[in.Node]; n != nil {
			n.setUsage(in.Usage)
		}
	case Suspected:
		if n := l.nodes[in.Node]; n != nil {
			n.setSuspect(in.Suspected)
		}
	case Followed:
		l.follow(in)
	case ConfigWritten:
		l.takeConfig(in)
	case Begins:
		l.keepAccount()
	case WasRestored:
		l.noteRestored(in.Why)
	case Resumes:
		l.resume()
	case Asked:
		l.serve(in)
	case GaveUp:
		if c := l.calls[in.Token]; c != nil {
			l.leaveCall(c)
		}
	case HasSettled:
		if then := l.settling[in.Token]; then != nil {
			delete(l.settling, in.Token)
			then()
		}
	case Flooded:
		if n := l.nodes[in.Node]; n != nil {
			n.setLoud(in.Until)
			n.setTripped(l.now)
		}
	}
}

// nextToken draws the token of a question.
func (l *Leader) nextToken() Token {
	l.lastToken++
	return l.lastToken
}

// submit asks for a write; done takes the outcome.
func (l *Leader) submit(d decision) {
	t := l.nextToken()
	l.writes[t] = d.done
	l.out.add(Effect{Kind: WriteKeys, Token: t, Write: Write{d.compares, d.ops, d.anyEpoch}})
}

// read reads a key; answer takes what the store has. The revision is the store's
// at the read.
func (l *Leader) read(key string, answer func(kv record.KV, found bool, revision resource.Revision)) {
	t := l.nextToken()
	l.reads[t] = answer
	l.out.add(Effect{Kind: ReadKey, Token: t, Key: key})
}

// same reports whether nothing has changed.
func (f Followed) Same(o Followed) bool {
	return f.Leased == o.Leased && f.Status.ModRev == o.Status.ModRev && f.Identity == o.Identity && (f.Ban == nil) == (o.Ban == nil) && (f.Ban == nil || *f.Ban == *o.Ban)
}
