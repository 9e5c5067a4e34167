package work

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/lead/form"
	"github.com/musterd/muster/coordinator/life"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file changes the requests and the charges of a unit, and the place of the unit among
// others.

// SetCounted notes the unit's part in the use of the namespace.
func (u *Unit) SetCounted(use count.Use) { u.counted = use }

// SetRequest replaces the amounts charged to the limits.
func (u *Unit) SetRequest(total resource.Vector) { u.Charge.Request = total }

// SetCharges replaces the charges of the unit.
func (u *Unit) SetCharges(charges []record.Charge) { u.Charges = charges }

// SetBound notes the generation of the bindings behind the charges, 0 for charges of a record.
func (u *Unit) SetBound(generation uint64) { u.Bound = generation }

// SetEnrolled notes the unit's enrolment in the trees.
func (u *Unit) SetEnrolled() { u.Enrolled = true }

// ClearCharges notes the unit's removal from the trees.
func (u *Unit) ClearCharges() { u.Enrolled, u.Charges, u.Bound = false, nil, 0 }

// setGroup sets the group of the unit, nil for none.
func (u *Unit) setGroup(g *Group) { u.Group = g }

// SetGangPlace sets the place of the unit's group in the order.
func (u *Unit) SetGangPlace(p *record.GangPlace) { u.Record.Gang = p }

// SetStartBy sets the instant by which the unit has to start, 0 for none.
func (u *Unit) SetStartBy(instant int64) { u.Record.StartByMillis = instant }

// setForms gives a new unit the forms of the specification, and the first of these forms.
func (u *Unit) setForms(spec api.AllocationSpec, job *api.Job, user string) (status *api.Status) {
	if len(spec.Alternatives) == 0 {
		u.Form, status = form.Of(u.Record, spec, job, user, u.Groups)
		return status
	}
	for _, one := range spec.Forms() {
		f, status := form.Of(u.Record, one, job, user, u.Groups)
		if status != nil {
			return status
		}
		u.Forms = append(u.Forms, f)
	}
	u.Form = u.Forms[0]
	return nil
}

// UseForm has the unit ask for the form of a number. The trees must not know the unit.
func (u *Unit) UseForm(number int) {
	u.Number, u.Form, u.Charges, u.Bound = number, u.Forms[number], nil, 0
}

// SetHold sets why a waiting unit is not tried.
func (u *Unit) SetHold(h Hold) {
	u.Hold = h
	u.QueueNews.Note(u.Path)
}

// BoundRetry bounds the instant of the next try of a unit. The clock of the writing leader may
// have been ahead, and no wait is longer than the delay of the retry.
func (u *Unit) BoundRetry(now int64) {
	u.Record.RetryMillis = min(u.Record.RetryMillis, now+life.Delay(u.Record.Retry).Milliseconds())
}
