package lead

import (
	"fmt"
	"time"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/lead/form"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
)

// This file ends units that run on a node with a taint of the effect NoExecute, which
// they do not tolerate, or no longer. The instant of the taint is in the node's
// specification and the start in the unit's record, so every leader finds the same end.

// evictUntolerating gives notice to the units of a node that do not tolerate a taint of
// it. It runs every second and decides by the present state alone, as
// evictHoldersOfLost.
func (l *Leader) evictUntolerating(n *node) {
	for _, t := range n.spec.Taints {
		if constraint.Effect(t.Effect) != constraint.NoExecute {
			continue
		}
		for _, tx := range l.attemptsOn(n.view.ID) {
			u := l.work.Attempts[tx].Unit
			if !u.Evictable() || u.Attempt.Machine.ID() != tx {
				continue
			}
			if why, ends := l.endsByTaint(u, t); ends {
				l.evict(u, txn.EvictAsked{GraceSeconds: DefaultGrace, Reason: taintReason(n, t) + why})
			}
		}
	}
}

// taintReason begins the reason of an eviction for a taint, and of no other eviction.
func taintReason(n *node, t record.Taint) string {
	value := ""
	if t.Value != "" {
		value = "=" + t.Value
	}
	return fmt.Sprintf("NoExecute: the taint %s%s of node %s ", t.Key, value, n.view.ID)
}

// endsByTaint reports whether a running unit has to leave a node with a taint now, and
// why. Of several matching tolerations the shortest time counts, where one has a time.
func (l *Leader) endsByTaint(u *work.Unit, t record.Taint) (why string, ends bool) {
	tolerated, seconds := false, int64(-1)
	for _, o := range u.Tolerations() {
		if !form.Toleration(o).Covers(constraint.Taint{Key: t.Key, Value: t.Value, Effect: constraint.NoExecute}) {
			continue
		}
		tolerated = true
		if s := o.TolerationSeconds; s != nil && (seconds < 0 || *s < seconds) {
			seconds = *s
		}
	}
	switch {
	case !tolerated:
		return "is not tolerated", true
	case seconds < 0:
		return "", false
	}
	since := t.AddedMillis
	if started, err := time.Parse(time.RFC3339, u.Record.Started); err == nil {
		since = max(since, started.UnixMilli())
	}
	return fmt.Sprintf("was tolerated for %d s", seconds), l.post.Millis() >= since+1000*seconds+work.ClockError.Milliseconds()
}
