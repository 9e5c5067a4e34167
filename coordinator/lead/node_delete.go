package lead

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/refusal"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// deleteAttempts bounds how often a deletion is judged anew because something
// about the node was written at the same time.
const deleteAttempts = 8

// deleteNode reads what the store has of a node, judges that, and deletes it.
func (l *Leader) deleteNode(r DeleteNode, attempts int, answer func(*api.Status)) {
	id := r.Node
	l.post.ReadNode(id, func(keys post.NodeKeys) {
		if keys.Err != nil {
			answer(api.Errorf(503, "node %s: the store did not answer (%v); ask again", id, keys.Err))
			return
		}
		l.deleteRead(r, keys.Kvs, keys.Certified, attempts, answer)
	})
}

func (l *Leader) deleteRead(r DeleteNode, kvs []record.KV, certified record.KV, attempts int, answer func(*api.Status)) {
	id := r.Node
	n := l.nodes[id]
	found, err := nodeKeysOf(kvs)
	switch {
	case err != nil:
		answer(api.Errorf(500, "node %s: %v", id, err))
		return
	case n == nil || len(kvs) == 0:
		answer(api.Errorf(404, "node %s not found", id))
		return
	}
	object := &api.Node{Metadata: api.ObjectMeta{Name: string(id), UID: shown.NodeUID(id), ResourceVersion: strconv.FormatInt(int64(newestOf(kvs)), 10)}}
	status := requireNode(r.Require, object, found.spec.ModRev, newestOf(kvs))
	if status == nil {
		status = l.refuseDeletion(n, found)
	}
	if status != nil {
		answer(status)
		return
	}
	key := record.NodeIdentityKey(id)
	// Every commit and every registration compares with the identity, or with
	// its absence: none that was judged before lands after this.
	d := post.Decision{Compares: []record.Compare{
		record.ModRevIs(key, found.identity.ModRev), record.ModRevIs(record.NodeSpecKey(id), found.spec.ModRev), record.Absent(record.NodeLeaseKey(id)),
	}}
	written := []string{record.NodeObservedKey(id), record.NodeLostKey(id)} // perhaps since kvs were read
	for _, kv := range kvs {
		if !slices.Contains(written, kv.Key) {
			d.Ops = append(d.Ops, record.Delete(kv.Key))
		}
	}
	for _, key := range written {
		d.Ops = append(d.Ops, record.Delete(key))
	}
	if err := endCertificate(&d, certified, l.post.Now()); err != nil {
		answer(api.Errorf(500, "node %s: %v", id, err))
		return
	}
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		switch {
		case o == txn.Landed:
			l.deleted(n, rev)
			answer(nil)
		case attempts > 1 && err == nil:
			l.deleteNode(r, attempts-1, answer)
		default:
			answer(refusal.Overtaken("node "+string(id), "deletion", deleteAttempts, err, ": its agent is alive"))
		}
	}
	l.post.Settle(d, key, post.Removed)
}

// requireNode refuses a deletion of a node without the required values. Of its versions
// each counts from its specification's to the newest that clients are shown.
func requireNode(p api.Preconditions, n *api.Node, spec, newest resource.Revision) *api.Status {
	if status := (api.Preconditions{UID: p.UID}).Check("node "+n.Metadata.Name, n.Metadata); status != nil {
		return status
	}
	if shown, err := strconv.ParseInt(n.Metadata.ResourceVersion, 10, 64); err == nil {
		newest = max(newest, resource.Revision(shown))
	}
	if edit.AtVersion("node", n.Metadata.Name, p.ResourceVersion, spec, newest) == nil {
		return nil
	}
	return api.Preconditions{ResourceVersion: p.ResourceVersion}.Check("node "+n.Metadata.Name, n.Metadata)
}

// newestOf is the newest revision of keys.
func newestOf(kvs []record.KV) (newest resource.Revision) {
	for _, kv := range kvs {
		newest = max(newest, kv.ModRev)
	}
	return newest
}

// endCertificate adds that a node's certificate counts no more: a host that was
// deleted has to enroll again. The record stays until the certificate expires, so
// that a restored backup does not bring it back (coordinator/enroll). kv is zero
// without TLS.
func endCertificate(d *post.Decision, kv record.KV, now time.Time) error {
	if kv.ModRev == 0 {
		return nil
	}
	r, err := record.Decode[record.Enrolled](kv.Key, kv.Value)
	if err != nil || r.Ended != "" {
		return err
	}
	r.Keys, r.Token, r.Ended, r.Generation = nil, "", now.UTC().Format(time.RFC3339), max(r.Generation+1, now.UnixMilli())
	d.Also([]record.Compare{record.ModRevIs(kv.Key, kv.ModRev)}, record.Put(kv.Key, record.MustEncode(r)))
	return nil
}

// nodeKeys are a node's keys, as far as a deletion looks into them.
type nodeKeys struct {
	identity, spec, lease record.KV // the zero value where there is none
	who                   record.NodeIdentity
	pointers              int // to records that have not ended
}

func nodeKeysOf(kvs []record.KV) (k nodeKeys, err error) {
	for _, kv := range kvs {
		key, err := record.ParseNodeKey(kv.Key)
		if err != nil {
			return k, err
		}
		switch key.Part {
		case record.NodeIdentityPart:
			k.identity = kv
			if k.who, err = record.Decode[record.NodeIdentity](kv.Key, kv.Value); err != nil {
				return k, err
			}
		case record.NodeSpecPart:
			k.spec = kv
		case record.NodeLeasePart:
			k.lease = kv
		case record.NodeTxPart:
			k.pointers++
		case record.NodeStatusPart, record.NodeObservedPart, record.NodeLostPart:
		}
	}
	return k, nil
}

// refuseDeletion says why a node must stay, and what to do about it.
func (l *Leader) refuseDeletion(n *node, found nodeKeys) *api.Status {
	id := n.view.ID
	lost := fmt.Sprintf("or, if its machine is off for good, say so with `muster fence %s --confirm-dead`, which ends what has members there", id)
	live := l.attemptsOn(id)
	switch {
	case found.lease.Key != "":
		return api.Errorf(409, "node %s is alive: a coordinator hears its agent, or did so less than 40 s ago. Drain it with `muster drain %s`, stop its agent for good, and ask again when its lease has expired", id, id).Because(api.FailedPrecondition)
	case n.connected:
		return api.Errorf(409, "node %s is alive: the leader is connected to its agent. Drain it with `muster drain %s`, stop its agent for good, and ask again", id, id).Because(api.FailedPrecondition)
	case l.reconciling: // of this node, or of one that shares units with it
		return api.Errorf(409, "node %s stays while a quarantine is being ended; ask again", id)
	case len(live) > 0:
		return api.Errorf(409, "node %s has members of %d units, %s among them. Start its agent and drain it with `muster drain %s`, %s", id, len(live), l.work.Attempts[live[0]].Unit.Path, id, lost).Because(api.FailedPrecondition)
	case found.pointers > 0:
		return api.Errorf(409, "node %s has members of %d transactions that have not ended; ask again", id, found.pointers)
	}
	if waits := l.retired.waitingFor(id); len(waits) > 0 && !found.who.ConfirmedDead {
		return api.Errorf(409, "node %s has not told yet that it is rid of %d transactions that have ended, %s among them. Start its agent, %s", id, len(waits), waits[0], lost).Because(api.FailedPrecondition)
	}
	return nil
}

// deleted forgets a node, unless it has registered since. Nobody waits any more
// for what it has to tell. That no stream is opened to it follows from the watch,
// which has what comes after in order.
func (l *Leader) deleted(n *node, rev resource.Revision) {
	id := n.view.ID
	l.post.Warn("node_deleted", "node", id, "revision", int64(rev))
	if n.specRev > rev || n.connected {
		return
	}
	for _, tx := range l.retired.waitingFor(id) {
		l.retired.report(tx, id, l.post.Now())
	}
	l.noteNewsOf(n)
	l.removeNode(id)
}
