package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/agents"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

const (
	// storeRestored is the reason of what ends in a reconciliation.
	storeRestored = "StoreRestored"
	// occupancyPatience bounds the wait for an agent's answer.
	occupancyPatience = 10 * time.Second
)

// reconciliation ends a node's quarantine. Its run is in a goroutine of its own
// and goes on when its client has left; cut off by the end of the term, it is
// asked for again: what is done already is found in the store.
type reconciliation struct {
	l       *leader
	id      resource.NodeID
	options api.ReconcileOptions
	grace   time.Duration

	why           string
	registrations map[resource.NodeID]registration
	grants        []*lost // of the node, by transaction
	ended         []resource.TxID
	back          []*attempt // records that name the node and are not held there
}

// lost is one grant of the node's agent beside what the store has of it.
type lost struct {
	agents.Grant
	record  store.TxState                    // "" is absent
	holders map[resource.NodeID]agents.Grant // every node that holds members, this one included
	// problem says why no record can be made of it, "" where one can.
	problem string
	// partial: it can never be whole again.
	partial bool
}

// ReconcileNode implements rest.Nodes.
func (c *Coordinator) ReconcileNode(ctx context.Context, name string, o api.ReconcileOptions) (*api.Reconciliation, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	r := &reconciliation{l: l, id: resource.NodeID(name), options: o, grace: defaultGrace * time.Second, registrations: map[resource.NodeID]registration{}}
	if o.GracePeriodSeconds != nil {
		r.grace = time.Duration(*o.GracePeriodSeconds) * time.Second
	}
	type answer struct {
		got *api.Reconciliation
		err error
	}
	answers := make(chan answer, 1) // run never waits for the client
	go func() {
		got, err := r.run(l.ctx)
		answers <- answer{got, err}
	}()
	select {
	case a := <-answers:
		if l.ctx.Err() != nil && a.err != nil {
			return nil, failure(errDeposed)
		}
		return a.got, failure(a.err)
	case <-ctx.Done():
		return nil, failure(ctx.Err())
	}
}

// run looks, and does what is asked, in the order of ADR 10.
func (r *reconciliation) run(ctx context.Context) (*api.Reconciliation, error) {
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	defer r.end()
	if err := r.look(ctx); err != nil {
		return nil, err
	}
	report := r.report()
	if r.options.Mode == "" {
		return report, nil
	}
	if err := r.mayBegin(); err != nil {
		return nil, err
	}
	if err := r.endWhatCameBack(ctx); err != nil { // model: mutant RETURNED_STAYS
		return nil, err
	}
	var adopted, released []resource.TxID
	for _, g := range r.grants {
		switch {
		case !g.held() || g.record.Charged():
		case r.options.Mode == api.ReconcileAdopt && g.adoptable():
			if err := r.await(ctx, func(done func(error)) { r.adopt(g, done) }); err != nil {
				return nil, err
			}
			adopted = append(adopted, g.Tx)
		default:
			if err := r.await(ctx, func(done func(error)) { r.disown(g, done) }); err != nil {
				return nil, err
			}
			released = append(released, g.Tx)
		}
	}
	return report, r.finish(ctx, adopted, released)
}

// begin takes the one place for a reconciliation, if the node is in quarantine.
func (r *reconciliation) begin(ctx context.Context) error {
	var status *api.Status
	err := r.l.do(ctx, func() {
		n := r.l.nodes[r.id]
		switch {
		case n == nil || n.specRev == 0 && n.quarantine == "":
			status = api.Errorf(404, "node %s not found", r.id)
		case !n.connected:
			status = api.Errorf(409, "node %s is not connected: what its agent holds is not known. Start the agent, or fence the node", r.id)
		case n.quarantine == "":
			status = api.Errorf(409, "node %s is not in quarantine: there is nothing to reconcile", r.id)
		case r.l.reconciling:
			status = api.Errorf(409, "another node is being reconciled; ask again")
		default:
			r.l.reconciling = true
			r.why = n.quarantine
		}
	})
	if err == nil && status != nil {
		return status
	}
	return err
}

func (r *reconciliation) end() { r.l.post(func() { r.l.reconciling = false }) }

// look reads who is registered, then has the agents tell what they hold, then
// reads what the store says of that. In this order: an agent that registers
// after the first step fails what is compared with it.
func (r *reconciliation) look(ctx context.Context) error {
	var ids []resource.NodeID
	if err := r.l.do(ctx, func() { ids = r.concerned() }); err != nil {
		return err
	}
	for _, id := range ids {
		var err error
		if r.registrations[id], err = r.l.readRegistration(ctx, id); err != nil {
			return err
		}
	}
	if err := r.resync(ctx, ids); err != nil {
		return err
	}
	if err := r.l.do(ctx, r.collect); err != nil {
		return err
	}
	for _, g := range r.grants {
		key := store.TxKey(g.Tx)
		kv, found, _, err := r.l.store.Get(ctx, key)
		if err != nil {
			return err
		}
		if found {
			record, err := store.Decode[store.TxRecord](key, kv.Value)
			if err != nil {
				return err
			}
			g.record = record.State
		}
	}
	return r.l.do(ctx, r.judge)
}

// concerned lists the node, first, and those that hold members of its units.
func (r *reconciliation) concerned() []resource.NodeID {
	ids := []resource.NodeID{r.id}
	for _, at := range r.l.order {
		n := r.l.nodes[at.ID]
		if at.ID == r.id || !n.connected {
			continue
		}
		for tx := range r.l.nodes[r.id].grants {
			if _, shared := n.grants[tx]; shared {
				ids = append(ids, at.ID)
				break
			}
		}
	}
	return ids
}

// resync has agents tell everything they hold.
func (r *reconciliation) resync(ctx context.Context, ids []resource.NodeID) error {
	ctx, cancel := context.WithTimeout(ctx, occupancyPatience)
	defer cancel()
	for _, id := range ids {
		var n *node
		var before uint64
		if err := r.l.do(ctx, func() {
			n = r.l.nodes[id]
			before = n.told
			r.l.pool.Send(id, agents.Resync())
		}); err != nil {
			return err
		}
		err := r.l.awaitNode(ctx, n, func() bool { return n.told > before })
		if errors.Is(err, context.DeadlineExceeded) {
			return api.Errorf(409, "the agent of node %s does not say what it holds: ask again when it is connected", id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// collect takes over what the agents have said.
func (r *reconciliation) collect() {
	n := r.l.nodes[r.id]
	r.why = cmp.Or(n.quarantine, r.why)
	for _, tx := range slices.Sorted(maps.Keys(n.grants)) {
		g := &lost{Grant: n.grants[tx], holders: map[resource.NodeID]agents.Grant{}}
		if g.State == agents.StateFreed {
			continue
		}
		for id := range r.registrations {
			other, found := r.l.nodes[id].grants[tx]
			if found && (other.State == agents.StateHeld || other.State == agents.StateEvicting) {
				g.holders[id] = other
			}
		}
		r.grants = append(r.grants, g)
	}
}

// judge finds what came back, and what of the grants can have a record.
func (r *reconciliation) judge() {
	n := r.l.nodes[r.id]
	for _, tx := range r.l.attemptsOn(r.id) {
		a, g := r.l.attempts[tx], n.grants[tx]
		if !a.machine.Undecided() && endsHere(g.State) {
			r.back = append(r.back, a)
		}
	}
	for _, g := range r.grants {
		if g.held() && g.record == "" {
			g.problem, g.partial = r.problem(g)
		}
	}
}

// endsHere reports whether an agent in this state holds nothing of a
// transaction, or has been told to stop it.
func endsHere(s agents.State) bool {
	return s != agents.StateHeld && s != agents.StateEvicting && s != agents.StateReserved
}

// held reports whether the agent keeps it until somebody decides.
func (g *lost) held() bool { return g.State == agents.StateHeld || g.State == agents.StateEvicting }

// adoptable reports whether a record is to be made again.
func (g *lost) adoptable() bool { return g.record == "" && g.problem == "" }

// mayBegin refuses to adopt while something could be adopted that is not known
// yet: nothing is changed then.
func (r *reconciliation) mayBegin() error {
	if r.options.Mode != api.ReconcileAdopt {
		return nil
	}
	for _, g := range r.grants {
		if g.held() && g.record == "" && g.problem != "" && !g.partial {
			return api.Errorf(409, "%s of node %s cannot be adopted now: %s. Nothing was changed; mend that and ask again, or release", g.Tx, r.id, g.problem)
		}
	}
	return nil
}

// await has something done in the loop and waits for its answer.
func (r *reconciliation) await(ctx context.Context, f func(done func(error))) error {
	answers := make(chan error, 1)
	if err := r.l.do(ctx, func() { f(func(err error) { answers <- err }) }); err != nil {
		return err
	}
	select {
	case err := <-answers:
		return err
	case <-r.l.ended:
		return errDeposed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endWhatCameBack releases the units that the agent does not hold: they had
// ended after the backup was made. It returns once that is durable, so that the
// agent's next registration finds it.
func (r *reconciliation) endWhatCameBack(ctx context.Context) error {
	asked := txn.ReleaseAsked{GraceSeconds: int64(r.grace / time.Second), Reason: storeRestored}
	for _, a := range r.back {
		u := a.unit
		err := r.await(ctx, func(done func(error)) {
			if u.job == nil {
				r.l.end(u, asked)
				done(nil)
				return
			}
			r.l.cancelJob(u.job, asked, false, func(status *api.Status) {
				if status != nil {
					done(status)
					return
				}
				done(nil)
			})
		})
		if err != nil {
			return err
		}
		if err := r.awaitReleasing(ctx, a); err != nil {
			return err
		}
		r.ended = append(r.ended, a.machine.ID())
	}
	return nil
}

func (r *reconciliation) awaitReleasing(ctx context.Context, a *attempt) error {
	for {
		var changed <-chan struct{}
		durable := false
		if err := r.l.do(ctx, func() { changed, durable = a.unit.changed, a.machine.State() >= txn.Releasing }); err != nil || durable {
			return err
		}
		select {
		case <-changed:
		case <-r.l.ended:
			return errDeposed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// disown decides that a grant without a record never gets one, on no node.
// Those that hold members beside this one find it when they are reconciled; what
// is not in quarantine is told at once.
func (r *reconciliation) disown(g *lost, done func(error)) {
	holders := slices.Sorted(maps.Keys(g.holders))
	tell := func() {
		for _, id := range holders {
			if id != r.id {
				r.l.send(id, agents.Release(g.Tx, r.l.epoch, r.grace, storeRestored))
			}
		}
		done(nil)
	}
	if g.record != "" {
		tell()
		return
	}
	// model: mutant DISOWN_WITHOUT_RECORD
	key := store.TxKey(g.Tx)
	_, epoch, _, _ := g.Tx.Attempt() // one that cannot be read is of no epoch
	record := store.TxRecord{State: store.TxAborted, Epoch: epoch, UnitUID: g.Unit, Reason: storeRestored, Unheard: holders, Ended: now()}
	r.l.settle(decision{
		compares: []store.Compare{store.Absent(key)}, ops: []store.Op{store.Put(key, store.MustEncode(record))},
		done: func(o txn.Outcome, _ resource.Revision, err error) {
			if o != txn.Landed {
				done(api.Errorf(409, "transaction %s was decided while node %s was reconciled (%v); ask again", g.Tx, r.id, err))
				return
			}
			r.l.bury(g.Tx, holders)
			r.l.log.Warn("grant_disowned", "node", r.id, "tx", g.Tx, "unit", g.Name)
			tell()
		},
	}, key, func(value []byte, found bool) bool {
		written, err := store.Decode[store.TxRecord](key, value)
		return found && err == nil && written.State == store.TxAborted && written.Reason == storeRestored
	})
}

// finish tells the agent, and waits until it has registered.
func (r *reconciliation) finish(ctx context.Context, adopted, released []resource.TxID) error {
	_, _, revision, err := r.l.store.Get(ctx, store.NodeIdentityKey(r.id))
	if err != nil {
		return err
	}
	var n *node
	sent := false
	if err := r.l.do(ctx, func() {
		n = r.l.nodes[r.id]
		sent = n.quarantine == "" || r.l.pool.Send(r.id, agents.Reconcile(r.l.epoch, revision, adopted, released, r.grace))
	}); err != nil {
		return err
	}
	if !sent {
		return api.Errorf(409, "the agent of node %s was disconnected before it was told; ask again: what was adopted is not adopted twice", r.id)
	}
	r.l.log.Warn("node_reconciled", "node", r.id, "mode", r.options.Mode, "adopted", adopted, "released", released, "ended", r.ended)
	ctx, cancel := context.WithTimeout(ctx, occupancyPatience)
	defer cancel()
	err = r.l.awaitNode(ctx, n, func() bool { return n.quarantine == "" && n.revision != 0 || !n.connected })
	if errors.Is(err, context.DeadlineExceeded) {
		return api.Errorf(409, "the agent of node %s was told and has not registered since; see muster get node %s", r.id, r.id)
	}
	return err
}

// problem says what keeps a grant from having a record again, and whether that
// is for good: a member that no agent holds is never back.
func (r *reconciliation) problem(g *lost) (text string, forGood bool) {
	if _, _, _, err := g.Tx.Attempt(); err != nil {
		return err.Error(), true
	}
	seen := map[int]bool{}
	most := -1
	for id, held := range g.holders {
		if n := r.l.nodes[id]; r.registrations[id].incarnation != n.incarnation {
			return fmt.Sprintf("the agent of node %s is not registered as what it is", id), false
		}
		for _, m := range held.Members {
			if seen[m.Index] {
				return fmt.Sprintf("member %d is held twice", m.Index), true
			}
			seen[m.Index] = true
			most = max(most, m.Index)
		}
	}
	size := most + 1
	if u := r.l.waitingUnit(g); u != nil {
		size = max(size, u.record.Members)
	}
	if len(seen) == size && g.alone() {
		return "", false
	}
	for _, at := range r.l.order { // any node may hold members of a gang
		n := r.l.nodes[at.ID]
		if away := !n.connected || n.quarantine == "" && n.revision == 0; away && (n.fence == nil || !n.fence.dead) {
			return fmt.Sprintf("node %s is not heard and may hold members of it: bring it back, or say that it is dead with muster fence --confirm-dead", at.ID), false
		}
	}
	for i := range size {
		if !seen[i] { // model: mutant ADOPT_PARTIAL
			return fmt.Sprintf("no agent holds its member %d", i), true
		}
	}
	return "", false
}

// alone reports whether a grant is of a unit that has one member by its kind.
func (g *lost) alone() bool {
	path, err := store.ParseUnitPath(g.Name)
	return err == nil && path.Kind == store.AllocUnit
}

// waitingUnit is the unit that the store has of a grant, if it waits for a
// place: it was submitted before the backup and committed after it.
func (l *leader) waitingUnit(g *lost) *unit {
	u := l.units[g.Name]
	if u == nil || u.record.UID != g.Unit || u.stored == 0 || !u.waiting() || u.attempt != nil || u.writing || u.adopting != nil || u.ending != nil {
		return nil
	}
	return u
}
