package lead

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/txn"
)

// Check verifies what holds of the leader's units between two inputs.
//
// Invariant: the queue has what waits and has no attempt, until its end is asked
// for; what reconciliation makes again it does not have. Each attempt is its
// unit's, and has not ended. The occupants are those that all attempts give, and the
// uses of namespaces and users are the sums over the units.
func (l *Leader) Check() error {
	var errs []error
	for _, u := range l.work.Units {
		errs = append(errs, u.Check())
		placeable := u.Waiting() && u.Attempt == nil
		in := l.room.Order().Position(u.Key) > 0
		if in && !placeable || !in && placeable && !u.Life.EndAsked() && u.Life.Writing() != work.WriteAdoption {
			errs = append(errs, fmt.Errorf("%s is %s: in the queue %t", u.Path, u.Life.Phase(), in))
		}
	}
	for tx, a := range l.work.Attempts {
		if a.Machine.ID() != tx || a.Unit.Attempt != a || a.Machine.State() >= txn.Released {
			errs = append(errs, fmt.Errorf("attempt %s of %s is %s, and not the unit's or ended", tx, a.Unit.Path, a.Machine.State()))
		}
	}
	errs = append(errs, l.post.Check(), l.desk.Check(), l.checkOccupants(), l.census.Check(l.work.Units), l.checkUsers())
	return errors.Join(errs...)
}

// checkUsers verifies the sums of each limit, and the sums of its users: they are the sums
// over the units that hold something. The limits agree with their charges. Each charge
// belongs to an attempt or to a unit that is being adopted, and to the user that created
// the unit. Each unit that holds its grant is charged. A charge is reserved until its attempt
// has started.
func (l *Leader) checkUsers() error {
	if err := cmp.Or(l.quotas.Limits().Check(), l.quotas.Reserved().Check()); err != nil {
		return err
	}
	charged := 0
	for _, tx := range slices.Sorted(maps.Keys(l.work.Attempts)) {
		a := l.work.Attempts[tx]
		c, found := l.quotas.Limits().Charged(tx)
		switch state := a.Machine.State(); {
		case found:
			charged++
		case state >= txn.Committed && state < txn.Released:
			return fmt.Errorf("attempt %s of %s is %s and charged to nobody", tx, a.Unit.Path, state)
		}
		if want := creatorOf(a.Unit); found && c.User != want {
			return fmt.Errorf("attempt %s of %s is charged to user %q, its unit is of %q", tx, a.Unit.Path, c.User, want)
		}
		if _, reserved := l.quotas.Reserved().Charged(tx); reserved != (found && a.Ready.AtMillis == 0) {
			return fmt.Errorf("attempt %s of %s is charged %t, ready since %d, and reserved %t", tx, a.Unit.Path, found, a.Ready.AtMillis, reserved)
		}
	}
	adopting := 0 // charged already, without an attempt
	for _, u := range l.work.Units {
		if u.Life.IsBeingAdopted() {
			adopting++
		}
	}
	if n := l.quotas.Limits().Len(); n < charged || n > charged+adopting {
		return fmt.Errorf("%d transactions are charged, of which %d have an attempt and %d units are being adopted", n, charged, adopting)
	}
	return nil
}

// creatorOf is the user that created a unit, "" where unknown.
func creatorOf(u *work.Unit) string {
	if u.Job != nil {
		return u.Job.Record.Made.User()
	}
	return u.Record.Made.User()
}
