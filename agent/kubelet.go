package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/agent/deviceplugin"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/resource"
)

// openKubelet prepares the device plugin. It is on where the configuration has the key,
// or operators have added a device to the pool.
func (a *Agent) openKubelet() (err error) {
	c := a.deps.Kubelet
	if a.config.Kubelet != nil {
		c = *a.config.Kubelet
	}
	a.kubeletSince = kubeletSince{}
	if a.kubelet, err = deviceplugin.New(c, pluginHost{a}, a.log, a.deps.Now); err != nil {
		return fmt.Errorf("agent: kubelet: %w", err)
	}
	return nil
}

// pluginHost is the agent as the device plugin sees it.
type pluginHost struct{ *Agent }

// View implements deviceplugin.Host.
func (h pluginHost) View(ctx context.Context) (*ledger.View, error) { return h.view(ctx, nil) }

// Lend implements deviceplugin.Host.
func (h pluginHost) Lend(ctx context.Context, uuids []string) error {
	return refusal(h.owner.do(ctx, ledger.Lend{Devices: uuids}))
}

// Return implements deviceplugin.Host.
func (h pluginHost) Return(ctx context.Context, uuids []string) error {
	return refusal(h.owner.do(ctx, ledger.Return{Devices: uuids, Busy: h.seen().observed().Busy}))
}

// refusal is the error of a command: its own, or the reasons of the ledger.
func refusal(reply ledger.Reply, err error) error {
	errs := []error{err}
	for _, r := range reply.Reasons {
		errs = append(errs, errors.New(r.Detail))
	}
	return errors.Join(errs...)
}

// setPool gives the device plugin the pool of the configuration and of the operators,
// who win device by device. Where neither gives the kubelet a device, the plugin is off,
// unless containers may still have devices and a kubelet can be asked for them.
func (o *owner) setPool() {
	wish, configured, plugin := o.ledger.KubeletPool(), o.agent.config.Kubelet, o.agent.kubelet
	if configured == nil && len(wish.Add) == 0 {
		if _, on := plugin.Pool(); len(o.lent()) == 0 || !on && !plugin.HasKubelet() {
			plugin.SetPool(nil)
			return
		}
	}
	var pool []string
	if configured != nil {
		pool = configured.Pool
	}
	plugin.SetPool(append([]string{}, wish.Over(pool)...))
}

// fillPool gives the free devices of the kubelet's pool to the pool, and takes back
// the devices that are not in the pool any more. Without a device plugin nobody asks
// the kubelet: the devices that an earlier configuration lent are returned where no
// process runs on them.
func (o *owner) fillPool() {
	var wanted ledger.Pool
	pool, on := o.agent.kubelet.Pool()
	switch {
	case on:
		wanted.Devices = pool
	case o.emptied:
		return
	default:
		o.apply(ledger.Return{Devices: o.lent(), Busy: o.agent.seen().observed().Busy})
	}
	before := o.ledger.Hash()
	o.apply(wanted)
	if o.ledger.Hash() != before {
		o.orphaned = true
		o.log.Info("kubelet_pool_changed", "pool", wanted.Devices)
	}
	if on && len(pool) == 0 {
		o.setPool() // off, once no container has a device
	}
	o.emptied = !on && o.ledger.Registration() > 0 && len(o.lent()) == 0
}

// lent are the devices that the kubelet has handed out.
func (o *owner) lent() (list []string) {
	for _, g := range o.ledger.Snapshot().Grants {
		if uuid, lent, _ := ledger.PooledUUID(g.Tx); lent {
			list = append(list, uuid)
		}
	}
	return list
}

// allocatable is the part of the host that Muster hands out: not the devices that are in
// the kubelet's pool.
func allocatable(v *ledger.View) resource.Vector {
	amounts := v.Host.Allocatable()
	for _, g := range v.Grants {
		if g.Origin != ledger.OriginKubelet {
			continue
		}
		for _, m := range g.Members {
			for name, amount := range m.Assignment.Vector() {
				amounts[name] = max(0, amounts[name]-amount)
			}
		}
	}
	return amounts
}

// kubeletPool is the condition about the pool, ok where there is one.
func (a *Agent) kubeletPool() (c rpc.Condition, ok bool) {
	c = rpc.Condition{Type: "KubeletPool", True: true, Reason: "Announced"}
	if _, on := a.kubelet.Pool(); !on {
		return c, false
	}
	status := a.kubelet.Status()
	c.Message = status.String()
	if status.Kubelet != "" || status.PodResources != "" {
		c.True, c.Reason = false, "KubeletUnreachable"
	}
	return c, true
}

// collectKubelet shows the pool, where the agent has a device plugin.
func (g *gauges) collectKubelet(v *ledger.View, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	if _, on := g.agent.kubelet.Pool(); !on {
		return
	}
	states := map[bool]int{}
	for _, granted := range v.Grants {
		if _, lent, ok := ledger.PooledUUID(granted.Tx); ok {
			states[lent]++
		}
	}
	gauge(g.pool, float64(states[false]), "free")
	gauge(g.pool, float64(states[true]), "lent")
	status := g.agent.kubelet.Status()
	for resource, n := range status.Units {
		gauge(g.units, float64(n), resource)
	}
	reachable := 0.0
	if status.Kubelet == "" && status.PodResources == "" {
		reachable = 1
	}
	gauge(g.kubelet, reachable)
}
