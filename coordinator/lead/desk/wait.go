package desk

import (
	"fmt"
	"slices"
)

// Wait runs ready now, and after each change of the subject, until ready reports true.
func (c *Call) Wait(s Subject, ready func() bool) {
	if !ready() {
		c.WaitForChange(s, ready)
	}
}

// WaitForChange is Wait from the next change on. A call waits for one subject at a time: the
// later wait counts.
func (c *Call) WaitForChange(s Subject, ready func() bool) {
	c.stopWaiting()
	c.subject, c.ready = s, ready
	c.desk.waiting[s] = append(c.desk.waiting[s], c)
}

func (c *Call) stopWaiting() {
	if c.ready == nil {
		return
	}
	waiting := c.desk.waiting
	left := slices.DeleteFunc(waiting[c.subject], func(other *Call) bool { return other == c })
	if waiting[c.subject] = left; len(left) == 0 {
		delete(waiting, c.subject)
	}
	c.subject, c.ready = "", nil
}

// Changed notes a change of a subject.
func (d *Desk) Changed(s Subject) {
	if len(d.waiting[s]) > 0 {
		d.changed = append(d.changed, s)
	}
}

// Recheck asks the calls again whose subjects have changed, with the changes that follow
// from their answers. The leader runs Recheck behind the rest of an input, so no call sees
// half of a change.
func (d *Desk) Recheck() {
	for i := 0; i < len(d.changed); i++ { // the answers may add changes
		s := d.changed[i]
		for _, c := range slices.Clone(d.waiting[s]) {
			if c.ready != nil && c.subject == s {
				c.recheck()
			}
		}
	}
	d.changed = d.changed[:0]
}

func (c *Call) recheck() {
	s, ready := c.subject, c.ready
	c.stopWaiting()
	defer c.Act()()
	if !ready() {
		c.WaitForChange(s, ready)
	}
}

// Check verifies the invariants between two inputs.
func (d *Desk) Check() error {
	waits := 0
	for t, c := range d.calls {
		if c.state == over || c.token != t {
			return fmt.Errorf("call %d is kept as %d, over %t", c.token, t, c.state == over)
		}
		if c.ready != nil {
			waits++
			if !slices.Contains(d.waiting[c.subject], c) {
				return fmt.Errorf("call %d waits for %s, which has no such call", t, c.subject)
			}
		}
	}
	for s, calls := range d.waiting {
		if waits -= len(calls); len(calls) == 0 {
			return fmt.Errorf("%s has an empty list of calls", s)
		}
	}
	if waits != 0 || len(d.changed) > 0 {
		return fmt.Errorf("%d calls wait for no subject, %d changes are not handled", waits, len(d.changed))
	}
	return nil
}
