package lead

import (
	"strings"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file is about devices that are gone while a unit holds them. An agent
// reports such devices with its heartbeats, as the condition DeviceLost. The
// units keep their devices, unless deviceLost is evict: of their namespace, else of
// the configuration.

// deviceLostReason begins the reason of an eviction for a lost device, and of no
// other eviction.
const deviceLostReason = "DeviceLost: "

// evictHoldersOfLost evicts the units that hold a lost device of a node. It runs
// every second and decides by the present state alone: a new leader, a unit that
// commits late and a victim that its preemptor gave back are found by the next
// run. An eviction that has begun is not begun again, because its unit is no
// longer evictable.
func (l *Leader) evictHoldersOfLost(n *node) {
	if !n.connected || n.view.Host == nil || !shown.ReportsLost(n.said.Conditions) {
		return
	}
	for _, tx := range l.attemptsOn(n.view.ID) {
		u := l.work.Attempts[tx].Unit
		if !u.Evictable() || u.Attempt.Machine.ID() != tx || !l.evictsOnLoss(u.Record.Namespace) {
			continue
		}
		if lost := n.lostDevicesOf(u); len(lost) > 0 {
			l.evict(u, txn.EvictAsked{
				GraceSeconds: DefaultGrace,
				Reason:       deviceLostReason + strings.Join(lost, ", ") + " of node " + string(n.view.ID) + " is lost",
			})
		}
	}
}

// requeue takes back a unit that was evicted. A unit that was evicted for a lost
// device waits for the longest backoff first: a device that comes and goes does
// not evict it more often.
func (l *Leader) requeue(u *work.Unit, evicted txn.EvictAsked) {
	if strings.HasPrefix(evicted.Reason, deviceLostReason) {
		l.rest(u, lastBackoff)
		return
	}
	l.offer(u)
}

// logLost logs that a device was lost while a unit holds it, and that no unit
// holds a lost device any more. The field evicts is the configuration's rule; a
// namespace may have another.
func (l *Leader) logLost(id resource.NodeID, before, after []record.Condition) {
	switch was, is := shown.LostMessage(before), shown.LostMessage(after); {
	case is != "" && is != was:
		l.post.Warn("device_lost", "node", id, "message", is, "evicts", l.rules.EvictOnDeviceLost)
	case is == "" && was != "":
		l.post.Info("device_loss_over", "node", id, "message_before", was)
	}
}
