package agent

import (
	"slices"

	"github.com/musterd/muster/agent/follow"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file defers the release of victims that have to end while a process runs
// on a device that their preemptor waits for. Such victims stay, without their
// assignment files, until the process has ended or no preemptor waits for them
// any more. The preemptor's patience, at the leader and here, bounds the wait.

// endGrants ends the grants that are due, and the deferred ones, except those of which
// something runs that the agent has started. endGrants returns the reply for each
// grant that is not deferred further.
func (o *owner) endGrants(due []resource.TxID) []ledger.Reply {
	for tx := range o.deferred {
		due = append(due, tx)
	}
	if len(due) == 0 || !o.mayEndGrants() {
		return nil
	}
	slices.Sort(due)
	var ended []ledger.Reply
	busy := o.agent.seen().observed().Busy
	for _, tx := range slices.Compact(due) {
		if o.runs(tx) { // the runner stops it by the deadline, and says when nothing is left
			o.deferred[tx] = true
			continue
		}
		reply, _ := o.apply(ledger.Stopped{Tx: tx, Busy: busy})
		if reply.State == grant.Evicting || reply.State == grant.Stopping {
			o.deferRelease(tx)
			continue
		}
		delete(o.deferred, tx)
		ended = append(ended, reply)
	}
	return ended
}

// mayEndGrants reports whether anything ends at present.
func (o *owner) mayEndGrants() bool { return follow.MayEndGrants(o.ledger) }

// deferRelease removes the files of a grant whose time is over: its launchers
// have to end its processes.
func (o *owner) deferRelease(tx resource.TxID) {
	o.notice(follow.Overdue{Tx: tx})
	if o.deferred[tx] {
		return
	}
	o.deferred[tx] = true
	o.hurry()
	for _, g := range o.ledger.Snapshot().Grants {
		if slices.Contains(g.Victims, tx) {
			o.log.Info("release_deferred",
				"tx", string(tx), "preemptor", string(g.Tx), "running", o.agent.runningOn(g))
		}
	}
}

// runningOn lists the devices of a grant that something was last seen to run on.
func (a *Agent) runningOn(g ledger.Grant) []string {
	var list []string
	seen := a.seen()
	add := func(uuid string) {
		if running := seen[uuid]; len(running) > 0 {
			list = append(list, uuid+":"+listed(running))
		}
	}
	for _, m := range g.Members {
		for _, gpu := range m.Assignment.GPUs {
			add(gpu.UUID)
		}
		for _, instance := range m.Assignment.MIG {
			add(instance.UUID)
		}
	}
	return list
}

// hurry asks for a new list of the processes.
func (o *owner) hurry() {
	if o.agent.deps.Hurry != nil {
		wake(o.agent.deps.Hurry)
	}
}
