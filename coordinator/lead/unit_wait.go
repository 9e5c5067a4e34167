package lead

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/lead/form"
	"github.com/musterd/muster/coordinator/life"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// This file changes what a unit asks for and is charged, and the evidence of why it
// waits.

// beginTry counts that the unit is tried.
func (u *unit) beginTry(now time.Time) {
	u.attempts++
	u.lastAttempt = now
}

// setEvidence notes why the unit waits.
func (u *unit) setEvidence(e *sched.Evidence) { u.evidence = e }

// setTold takes over why the unit waits as the store has it.
func (u *unit) setTold(t told) { u.told = t }

// setFate takes over whether the unit can ever run.
func (u *unit) setFate(f fate) { u.fate = f }

// beginTold notes that the reason is being written.
func (u *unit) beginTold() { u.told.writing = true }

// finishTold notes that the reason was written.
func (u *unit) finishTold() { u.told.writing = false }

// countRefusal counts an attempt that came to nothing.
func (u *unit) countRefusal() { u.refusals++ }

// avoidNode counts an attempt that failed on a node.
func (u *unit) avoidNode(id resource.NodeID) {
	if u.avoid == nil {
		u.avoid = map[resource.NodeID]int{}
	}
	u.avoid[id]++
}

// noteFailure notes how an attempt failed.
func (u *unit) noteFailure(f failure) { u.failed = f }

// setCounted notes the unit's part in the use of its namespace.
func (u *unit) setCounted(use count.Use) { u.counted = use }

// setRequest replaces the amounts that the limits are charged.
func (u *unit) setRequest(total resource.Vector) { u.Charge.Request = total }

// setCharges replaces what the unit is charged.
func (u *unit) setCharges(charges []record.Charge) { u.charges = charges }

// setBound notes the generation of bindings that the charges are of, 0 for those
// of a record.
func (u *unit) setBound(generation uint64) { u.bound = generation }

// setEnrolled notes that the trees know the unit.
func (u *unit) setEnrolled() { u.enrolled = true }

// clearCharges notes that the trees have forgotten the unit.
func (u *unit) clearCharges() { u.enrolled, u.charges, u.bound = false, nil, 0 }

// setGroup sets the group of the unit, nil for none.
func (u *unit) setGroup(g *group) { u.group = g }

// setGangPlace sets the place of the unit's group in the order.
func (u *unit) setGangPlace(p *record.GangPlace) { u.record.Gang = p }

// setStartBy sets the instant by which the unit has to start, 0 for none.
func (u *unit) setStartBy(instant int64) { u.record.StartByMillis = instant }

// setForms gives a new unit the forms of its specification, and the first of them.
func (u *unit) setForms(spec api.AllocationSpec, job *api.Job, user string) (status *api.Status) {
	if len(spec.Alternatives) == 0 {
		u.Form, status = form.Of(u.record, spec, job, user, u.groups)
		return status
	}
	for _, one := range spec.Forms() {
		f, status := form.Of(u.record, one, job, user, u.groups)
		if status != nil {
			return status
		}
		u.forms = append(u.forms, f)
	}
	u.Form = u.forms[0]
	return nil
}

// useForm has the unit ask for one of its forms. The trees must not know the unit.
func (u *unit) useForm(number int) {
	u.number, u.Form, u.charges, u.bound = number, u.forms[number], nil, 0
}

// setHold sets why a waiting unit is not tried.
func (u *unit) setHold(h hold) {
	u.hold = h
	u.queueNews.note(u.path)
}

// boundRetry bounds the instant of the next try of a unit. The clock of the leader that
// has written the instant may have been ahead, and no wait is longer than its delay.
func (u *unit) boundRetry(now int64) {
	u.record.RetryMillis = min(u.record.RetryMillis, now+life.Delay(u.record.Retry).Milliseconds())
}
