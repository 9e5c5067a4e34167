package coordinator

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
type input interface{ input() }

type (
	// heard is a message of an agent, or of its stream.
	heard struct{ event grant.Event }
	// opened is the message that opens a stream, among those of heard. Fit is made of
	// Host.
	opened struct {
		grant.Hello
		Fit *fit.Host
	}
	// wrote answers writeKeys: at revision if it landed. err says more of
	// another outcome.
	wrote struct {
		token    token
		outcome  txn.Outcome
		revision resource.Revision
		err      error
	}
	// hasRead answers readKey. revision is the store's at the read.
	hasRead struct {
		token    token
		kv       record.KV
		found    bool
		revision resource.Revision
	}
	// hasReadNode answers readNodeKeys; certified is zero where the node has no
	// certificate.
	hasReadNode struct {
		token     token
		kvs       []record.KV
		certified record.KV
		err       error
	}
	// hasReadFences answers readFenceKeys.
	hasReadFences struct{ found []fenced }
	// granted answers grantLease.
	granted struct{ lease record.LeaseID }
	// storeIsAt answers compactStore with the store's revision.
	storeIsAt struct{ revision resource.Revision }
	// woken comes at or after the instant of a wakeAt.
	woken struct{}
	// ticked comes once a second.
	ticked struct{}
	// mayGo answers askToResign: the term is to end for the node's sake.
	mayGo struct {
		node     resource.NodeID
		epoch    resource.Epoch // that its agent has seen
		revision resource.Revision
	}
	// registered is a registration of a node, as the store has it.
	registered struct {
		node     resource.NodeID
		spec     record.NodeSpec
		revision resource.Revision
		// known: it counts only if the leader knows the node.
		known bool
	}
	// measured is what a node's agent measured on its host.
	measured struct {
		node  resource.NodeID
		usage resource.Vector
	}
	// suspected is what gossip believes of a node.
	suspected struct {
		node      resource.NodeID
		suspected bool
	}
	// followed is what the coordinator's cache of the store has of a node.
	followed struct {
		node     resource.NodeID
		leased   bool
		ban      *record.Ban
		identity resource.Revision // of the registration, 0 for none
		status   record.KV         // with the conditions that the agent tells; zero for none
	}
	// configWritten says that the next count of configOps are durable.
	configWritten struct {
		count    int
		revision resource.Revision
	}
	// begins has the leader keep its account from now on.
	begins struct{}
	// wasRestored says that the store was restored from a backup.
	wasRestored struct{ why decisions.Restored }
	// resumes has the leader go on with what earlier leaders began.
	resumes struct{}
	// flooded: the node goes on saying nothing new, and rests until then.
	flooded struct {
		node  resource.NodeID
		until time.Time
	}
)

// NodeID implements grant.Event.
func (e opened) NodeID() resource.NodeID { return e.Node }

func (heard) input()         {}
func (wrote) input()         {}
func (hasRead) input()       {}
func (hasReadNode) input()   {}
func (hasReadFences) input() {}
func (granted) input()       {}
func (storeIsAt) input()     {}
func (woken) input()         {}
func (ticked) input()        {}
func (mayGo) input()         {}
func (registered) input()    {}
func (measured) input()      {}
func (suspected) input()     {}
func (followed) input()      {}
func (configWritten) input() {}
func (begins) input()        {}
func (wasRestored) input()   {}
func (resumes) input()       {}
func (flooded) input()       {}

// apply takes one input at a time and appends its effects to out.
func (l *leader) apply(now time.Time, in input, out []effect) []effect {
	return l.handle(now, out, func() { l.react(in) })
}

// handle runs f as the handling of one input.
func (l *leader) handle(now time.Time, out []effect, f func()) []effect {
	l.now, l.out.effects = now, out
	f()
	l.goOnReconciling()
	l.lookAgain()
	out, l.out.effects = l.out.effects, nil
	return out
}

// pass tries what waits and appends the effects to out.
func (l *leader) pass(now time.Time, out []effect) []effect {
	return l.handle(now, out, l.schedule)
}

func (l *leader) react(in input) {
	switch in := in.(type) {
	case heard:
		l.agentEvent(in.event)
	case wrote:
		if done, waits := l.writes[in.token]; waits {
			delete(l.writes, in.token)
			done(in.outcome, in.revision, in.err)
		}
	case hasRead:
		if answer, waits := l.reads[in.token]; waits {
			delete(l.reads, in.token)
			answer(in.kv, in.found, in.revision)
		}
	case hasReadNode:
		if answer, waits := l.nodeReads[in.token]; waits {
			delete(l.nodeReads, in.token)
			answer(in)
		}
	case hasReadFences:
		l.buryFences(in.found)
	case granted:
		l.requestLease = in.lease
	case storeIsAt:
		l.compactRev = in.revision
	case woken:
		l.ring()
	case ticked:
		l.housekeep()
	case mayGo:
		l.resign(in)
	case registered:
		if in.known && l.nodes[in.node] == nil { // it was deleted since, or is not connected yet
			return
		}
		l.takeSpec(l.node(in.node), in.spec, in.revision)
	case measured:
		if n := l.nodes[in.node]; n != nil {
			n.setUsage(in.usage)
		}
	case suspected:
		if n := l.nodes[in.node]; n != nil {
			n.setSuspect(in.suspected)
		}
	case followed:
		l.follow(in)
	case configWritten:
		l.takeConfig(in)
	case begins:
		l.keepAccount()
	case wasRestored:
		l.noteRestored(in.why)
	case resumes:
		l.resume()
	case asked:
		l.serve(in)
	case gaveUp:
		if c := l.calls[in.token]; c != nil {
			l.leaveCall(c)
		}
	case hasSettled:
		if then := l.settling[in.token]; then != nil {
			delete(l.settling, in.token)
			then()
		}
	case flooded:
		if n := l.nodes[in.node]; n != nil {
			n.setLoud(in.until)
			n.setTripped(l.now)
		}
	}
}

// nextToken draws the token of a question.
func (l *leader) nextToken() token {
	l.lastToken++
	return l.lastToken
}

// submit asks for a write; done takes the outcome.
func (l *leader) submit(d decision) {
	t := l.nextToken()
	l.writes[t] = d.done
	l.out.add(effect{kind: writeKeys, token: t, write: write{d.compares, d.ops, d.anyEpoch}})
}

// read reads a key; answer takes what the store has. The revision is the store's
// at the read.
func (l *leader) read(key string, answer func(kv record.KV, found bool, revision resource.Revision)) {
	t := l.nextToken()
	l.reads[t] = answer
	l.out.add(effect{kind: readKey, token: t, key: key})
}

// same reports whether nothing has changed.
func (f followed) same(o followed) bool {
	return f.leased == o.leased && f.status.ModRev == o.status.ModRev && f.identity == o.identity && (f.ban == nil) == (o.ban == nil) && (f.ban == nil || *f.ban == *o.ban)
}
