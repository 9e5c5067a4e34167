package quota

import (
	"slices"

	"github.com/musterd/muster/resource"
)

// LimitsSnapshot is the content of Limits at one moment. It is immutable: any
// goroutine may make forks of it, while the Limits go on.
type LimitsSnapshot struct{ l *Limits }

// Snapshot returns the content of the limits. It copies the limits and a list of
// what is charged.
func (l *Limits) Snapshot() *LimitsSnapshot { return &LimitsSnapshot{l.clone()} }

// Fork returns limits with the content of the snapshot, which their caller owns.
func (p *LimitsSnapshot) Fork() *Limits {
	l := p.l.clone()
	l.at = make(map[resource.TxID]int, len(l.live))
	for i, c := range l.live {
		l.at[c.tx] = i
	}
	return l
}

// clone copies everything but the index of charges, which a fork makes anew.
func (l *Limits) clone() *Limits {
	c := &Limits{limits: make(map[string][]*limit, len(l.limits)), live: slices.Clone(l.live)}
	for group, limits := range l.limits {
		for _, of := range limits {
			made := *of
			made.used, made.users = slices.Clone(of.used), of.users.clone()
			c.limits[group] = append(c.limits[group], &made)
		}
	}
	return c
}

// Charged returns what a transaction is charged, false where it is not.
func (l *Limits) Charged(tx resource.TxID) (Charge, bool) {
	if at, charged := l.at[tx]; charged {
		return l.live[at].Charge, true
	}
	return Charge{}, false
}

// Len counts the transactions that are charged.
func (l *Limits) Len() int { return len(l.at) }

// Limit returns a limit of a group, false where there is none of the name. Its
// vectors must not be changed.
func (l *Limits) Limit(group, name string) (Limit, bool) {
	if at, found := l.find(group, name); found {
		return l.limits[group][at].Limit, true
	}
	return Limit{}, false
}
