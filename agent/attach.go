package agent

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/musterd/muster/agent/attach"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/agent/users"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// AttachConfig lets launchers outside of Muster attach their processes to grants.
type AttachConfig struct {
	// Socket is the path of the socket, at which every user of the host may connect.
	Socket string
	// Users has the user of each tenant who may attach; nil: root and the agent's own user
	// alone may.
	Users *users.Table
	// Hierarchy is the folder of the unified hierarchy of cgroups; "" has none.
	Hierarchy string
	// Signal is that of run.Config.
	Signal func(ctx context.Context, p shim.Process, s syscall.Signal) error
}

// attacher is the side of the agent that the socket asks.
type attacher struct{ agent *Agent }

// Tenant implements [attach.Owner].
func (t attacher) Tenant(ctx context.Context, tx resource.TxID, member int) (tenant resource.TenantID, ok bool, err error) {
	err = t.agent.owner.ask(ctx, func(o *owner) {
		if g, held := o.attachable(tx, member); held {
			tenant, ok = g.Tenant, true
		}
	})
	return tenant, ok, err
}

// Attach implements [attach.Owner].
func (t attacher) Attach(ctx context.Context, tx resource.TxID, member int, a run.Attachment) error {
	made, refused := (<-chan error)(nil), attach.ErrNoGrant
	// The owner looks at the grant and notes the work at once: no release comes between.
	err := t.agent.owner.ask(ctx, func(o *owner) {
		if _, held := o.attachable(tx, member); held {
			made, refused = t.agent.runner.AttachExternal(tx, member, a)
		}
	})
	if err := errors.Join(err, refused); err != nil {
		return err
	}
	select {
	case err := <-made:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attachable returns a grant that has a member here and whose resources may be in use.
func (o *owner) attachable(tx resource.TxID, member int) (ledger.Grant, bool) {
	g, _ := o.ledger.Lookup(tx)
	_, here := g.Member(member)
	return g, here && g.Origin == ledger.OriginTxn && (g.State == grant.Held || g.State == grant.Evicting || g.State == grant.Stopping)
}

// listenForLaunchers opens the socket of launchers, nil where there is none.
func (a *Agent) listenForLaunchers() (*net.UnixListener, error) {
	if a.config.Attach == nil {
		return nil, nil
	}
	return attach.Open(a.config.Attach.Socket)
}

// serveLaunchers answers at the socket until ctx ends.
func (a *Agent) serveLaunchers(ctx context.Context, l *net.UnixListener) error {
	c := a.config.Attach
	s := &attach.Server{Owner: attacher{a}, Users: c.Users, BootID: a.deps.Discovered.BootID, Hierarchy: c.Hierarchy, Log: a.log}
	return s.Serve(ctx, l)
}
