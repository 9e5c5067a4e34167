package lead

import (
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/refusal"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// fence is the mark of the store against a node's incarnation: no transaction
// may count on the incarnation, and where the node is dead, none of its
// workloads runs any more. A registration ends the fence.
type fence struct {
	revision resource.Revision // of the identity with the fence
	dead     bool
	at       string // RFC 3339
	reason   string
	// assume is the node's limit without contact, 0 where it has not opted in.
	assume time.Duration
}

func fenceOf(i record.NodeIdentity, rev resource.Revision) *fence {
	if !i.Fenced {
		return nil
	}
	return &fence{
		revision: rev, dead: i.ConfirmedDead, at: i.FencedAt, reason: i.FencedFor,
		assume: time.Duration(i.AssumeDeadMillis) * time.Millisecond,
	}
}

// loadFence sets the fence of a node from its identity in the store.
func (v *view) loadFence(id resource.NodeID, kv record.KV) error {
	identity, err := record.Decode[record.NodeIdentity](kv.Key, kv.Value)
	if err != nil {
		return err
	}
	v.node(id).setFence(fenceOf(identity, kv.ModRev))
	return nil
}

// fenceAttempts bounds how often a fence is tried anew because the node's agent
// registered, or its lease began, at the same time.
const fenceAttempts = 8

// fenceNode reads a node's registration and lease, then fences the incarnation.
// A death is confirmed of the incarnation of the first read, because a later
// incarnation is alive.
func (l *Leader) fenceNode(n *node, first *resource.Incarnation, o api.FenceOptions, attempts int, done func(*api.Status)) {
	l.readContact(n, done, func(identity, lease record.KV) {
		now, err := record.Decode[record.NodeIdentity](identity.Key, identity.Value)
		switch {
		case err != nil: // answered below
		case first.IsZero():
			*first = now.Incarnation
		case o.ConfirmDead && now.Incarnation != *first: // model: mutant END_BEFORE_FREED
			done(api.Errorf(409, "node %s has registered as %s while %s was to be confirmed dead: it is back, and nothing was ended", n.view.ID, now.Incarnation, *first))
			return
		}
		l.fenceIncarnation(n, identity, lease, o, attempts, done)
	})
}

// readContact reads a node's identity, which must be there, and its lease; a zero
// lease is none.
func (l *Leader) readContact(n *node, done func(*api.Status), then func(identity, lease record.KV)) {
	id := n.view.ID
	l.post.Read(record.NodeIdentityKey(id), func(identity record.KV, found bool, _ resource.Revision) {
		if !found {
			done(api.Errorf(409, "node %s has never registered: there is nothing to fence", id).Because(api.FailedPrecondition))
			return
		}
		l.post.Read(record.NodeLeaseKey(id), func(lease record.KV, heard bool, _ resource.Revision) {
			if !heard {
				lease = record.KV{}
			}
			then(identity, lease)
		})
	})
}

func (l *Leader) fenceIncarnation(n *node, kv, lease record.KV, o api.FenceOptions, attempts int, done func(*api.Status)) {
	id := n.view.ID
	identity, err := record.Decode[record.NodeIdentity](kv.Key, kv.Value)
	switch {
	case err != nil:
		done(api.Errorf(500, "node %s: %v", id, err))
		return
	case identity.Fenced && (identity.ConfirmedDead || !o.ConfirmDead):
		l.fenced(n, fenceOf(identity, kv.ModRev))
		done(nil)
		return
	case (lease.Key != "" || n.connected) && !o.Force: // its first heartbeat may not have come yet
		done(l.refuseFenceOfLive(id, lease, o))
		return
	}
	identity.Fenced, identity.ConfirmedDead, identity.FencedAt, identity.FencedFor = true, o.ConfirmDead, l.post.Stamp(), o.Reason
	d := post.Decision{
		Compares: []record.Compare{record.ModRevIs(kv.Key, kv.ModRev), record.ModRevIs(record.NodeLeaseKey(id), lease.ModRev)},
		Ops:      []record.Op{record.Put(kv.Key, record.MustEncode(identity))},
	}
	if lease.Key != "" {
		d.Ops = append(d.Ops, record.Delete(lease.Key))
	}
	d.Done = func(outcome txn.Outcome, rev resource.Revision, err error) {
		switch {
		case outcome == txn.Landed:
			l.fenced(n, fenceOf(identity, rev))
			l.endLease(lease)
			done(nil)
		case attempts > 1 && err == nil:
			first := identity.Incarnation
			l.fenceNode(n, &first, o, attempts-1, done)
		default:
			done(refusal.Overtaken("node "+string(id), "fence", fenceAttempts, err, ": its agent is alive"))
		}
	}
	l.post.Settle(d, kv.Key, post.Wrote(kv.Key, func(written record.NodeIdentity) bool { return written == identity }))
}

// refuseFenceOfLive refuses to fence a node with a live lease.
func (l *Leader) refuseFenceOfLive(id resource.NodeID, lease record.KV, o api.FenceOptions) *api.Status {
	by := "coordinator " + l.rules.Id
	if v, err := record.Decode[record.NodeLease](lease.Key, lease.Value); err == nil {
		by = "coordinator " + v.Coordinator
	}
	follows := "its agent would have to register again before anything new runs there"
	if o.ConfirmDead {
		follows = "all that runs there would count as ended, and its place be given to others, while it may still run"
	}
	return api.Errorf(409, "node %s is alive: %s hears its agent, or did so less than 40 s ago. Fenced now, %s. Wait until its lease has expired, or use force", id, by, follows).Because(api.FailedPrecondition)
}

// endLease ends the lease of a node that was fenced while its lease was alive,
// so that the node's next heartbeat meets the fence.
func (l *Leader) endLease(lease record.KV) {
	if lease.Lease == 0 {
		return
	}
	l.post.Add(post.Effect{Kind: post.RevokeLease, Lease: lease.Lease, Key: lease.Key})
}

// fenced follows a fence that is durable, unless the agent has registered since.
func (l *Leader) fenced(n *node, f *fence) {
	if n.fence != nil && n.fence.revision >= f.revision || n.revision > f.revision {
		return
	}
	n.setFence(f)
	l.retractAssumedFreed(n)
	l.setReady(n)
	l.post.Warn("node_fenced", "node", n.view.ID, "revision", int64(f.revision), "confirmed_dead", f.dead, "reason", f.reason)
	l.post.Add(post.Effect{Kind: post.OpenStream, Node: n.view.ID})
	for _, tx := range l.attemptsOn(n.view.ID) {
		if a := l.work.Attempts[tx]; a != nil {
			l.onNodeFenced(a)
		}
	}
	l.wakeAll()
}

// onAgentReturned ends the fence of a node whose agent has registered since.
// The agent itself frees the grants that it may still have.
func (l *Leader) onAgentReturned(n *node) {
	if n.fence == nil || n.revision <= n.fence.revision {
		return
	}
	l.unfence(n)
}

func (l *Leader) unfence(n *node) {
	n.setFence(nil)
	l.retractAssumedFreed(n)
}

// recheck reads whether the nodes that an attempt assumes dead are still dead,
// then continues the attempt. The leader may learn of a registration only
// later.
func (l *Leader) recheck(a *work.Attempt, then func()) {
	l.recheckNodes(slices.Sorted(maps.Keys(a.AssumedFreed)), then)
}

// recheckNodes reads the identity of every node: the write may have met the
// registration of any of them, and the first node may stay dead for good.
func (l *Leader) recheckNodes(ids []resource.NodeID, then func()) {
	if len(ids) == 0 {
		then()
		return
	}
	l.post.Read(record.NodeIdentityKey(ids[0]), func(kv record.KV, found bool, _ resource.Revision) {
		if n := l.nodes[ids[0]]; n != nil && found {
			l.learn(n, kv)
		}
		l.recheckNodes(ids[1:], then)
	})
}

// learn takes over an identity that was written after the fence that is known.
func (l *Leader) learn(n *node, kv record.KV) {
	if n.fence == nil || kv.ModRev <= n.fence.revision {
		return
	}
	if err := l.loadFence(n.view.ID, kv); err != nil {
		l.post.Error("node_unreadable", "key", kv.Key, "error", err)
	}
	if n.fence == nil {
		if n.revision < kv.ModRev { // its agent reports the registration on the next stream
			n.clearRegistration()
		}
		l.setReady(n)
	}
	l.retractAssumedFreed(n)
}
