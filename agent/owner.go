package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/musterd/muster/agent/assignment"
	"github.com/musterd/muster/agent/follow"
	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/agent/journal"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

const (
	// inboxSize lets a leader's burst wait while a group is being journaled,
	// so that it becomes the next group.
	inboxSize = 1024
	// maxGroup bounds the commands of one group, and with it the time until
	// the first of them is answered.
	maxGroup = 256
	// retryAfter is the time between attempts at an overdue task.
	retryAfter = time.Second
	// compactAt is the journal's size, in bytes, from which it is rewritten
	// once it is also twice as large as its live records.
	compactAt = 4 << 20
)

// item is one thing for the owner to do. Exactly one of command, observe,
// room, arrived, resync, start, worked, refused, open, memory and query is set.
type item struct {
	command ledger.Command
	observe bool          // the sighting is another one
	room    bool          // whether assignment files have room is another question now
	arrived resource.TxID // launchers can read its files, for which held waits
	resync  bool
	start   *grant.Start
	worked  resource.TxID // the state of a process is another one
	refused *rpc.Reply
	open    *opening
	// memory says why the host is short of memory, "" where it is not.
	memory *string
	// query runs on the owner's goroutine once its group is in the journal, so
	// that its result may leave the host; it must be short.
	query func(*owner)

	out *rpc.Outbox // where answers go; nil sends none
	// done, where not nil, is called with the reply once it is on disk.
	done func(ledger.Reply)
}

// answer is a message that leaves once the group is in the journal.
type answer struct {
	out  *rpc.Outbox
	body rpc.Body
	hash uint64
	done func(ledger.Reply)
	// reply is for done.
	reply ledger.Reply
	held  bool // the reply says that its grant is HELD
}

// owner is the one goroutine (run) that owns the ledger and the journal. Memory runs ahead of the disk only within process: if the
// journal fails, nothing of the group is answered and the agent ends.
type owner struct {
	agent       *Agent
	log         *slog.Logger
	ledger      *ledger.Ledger
	journal     *journal.Journal
	assignments *assignment.Writer

	incarnation resource.Incarnation
	inbox       chan item
	ended       chan struct{} // closed when run returns

	// followers take each group, in this order.
	followers []follow.Follower

	// Of the group in progress.
	answers  []answer
	changes  []follow.Change
	buffer   []byte
	payloads [][]byte
	urgent   bool // holds a tombstone: fsync before answering
	held     bool // holds a HELD: fsync soon
	changed  bool // holds a change of ownership

	vacated  bool // a process may run on a free device
	cleared  bool // without orphans: those of before are free
	emptied  bool // without a device plugin: the devices of an earlier one are free
	orphaned bool // the orphans have changed, and the leader needs the new occupancy
	// deferred are grants that have to end and cannot yet, see endGrants.
	deferred map[resource.TxID]bool

	session    *rpc.Outbox            // the leader's, nil without one
	unresolved map[resource.TxID]bool // whose record is wanted
	full       string                 // why no promise can be kept, see checkRoom; "" while there is room
	memory     string                 // why the host is short of memory; "" while it is not
	syncing    chan struct{}          // capacity 1: a HELD waits for its fsync
	syncFailed chan error             // capacity 1: the syncer ends after one
	wakeAt     time.Time              // when timer fires, zero when it does not
	timer      *time.Timer
	keep       int64     // bytes that the last compaction left
	checked    time.Time // when the store was last registered with, or that was wished, see doubt
}

func newOwner(a *Agent, l *ledger.Ledger, files *handoff.Dir) *owner {
	o := &owner{
		agent: a, log: a.log, ledger: l, journal: a.journal,
		inbox: make(chan item, inboxSize), ended: make(chan struct{}),
		unresolved: map[resource.TxID]bool{}, deferred: map[resource.TxID]bool{}, vacated: true,
		syncing: make(chan struct{}, 1), syncFailed: make(chan error, 1),
	}
	// Neither item matters to an owner that has ended.
	o.assignments = assignment.New(a.config.Node, files, a.log, assignment.Listener{
		Arrived:  func(ctx context.Context, tx resource.TxID) { _ = o.send(ctx, item{arrived: tx}) },
		Troubled: func(ctx context.Context) { _ = o.send(ctx, item{room: true}) },
	})
	o.followers = []follow.Follower{o.assignments}
	if a.runner != nil {
		o.followers = append(o.followers, a.runner)
	}
	o.followers = append(o.followers, a.kubelet)
	o.setPool()
	o.followers = append(o.followers, a.deps.Followers...)
	return o
}

// start takes up the incarnation and makes it durable, before run. After a start of
// the machine no workload runs, and earlier files must not start any.
func (o *owner) start(i resource.Incarnation) error {
	if before := o.ledger.Incarnation().BootID; before != "" && before != i.BootID {
		o.assignments.Prune()
	}
	o.incarnation = i
	for _, g := range o.ledger.Snapshot().Grants {
		if g.State == grant.Stopping {
			o.deferred[g.Tx] = true // it was cut off between its stop and its end
		}
	}
	if c, still := o.agent.contact.state(); still == contactLost || c.stopped {
		o.agent.contact.stop()
		o.assignments.Close()
	}
	if err := o.process([]item{{command: ledger.Start{Incarnation: i}}}); err != nil {
		return err
	}
	if err := o.journal.Sync(); err != nil {
		return err
	}
	o.assignments.Start(o.group(nil))
	if o.agent.runner != nil {
		o.resumeStops()
	}
	return nil
}

// run decides until ctx ends (nil) or the journal fails (an error).
func (o *owner) run(ctx context.Context) error {
	defer close(o.ended)
	o.timer = time.NewTimer(0)
	defer o.timer.Stop()
	syncCtx, cancel := context.WithCancel(ctx)
	synced := make(chan struct{})
	go func() { defer close(synced); o.syncer(syncCtx) }()
	defer func() { cancel(); <-synced }()
	group := make([]item, 0, maxGroup)
	for {
		group = group[:0]
		select {
		case first := <-o.inbox:
			group = append(group, first)
		case <-o.timer.C:
			o.wakeAt = time.Time{}
			group = append(group, item{command: ledger.Tick{}})
		case err := <-o.syncFailed:
			return err
		case <-ctx.Done():
			return nil
		}
	drain:
		for len(group) < maxGroup {
			select {
			case next := <-o.inbox:
				group = append(group, next)
			default:
				break drain
			}
		}
		if err := o.process(group); err != nil {
			return err
		}
	}
}

// process decides a group, journals it as one write, publishes its changes to the
// followers, then lets the answers go.
func (o *owner) process(group []item) error {
	o.answers, o.changes, o.buffer, o.payloads = o.answers[:0], o.changes[:0], o.buffer[:0], o.payloads[:0]
	o.urgent, o.held, o.changed = false, false, false
	if err := o.checkRoom(group); err != nil {
		return err
	}
	for i := range group {
		o.handle(&group[i])
	}
	if err := o.record(); err != nil {
		return err
	}
	o.publish()
	for i := range o.answers {
		o.answers[i].send(o.assignments)
		o.answers[i] = answer{}
	}
	for i := range group {
		if group[i].query != nil {
			group[i].query(o)
		}
	}
	if o.changed {
		wake(o.agent.dirty)
	}
	o.rearm(group)
	return o.compact()
}

// send lets the answer go. A HELD waits until a launcher can start the workload: the
// answer that comes with the assignment files says the same.
func (a *answer) send(files *assignment.Writer) {
	if a.done != nil {
		a.done(a.reply)
	}
	if a.held && !files.Ready(a.reply.Tx) {
		return
	}
	if a.out != nil && a.body != nil {
		a.out.Put(rpc.Envelope{Body: a.body, LedgerHash: a.hash})
	}
}

func (o *owner) handle(it *item) {
	switch {
	case it.out != nil && it.out != o.session:
		// Of a session that has ended: its leader repeats in the next session
		// every command that matters, and this answer must not overtake the
		// welcome of that session.
	case it.refused != nil:
		r := *it.refused
		r.Incarnation, r.Registered = o.incarnation, o.ledger.Registration()
		o.answers = append(o.answers, answer{out: it.out, body: r, hash: o.hash()})
	case it.resync:
		o.answers = append(o.answers, answer{out: it.out, body: o.occupancy(), hash: o.hash()})
	case it.open != nil:
		o.admit(it.open)
	case it.start != nil:
		o.startWork(it.start)
	case it.worked != "":
		o.worked(it.worked)
	case it.arrived != "":
		if g, ok := o.ledger.Lookup(it.arrived); ok && g.State == grant.Held {
			o.tell(o.replyOn(g))
		}
	case it.observe:
		for _, ended := range o.endGrants(nil) {
			o.tell(rpc.Reply(ended))
		}
		o.vacated = true
		o.explain()
		o.tellOrphans()
	case it.memory != nil:
		o.setMemory(*it.memory)
	case it.command != nil:
		o.command(it)
	}
}

// command decides one command and queues its answer, and the answers of the
// commands that follow from it.
func (o *owner) command(it *item) {
	began := time.Now()
	registration, hash := o.ledger.Registration(), o.hash()
	reply := o.decide(it.command)
	o.agent.metrics.decided(it.command, reply, time.Since(began))
	out, body := it.out, rpc.Body(rpc.Reply(reply))
	switch c := it.command.(type) {
	case grant.Cordon, grant.Reconcile:
		body = o.health()
	case grant.KubeletPool:
		body = o.occupancy()
	case ledger.SetHealth:
		o.tell(o.health())
	case ledger.Resolved:
		delete(o.unresolved, c.Tx)
		if c.State == grant.RecordCommitted && reply.State == grant.Held {
			o.notice(follow.Confirmed{Tx: c.Tx})
		}
		out = o.listener() // the leader learns of it without having asked
		o.log.Info("record_resolved", "tx", string(c.Tx), "record", c.State.String(), "state", reply.State.String())
	case ledger.Registered:
		o.registered(c, registration != o.ledger.Registration() || hash != o.hash())
		o.resume(c)
	}
	held := reply.State == grant.Held && !reply.Refused() // HELD means that its launcher can start it
	if out == nil {
		body = nil
	}
	o.answers = append(o.answers, answer{out: out, body: body, hash: o.hash(), done: it.done, reply: reply, held: held})
	o.tellOrphans()
}

// decide decides and applies a command, and the stops that follow from it at
// once. The reply is the state after all of them.
func (o *owner) decide(c ledger.Command) ledger.Reply {
	reply, stopping := o.apply(c)
	for _, after := range o.endGrants(append(stopping, reply.Stop...)) {
		if after.Tx == reply.Tx {
			reply.State, reply.Members = after.State, after.Members
		} else {
			o.tell(rpc.Reply(after))
		}
	}
	o.explain()
	return reply
}

// apply decides one command, applies its events and keeps them for the
// journal. It returns the transactions that are now being stopped.
func (o *owner) apply(c ledger.Command) (reply ledger.Reply, stopping []resource.TxID) {
	_, registers := c.(ledger.Registered)
	again := registers && o.ledger.Registration() > 0
	reply, events := o.ledger.Decide(o.agent.deps.Now(), c)
	for _, e := range events {
		if err := o.ledger.Apply(e); err != nil {
			panic(fmt.Sprintf("agent: ledger refuses its own event %T of %T: %v", e, c, err))
		}
		o.changes = append(o.changes, follow.Change{Event: e})
		if tx, ok := o.note(e); ok {
			stopping = append(stopping, tx)
		}
	}
	if len(events) > 0 {
		from := len(o.buffer)
		o.buffer = ledger.AppendEvents(o.buffer, events)
		o.payloads = append(o.payloads, o.buffer[from:len(o.buffer):len(o.buffer)])
	}
	for _, alarm := range reply.Alarms {
		o.log.Error("protocol_alarm", "alarm", alarm)
		o.agent.metrics.alarms.Inc()
	}
	for _, tx := range reply.Resolve {
		// A second registration of one incarnation has lost nothing: promises
		// that are under way keep their time.
		if g, ok := o.ledger.Lookup(tx); again && ok && g.State == grant.Reserved {
			continue
		}
		o.resolve(tx)
	}
	for _, tx := range reply.Woken {
		if g, ok := o.ledger.Lookup(tx); ok {
			o.tell(o.replyOn(g))
		}
	}
	return reply, stopping
}

// replyOn is an answer on a grant that no command asks for at this moment.
func (o *owner) replyOn(g ledger.Grant) rpc.Reply {
	return rpc.Reply{Tx: g.Tx, State: g.State, Members: g.Members, Incarnation: o.incarnation, Registered: o.ledger.Registration()}
}

// note records the work that an event causes in the rest of the agent. It
// reports a transaction that is now Stopping.
func (o *owner) note(e ledger.Event) (tx resource.TxID, stopping bool) {
	o.changed = true
	switch e := e.(type) {
	case ledger.Enrolled:
		o.vacated = true
	case ledger.Granted:
		if e.Grant.Origin.Foreign() {
			o.urgent = o.urgent || e.Grant.Origin == ledger.OriginKubelet // the kubelet starts the container upon the answer
			return "", false
		}
		if e.Grant.State == grant.Held || e.Grant.State == grant.Evicting {
			o.held = true
		}
		return e.Grant.Tx, e.Grant.State == grant.Stopping
	case ledger.Committed:
		o.held = true
	case ledger.StopBegun:
		return e.Tx, true
	case ledger.Quarantined:
		clear(o.unresolved)
		o.urgent = true
	case ledger.Reconciled:
		o.urgent = true
		wake(o.agent.register)
	case ledger.Buried:
		o.urgent, o.vacated = true, true
	case ledger.Dropped:
		o.vacated = true
	case ledger.KubeletPoolSet:
		o.vacated = true
		o.urgent = true
		o.setPool()
		o.log.Info("kubelet_pool_set", "add", e.Add, "remove", e.Remove)
	}
	return "", false
}
