package lead

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/txn"
)

// This file verifies the charges of users.

// checkUsers verifies the sums of each limit, and the sums of its users: they are the sums
// over the units that hold something. The limits agree with their charges. Each charge
// belongs to an attempt or to a unit that is being adopted, and to the user that created
// the unit. Each unit that holds its grant is charged.
func (l *Leader) checkUsers() error {
	if err := l.quotas.Limits().Check(); err != nil {
		return err
	}
	charged := 0
	for _, tx := range slices.Sorted(maps.Keys(l.attempts)) {
		a := l.attempts[tx]
		c, found := l.quotas.Limits().Charged(tx)
		switch state := a.machine.State(); {
		case found:
			charged++
		case state >= txn.Committed && state < txn.Released:
			return fmt.Errorf("attempt %s of %s is %s and charged to nobody", tx, a.unit.path, state)
		}
		if want := creatorOf(a.unit); found && c.User != want {
			return fmt.Errorf("attempt %s of %s is charged to user %q, its unit is of %q", tx, a.unit.path, c.User, want)
		}
	}
	adopting := 0 // charged already, without an attempt
	for _, u := range l.units {
		if u.isBeingAdopted() {
			adopting++
		}
	}
	if n := l.quotas.Limits().Len(); n < charged || n > charged+adopting {
		return fmt.Errorf("%d transactions are charged, of which %d have an attempt and %d units are being adopted", n, charged, adopting)
	}
	return nil
}

// creatorOf is the user that created a unit, "" where unknown.
func creatorOf(u *unit) string {
	if u.job != nil {
		return u.job.record.Made.User()
	}
	return u.record.Made.User()
}
