package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/musterd/muster/agent/follow"
	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/grant"
)

// This file is the agent's half of the assume-dead policy (PROTOCOL.md section
// 5). The agent stops workloads as a crash of the OS does: the grants stay, so
// no device is given to others before the store has ended the grants, and only
// the assignment files are taken away from the launchers. The files are back
// once a registration has found the record COMMITTED.

// lookEvery is the time between two looks at the boot-time clock. Timers of the
// runtime stand still while the host sleeps.
const lookEvery = time.Second

// pruneSilent removes the assignment files that an earlier process should have
// removed, even if this process fails to start afterwards.
func (a *Agent) pruneSilent(dir string) error {
	if c, phase := a.contact.state(); phase != contactLost && !c.stopped {
		return nil
	}
	files, err := handoff.Open(dir, a.assignmentOptions())
	if err != nil {
		return err
	}
	return files.Prune(nil)
}

func (a *Agent) assignmentOptions() handoff.Options {
	return handoff.Options{FS: a.deps.AssignmentFS, Mode: a.config.AssignmentsMode}
}

// assumeDead follows the time since the last contact until ctx ends.
func (a *Agent) assumeDead(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	before := inContact
	for {
		before = a.look(before)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// look acts on the time since the last contact, and returns the phase of the
// contact.
func (a *Agent) look(before contactPhase) contactPhase {
	c, phase := a.contact.state()
	age := a.deps.Now().Sub(c.at)
	if phase > before {
		a.metrics.alarms.Inc()
		log := a.log.With("without_contact", age.Round(time.Second).String(), "assume_dead_after", c.after.String())
		switch phase {
		case contactLate:
			log.Warn("store_out_of_reach")
		case stopNoticed:
			a.stopWork(min(stopGrace, c.after/2))
			log.Error("workloads_stop_soon", "reason", "no coordinator that has the store is in reach", "grace", min(stopGrace, c.after/2).String())
		case contactLost:
			a.stopWork(0)
			log.Error("workloads_stopped", "reason", "no coordinator that has the store was in reach")
		}
	}
	files := a.owner.assignments
	switch closed, withheld := files.ClosedTo(); {
	case phase == contactLost && !closed:
		a.contact.stop()
		files.Close()
	case phase < stopNoticed && closed:
		wake(a.register) // only the grants that the registration lists go on
	case !closed && withheld == 0 && c.stopped:
		a.contact.resumed()
		a.log.Info("workloads_resumed")
	}
	return phase
}

// stopWork stops all processes that the agent has started.
func (a *Agent) stopWork(grace time.Duration) {
	if a.runner != nil {
		a.runner.StopAll(a.deps.Now().Add(grace))
	}
}

// resume confirms the grants that the store lists as COMMITTED at a
// registration. Records of other grants are read one by one, see Resolved.
func (o *owner) resume(c ledger.Registered) {
	if _, phase := o.agent.contact.state(); phase >= stopNoticed || !o.ledger.Quarantine().IsZero() {
		return
	}
	for _, r := range c.Records {
		if r.State == grant.RecordCommitted {
			o.notice(follow.Confirmed{Tx: r.Tx})
		}
	}
	o.notice(follow.Resumed{})
}

// contactCondition returns the condition AssumeDead; false where the policy is
// off.
func (a *Agent) contactCondition() (rpc.Condition, bool) {
	c, phase := a.contact.state()
	condition := rpc.Condition{Type: "AssumeDead", Reason: "InContact"}
	age := a.deps.Now().Sub(c.at).Round(time.Second)
	switch {
	case c.stopped:
		condition.True, condition.Reason = true, "Stopped"
		condition.Message = fmt.Sprintf("without contact for %s: what ran here was stopped, and goes on once the node has registered and its record is read", c.after)
	case c.after == 0:
		return rpc.Condition{}, false
	case phase > inContact:
		condition.True, condition.Reason = true, "NoContact"
		condition.Message = fmt.Sprintf("no contact for %s; after %s what runs here is stopped", age, c.after)
	}
	return condition, true
}
