package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file changes what a unit is charged, and the evidence of why it waits.

// beginTry counts that the unit is tried.
func (u *unit) beginTry(now time.Time) {
	u.attempts++
	u.lastAttempt, u.wide = now, ""
}

// setShort notes why quota holds the unit back, nil for no reason.
func (u *unit) setShort(s *shortage) { u.short = s }

// setWide notes why the place that the unit would have cannot be committed, ""
// for no reason.
func (u *unit) setWide(why string) { u.wide = why }

// setFailed notes the generation at which placing was tried in vain.
func (u *unit) setFailed(generation uint64) { u.failed = generation }

// setNoVictims sets the reason why the unit has no victims at a generation.
func (u *unit) setNoVictims(why string, generation uint64) {
	u.noVictimsReason, u.noVictimsAt = why, generation
}

// clearNoVictims notes that the unit has victims.
func (u *unit) clearNoVictims() { u.noVictimsReason = "" }

// countRefusal counts an attempt that came to nothing.
func (u *unit) countRefusal() { u.refusals++ }

// avoidNode counts an attempt that failed on a node.
func (u *unit) avoidNode(id resource.NodeID) {
	if u.avoid == nil {
		u.avoid = map[resource.NodeID]int{}
	}
	u.avoid[id]++
}

// setRequest replaces the amounts that the limits are charged.
func (u *unit) setRequest(total resource.Vector) { u.charge.Request = total }

// setCharges replaces what the unit is charged.
func (u *unit) setCharges(charges []record.Charge) { u.charges = charges }

// setBound notes the generation of bindings that the charges are of, 0 for those
// of a record.
func (u *unit) setBound(generation uint64) { u.bound = generation }

// setEnrolled notes that the trees know the unit.
func (u *unit) setEnrolled() { u.enrolled = true }

// clearCharges notes that the trees have forgotten the unit.
func (u *unit) clearCharges() { u.enrolled, u.charges, u.bound = false, nil, 0 }
