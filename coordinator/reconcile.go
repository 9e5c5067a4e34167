package coordinator

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/grant"
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
	l       *term
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
	grant.Grant
	record  grant.RecordState
	holders map[resource.NodeID]grant.Grant // every node that holds members, this one included
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

// mayBegin refuses to adopt while something could be adopted that is not known
// yet: nothing is changed then.
func (r *reconciliation) mayBegin() error {
	if r.options.Mode != api.ReconcileAdopt {
		return nil
	}
	for _, g := range r.grants {
		if g.held() && g.record == grant.RecordAbsent && g.problem != "" && !g.partial {
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
