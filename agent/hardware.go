package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
)

// hardware is a host's hardware at one time. It is immutable.
type hardware struct {
	host *fit.Host
	wire grant.Host // the same in the form for coordinators
}

func (a *Agent) hardwareOf(host *fit.Host) *hardware {
	return &hardware{host: host, wire: grant.Host{
		Hostname: a.deps.Discovered.Host.Hostname, Topology: host.Topology(), Inventory: host.Inventory(),
		ReservedCPUs: a.config.ReservedCPUs, ReservedMemory: a.config.ReservedMemory, Labels: a.config.Labels, Counts: a.config.Counts,
	}}
}

// hostOf is the host with another inventory.
func (a *Agent) hostOf(like *fit.Host, inventory *devices.Inventory) (*fit.Host, error) {
	host, err := fit.NewHostLike(like, like.Topology(), inventory, like.Reserved())
	if err != nil {
		return nil, err
	}
	return host.WithCounts(like.Counts())
}

// rehost takes over another inventory. Every grant stays; the leader's session
// ends, so that the next one begins with the new truth, and the node registers
// again under the same incarnation: promises made stay good.
func (a *Agent) rehost(ctx context.Context, inventory *devices.Inventory) error {
	now := a.Host()
	host, err := a.hostOf(now, inventory)
	if err != nil {
		return fmt.Errorf("devices changed: %w", err)
	}
	next := a.hardwareOf(host)
	var refused error
	asked := a.owner.ask(ctx, func(o *owner) {
		if refused = o.ledger.Rehost(host); refused != nil {
			return
		}
		a.hardware.Store(next)
		o.vacated = true // before the next leader is let in
		if o.session != nil {
			o.session.End(rpc.ErrHostChanged)
			o.session = nil
			o.agent.link.led(false)
		}
		wake(a.dirty)
	})
	if err := errors.Join(asked, refused); err != nil {
		return fmt.Errorf("devices changed: %w", err)
	}
	a.rememberInventory()
	wake(a.register)
	return nil
}
