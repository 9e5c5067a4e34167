package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/musterd/muster/agent/journal"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/gossip"
)

// Run serves until ctx ends (nil) or the agent cannot go on (an error: its
// journal failed, or an address was lost). It gives everything back before it
// returns.
func (a *Agent) Run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() { cancel(); err = errors.Join(err, a.Close()) }()
	if err := a.joinRings(); err != nil {
		return err
	}
	launchers, err := a.listenForLaunchers()
	if err != nil {
		return err
	}
	failed := make(chan error, 5) // one per server and the owner, so that none blocks
	var tasks sync.WaitGroup
	tasks.Go(func() { failed <- a.owner.run(ctx) })
	tasks.Go(func() { a.owner.assignments.Run(ctx) })
	if a.runner != nil {
		tasks.Go(func() { a.runner.Run(ctx) })
	}
	if launchers != nil {
		tasks.Go(func() {
			if err := a.serveLaunchers(ctx, launchers); err != nil && ctx.Err() == nil {
				failed <- fmt.Errorf("agent: serve launchers: %w", err)
			}
		})
	}
	tasks.Go(func() { a.kubelet.Run(ctx) })
	tasks.Go(func() { a.registrar(ctx) })
	tasks.Go(func() { a.resolver.run(ctx) })
	tasks.Go(func() { a.heartbeats(ctx) })
	tasks.Go(func() { a.renewer(ctx) })
	tasks.Go(func() { a.publisher(ctx) })
	tasks.Go(func() { newHealthMonitor(a).run(ctx) })
	tasks.Go(func() { a.assumeDead(ctx) })
	tasks.Go(func() { a.watchMemory(ctx) })
	tasks.Go(func() {
		if err := a.server.Serve(a.listener); err != nil && ctx.Err() == nil {
			failed <- fmt.Errorf("agent: serve %s: %w", a.address, err)
		}
	})
	web := webServer(a.handler(), a.log)
	if a.http != nil {
		tasks.Go(func() {
			if err := web.Serve(a.webListener()); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("agent: serve metrics on %s: %w", a.http.Addr(), err)
			}
		})
	}
	a.log.Info("serving", "address", a.address, "metrics", a.MetricsAddress(), "incarnation", a.Incarnation().String())
	err = <-failed // the owner ends with ctx
	cancel()
	a.owner.endSession(lastWords(err))
	a.stopServer()
	if a.http != nil {
		err = errors.Join(err, web.Close())
	}
	tasks.Wait()
	if errors.Is(err, journal.ErrPoisoned) {
		a.condemn()
	}
	return err
}

// lastWords is the reason that the leader gets for the end of the session: the
// node shows it.
func lastWords(err error) error {
	if errors.Is(err, journal.ErrPoisoned) {
		return fmt.Errorf("%w: %w", rpc.ErrFailed, err)
	}
	return rpc.ErrStopping
}

// stopServer lets calls end for stopTimeout.
func (a *Agent) stopServer() {
	ended := make(chan struct{})
	go func() { a.server.GracefulStop(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(stopTimeout):
		a.server.Stop()
		<-ended
	}
}

// condemn marks a failed journal as doubtful, so that the next start takes a
// new incarnation. It tries for a while: a disk that cannot take even that
// cannot be opened by the next start either. It outlives the context that ends
// the agent: the mark is for the next start.
func (a *Agent) condemn() {
	for attempt := range 10 {
		err := a.journal.Condemn()
		if err == nil {
			return
		}
		a.log.Error("journal_not_marked_doubtful", "attempt", attempt+1, "error", err)
		time.Sleep(100 * time.Millisecond << min(attempt, 4))
	}
}

// leaveRings ends the agent's part in the rings.
func (a *Agent) leaveRings(r *gossip.Rings) error {
	if a.config.Gossip.EndsTogether {
		return r.Abandon()
	}
	return r.Close()
}

// Close releases the resources that New took. After Run it does nothing.
func (a *Agent) Close() error {
	var errs []error
	if a.server != nil {
		a.server.Stop()
	}
	for _, l := range []net.Listener{a.listener, a.http} {
		if l != nil {
			if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	if r := a.Rings(); r != nil {
		a.mu.Lock()
		a.rings = nil
		a.mu.Unlock()
		errs = append(errs, a.leaveRings(r))
	}
	if a.calls != nil {
		errs = append(errs, a.calls.Close())
	}
	if a.metrics != nil {
		a.metrics.unregister()
	}
	if a.journal != nil {
		if err := a.journal.Close(); err != nil && !errors.Is(err, journal.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if a.contact != nil {
		errs = append(errs, a.contact.close())
	}
	a.server, a.listener, a.calls, a.metrics = nil, nil, nil, nil
	return errors.Join(errs...)
}
