package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/musterd/muster/agent/handoff"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/grant"
)

// This file is the agent's half of the assume-dead policy (PROTOCOL.md section
// 5). What it stops it stops as a crash of the OS does: the grants stay, so
// nothing here is given to others before the store has ended them, and only the
// assignments are taken away from their launchers. They are back once a
// registration has found the record COMMITTED.

// lookEvery is the time between two looks at the boot-time clock. Timers of the
// runtime stand still while the host sleeps.
const lookEvery = time.Second

// pruneSilent takes away what a process before should have, whatever keeps this
// one from starting.
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

// look does what the time since the last contact asks for, and returns how far
// that has come.
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
			log.Error("workloads_stop_soon", "reason", "no coordinator that has the store is in reach", "grace", min(stopGrace, c.after/2).String())
		case contactLost:
			log.Error("workloads_stopped", "reason", "no coordinator that has the store was in reach")
		}
	}
	files := a.owner.assignments
	switch closed, withheld := files.closedTo(); {
	case phase == contactLost && !closed:
		a.contact.stop()
		files.close()
	case phase < stopNoticed && closed:
		wake(a.register) // only what it lists goes on
	case !closed && withheld == 0 && c.stopped:
		a.contact.resumed()
		a.log.Info("workloads_resumed")
	}
	return phase
}

// resume gives back what the store still has, after a registration. What it does
// not list is read one by one, see Resolved.
func (o *owner) resume(c ledger.Registered) {
	if _, phase := o.agent.contact.state(); phase >= stopNoticed || !o.ledger.Quarantine().IsZero() {
		return
	}
	for _, r := range c.Records {
		if r.State == grant.RecordCommitted {
			o.assignments.confirm(r.Tx)
		}
	}
	o.assignments.reopen()
}

// contactCondition tells of the policy; false where it is off.
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
