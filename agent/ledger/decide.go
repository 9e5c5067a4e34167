package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// decision is one Decide in the making.
type decision struct {
	l      *Ledger
	now    time.Time
	reply  Reply
	events []Event
	// ended are the grants that events of this decision end.
	ended []resource.TxID
	// yielding and adopted are a registration's, see join.
	yielding []yielding
	adopted  []*Record
	// state is the state of Tx once the events are applied, where they change
	// it.
	state   grant.State
	members []Holding
	changed bool
}

// Decide answers a command and returns the events that the answer rests on,
// which Apply takes in order. It changes nothing itself. now is a point on the
// owner's time line (see the package comment). The events' slice is valid
// until the next Decide.
func (l *Ledger) Decide(now time.Time, cmd Command) (Reply, []Event) {
	d := &l.decision // kept, so that it is not allocated
	*d = decision{l: l, now: now.Round(0), events: d.events[:0], ended: d.ended[:0], yielding: d.yielding[:0], adopted: d.adopted[:0]}
	d.reply.Incarnation, d.reply.Registered = l.incarnation, l.registered
	if l.quarantine.IsZero() {
		d.decide(cmd)
	} else {
		d.quarantined(cmd)
	}
	d.present()
	return d.reply, d.events
}

func (d *decision) decide(cmd Command) {
	switch c := cmd.(type) {
	case grant.Reserve:
		d.reserve(&c)
	case grant.Commit:
		d.commit(c)
	case grant.Abort:
		d.abort(c)
	case grant.Release:
		d.release(c)
	case grant.Evict:
		d.evict(c)
	case grant.Forget:
		d.forget(c)
	case Stopped:
		d.stopped(c)
	case Resolved:
		d.resolved(c)
	case Start:
		d.start(c)
	case Registered:
		d.register(c)
	case NewEpoch:
		d.raise(c.Epoch)
	case grant.Cordon:
		d.cordon(c)
	case grant.KubeletPool:
		d.setKubeletPool(c)
	case SetHealth:
		d.setHealth(c)
	case Observed:
		d.observe(c)
	case Pool:
		d.pool(c)
	case Lend:
		d.lend(c)
	case Return:
		d.giveBack(c)
	case Tick:
		d.tick()
	case grant.Reconcile:
		d.reconcile(c)
	default:
		panic(fmt.Sprintf("ledger: decide %T: no such command", cmd))
	}
}

func (d *decision) cordon(c grant.Cordon) {
	if c.Cordoned != d.l.cordoned {
		d.emit(CordonSet(c))
	}
}

// present completes the reply with the state of its transaction.
func (d *decision) present() {
	if d.reply.Tx == "" {
		return
	}
	if d.changed {
		d.reply.State, d.reply.Members = d.state, d.members
		return
	}
	if g := d.l.grants[d.reply.Tx]; g != nil {
		d.reply.State, d.reply.Members = g.State, g.Members
	}
}

func (d *decision) emit(e Event) { d.events = append(d.events, e) }

// become records the next state of the reply's transaction.
func (d *decision) become(s grant.State, members []Holding) {
	d.state, d.members, d.changed = s, members, true
}

func (d *decision) refuse(r resource.Reason) { d.reply.Reasons = append(d.reply.Reasons, r) }

func (d *decision) alarm(format string, args ...any) {
	d.reply.Alarms = append(d.reply.Alarms, fmt.Sprintf(format, args...))
}

// admit begins the answer to a leader's command: nothing before registration,
// nothing for an older epoch. A higher epoch is taken up.
func (d *decision) admit(tx resource.TxID, epoch resource.Epoch) (*entry, bool) {
	d.reply.Tx = tx
	if !d.enrolled() {
		return nil, false
	}
	if tx == "" {
		d.refuse(resource.Reason{Code: resource.ReasonInvalidRequest, Detail: "tx: empty"})
		return nil, false
	}
	if epoch < d.l.epoch { // model: mutant NO_EPOCH_AT_AGENT
		d.refuse(resource.Reason{
			Code: resource.ReasonStaleEpoch, Want: int64(d.l.epoch), Have: int64(epoch),
			Detail: fmt.Sprintf("the request is of epoch %d, epoch %d was seen here", epoch, d.l.epoch),
		})
		return nil, false
	}
	if _, orphan := OrphanUUID(tx); orphan {
		d.refuse(resource.Reason{Code: resource.ReasonInvalidRequest, Detail: "the device is an orphan: it is free once nothing runs on it"})
		return nil, false
	}
	if _, _, pooled := PooledUUID(tx); pooled {
		d.refuse(resource.Reason{Code: resource.ReasonInvalidRequest, Detail: "the device is in the kubelet's pool: it is free once the pool does not have it"})
		return nil, false
	}
	d.raise(epoch)
	return d.l.grants[tx], true
}

// enrolled refuses where this incarnation has not registered.
func (d *decision) enrolled() bool {
	if d.l.registered == 0 { // model: mutant PROMISE_BEFORE_REGISTERING
		d.refuse(resource.Reason{Code: resource.ReasonUnregistered, Detail: "the agent has not registered this incarnation yet"})
		return false
	}
	return true
}

// raise takes up an epoch; reservations of older ones are to be resolved.
func (d *decision) raise(epoch resource.Epoch) {
	if epoch <= d.l.epoch {
		return
	}
	d.emit(EpochRaised{epoch})
	if d.l.registered > 0 {
		d.resolve(d.l.sorted(func(g *entry) bool { return g.State == grant.Reserved && !g.WasWaiting && g.Epoch < epoch })...)
	}
}

func (d *decision) resolve(txs ...resource.TxID) {
	d.reply.Resolve = append(d.reply.Resolve, txs...)
}

// end emits the event that ends a grant's hold, and with its last victim gone
// the promotion of a Waiting one.
func (d *decision) end(g *entry, e Event) {
	d.emit(e)
	d.ended = append(d.ended, g.Tx)
	waiting := d.l.grants[g.claimed]
	if waiting == nil || slices.Contains(d.ended, waiting.Tx) {
		return
	}
	for _, v := range waiting.Victims {
		if !slices.Contains(d.ended, v) {
			return
		}
	}
	// In the same decision, though a later one would do: model: mutant PROMOTE_LATER
	d.emit(Promoted{waiting.Tx, d.now.Add(waiting.TTL)})
	d.reply.Woken = append(d.reply.Woken, waiting.Tx)
}

// bury makes the reply's transaction a tombstone; revision, here and below, is
// that of the record which ended it, 0 where none was read.
func (d *decision) bury(tx resource.TxID, g *entry, revision resource.Revision) {
	if g == nil {
		d.emit(Buried{tx, revision})
	} else {
		d.end(g, Buried{tx, revision})
	}
	d.become(grant.Tombstone, nil)
}

func (d *decision) drop(g *entry, revision resource.Revision) {
	d.end(g, Dropped{g.Tx, revision})
	d.become(grant.None, nil)
}

// notice begins an eviction, or extends its grace: it never shrinks, and the
// same notice twice extends nothing.
func (d *decision) notice(g *entry, by resource.TxID, grace time.Duration, revision resource.Revision) {
	since, grace := d.now, max(grace, 0)
	if g.State == grant.Evicting {
		if grace <= g.Grace {
			return
		}
		since, by = g.Since, cmp.Or(g.By, by)
	}
	d.emit(Noticed{Tx: g.Tx, By: by, Since: since, Deadline: since.Add(grace), Grace: grace, Revision: revision})
	d.become(grant.Evicting, g.Members)
}

func (d *decision) stop(g *entry, grace time.Duration, reason string, revision resource.Revision) {
	grace = max(grace, 0)
	d.emit(StopBegun{Tx: g.Tx, Since: d.now, Deadline: d.now.Add(grace), Grace: grace, Reason: reason, Revision: revision})
	d.become(grant.Stopping, g.Members)
}

// tick lists the due transactions. A due transaction is listed until it is
// dealt with.
func (d *decision) tick() {
	if d.l.registered > 0 { // to be fenced or learnt of, not freed. model: mutant TTL_FREES_WITHOUT_FENCE
		d.resolve(d.l.sorted(func(g *entry) bool {
			due := !d.now.Before(g.Deadline)
			return g.State == grant.Reserved && (due || !g.WasWaiting && g.Epoch < d.l.epoch) || g.State == grant.Waiting && due
		})...)
	}
	if d.l.registered == 0 {
		return // see stopped
	}
	d.reply.Stop = d.l.sorted(func(g *entry) bool {
		return (g.State == grant.Evicting || g.State == grant.Stopping) && !d.now.Before(g.Deadline)
	})
}
