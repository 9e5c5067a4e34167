package agent

import (
	"context"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// heartbeats reports usage, conditions and grants to a coordinator until ctx
// ends, and finds another one when the stream breaks.
func (a *Agent) heartbeats(ctx context.Context) {
	streams := 0 // that were answered
	for attempt := 0; ctx.Err() == nil; attempt++ {
		began := time.Now()
		answered := func(answer rpc.Answer) {
			a.link.attempted(nil)
			if answer.Kept {
				a.contact.kept(answer.Began)
			}
			if answer.First {
				if streams++; streams > 1 {
					wake(a.audit) // the store may have been restored in between, and no leader have come yet
				}
			}
			for _, d := range answer.Directives {
				a.obey(d)
			}
		}
		err := a.calls.Heartbeats(ctx, a.config.Node, a.config.Heartbeat, a.heartbeat, answered)
		if err == nil {
			return
		}
		a.link.attempted(err)
		if time.Since(began) > a.config.Heartbeat {
			attempt = 0 // it worked for a while
		}
		wait := backoff(attempt, 200*time.Millisecond, a.config.Heartbeat)
		a.doubtIdentity(err)
		a.log.Debug("heartbeats_interrupted", "retry_in", wait.String(), "error", err)
		if !pauseUntil(ctx, wait, a.found) {
			return
		}
	}
}

// heartbeat collects usage, conditions and grants. It fails if the owner does
// not answer: a heartbeat without conditions would withdraw the earlier ones.
func (a *Agent) heartbeat(ctx context.Context) (rpc.Heartbeat, error) {
	h := rpc.Heartbeat{Time: time.Now(), Began: a.deps.Now()}
	u, err := a.usage(ctx)
	if err != nil {
		a.log.Debug("usage_incomplete", "error", err)
	}
	h.Usage = u
	v, err := a.view(ctx, nil)
	if err != nil {
		return h, err
	}
	h.Conditions = a.conditions(v)
	h.Kubelet = a.kubeletReport(v, h.Time)
	h.Containers = a.containers(v, h.Kubelet)
	for _, part := range a.measured(v) {
		h.Devices = append(h.Devices, part.Use)
	}
	uses := memberUses{states: func(resource.TxID) []grant.WorkState { return nil }}
	if a.runner != nil {
		uses.states = a.runner.States
	}
	for _, g := range v.Grants {
		if phase := phaseOf(g.State); phase != "" && !g.Origin.Foreign() && (v.Registered > 0 || !v.Quarantine.IsZero()) {
			h.Grants = append(h.Grants, rpc.Phase{Tx: g.Tx, Phase: phase, Uses: uses.of(g.Tx)})
		}
	}
	return h, nil
}

// containers counts the members whose command runs, and the containers that hold devices
// of the kubelet's pool.
func (a *Agent) containers(v *ledger.View, kubelet *rpc.KubeletReport) int {
	n := kubelet.CountContainers()
	if a.runner == nil {
		return n
	}
	for _, g := range v.Grants {
		for _, s := range a.runner.States(g.Tx) {
			if s.Phase == grant.WorkRunning {
				n++
			}
		}
	}
	return n
}

// phaseOf is a grant's state in the API's words, "" where it has ended.
func phaseOf(s grant.State) string {
	switch s {
	case grant.Waiting, grant.Reserved:
		return "Pending"
	case grant.Held:
		return "Running"
	case grant.Evicting, grant.Stopping:
		return "Terminating"
	}
	return ""
}

func (a *Agent) obey(d rpc.Directive) {
	switch d.Type {
	case rpc.DirectiveRegister:
		a.log.Info("registration_asked", "message", d.Message)
		wake(a.register)
	case rpc.DirectiveRenew:
		a.renewTo(d.Message, false)
	case rpc.DirectiveRenewNow:
		a.renewTo(d.Message, true)
	default:
		a.log.Warn("directive_unknown", "type", d.Type, "message", d.Message)
	}
}
