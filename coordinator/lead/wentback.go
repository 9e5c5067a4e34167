package lead

import "github.com/musterd/muster/coordinator/decisions"

// noteRestored puts into the account, once in a term, that somebody has noticed
// that the store was restored. As long as there are agents in quarantine, each
// term hears of it from them.
func (l *Leader) noteRestored(r decisions.Restored) {
	if l.restored {
		return
	}
	l.restored = true
	l.post.Warn("store_was_restored", "noticed_by", r.By, "revision_before", int64(r.Before), "revision_after", int64(r.After), "detail", r.Detail)
	l.account.Restored(r)
}

// noteQuarantine is noteRestored of an agent that has noticed it.
func (l *Leader) noteQuarantine(n *node) {
	if n.quarantine != "" {
		l.noteRestored(decisions.Restored{By: "node " + string(n.view.ID), Detail: n.quarantine})
	}
}
