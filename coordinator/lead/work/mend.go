package work

import (
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// MendsGang reports whether the job is a gang, and goes on without the members of lost nodes.
func (j *Job) MendsGang() bool { return j.Gang && j.Doc != nil && j.Doc.Spec.ReplacesLost() }

// Replacements returns the units in place of lost members of the gang, ascending.
func (j *Job) Replacements() []*Unit {
	at := slices.IndexFunc(j.Units, func(u *Unit) bool { return u.Record.Replaces })
	if at < 0 {
		return nil
	}
	return j.Units[at:]
}

// OwnUnits returns the units of the submission, and the units added by a change.
func (j *Job) OwnUnits() []*Unit { return j.Units[:len(j.Units)-len(j.Replacements())] }

// Gang is the unit whose lost member a replacement replaces, nil for another unit.
func (u *Unit) Gang() *Unit {
	if !u.Record.Replaces {
		return nil
	}
	return u.Job.Units[0]
}

// Rank is the index, in the gang, of the replaced member.
func (u *Unit) Rank() int { return u.Record.FirstMember - u.Gang().Record.FirstMember }

// IsWanted reports whether the gang of a replacement runs without the member.
func (u *Unit) IsWanted() bool {
	g := u.Gang()
	return g.Record.UID == u.Record.Parent && g.Phase() == api.Running && g.Record.HasLost(u.Rank())
}

// IsMending reports whether the unit is a gang waiting again, and is to wait first for the end
// of the replacements of the gang's members.
func (u *Unit) IsMending() bool {
	return u.Job != nil && u.Record.N == 0 && u.Waiting() && len(u.Job.Replacements()) > 0
}

// IsMended reports whether other units replace members of this unit.
func (u *Unit) IsMended() bool {
	return u.Job != nil && u.Record.N == 0 && len(u.Job.Replacements()) > 0
}

// IsCounted reports whether a replacement's work counts for the gang: the replacement has a
// place, and keeps the place.
func (u *Unit) IsCounted() bool {
	return u.Phase() == api.Running && u.Attempt != nil && !u.Attempt.Lost
}

// exitsElsewhere returns the ends of members in other transactions, present or past.
func (a *Attempt) exitsElsewhere() (list []record.Exit) {
	known := map[int]bool{}
	if a.Unit.IsMended() {
		for _, r := range a.Unit.Job.Replacements() {
			if r.Attempt == nil || r.Attempt.Machine.Undecided() {
				continue
			}
			for _, e := range r.Attempt.Exits() {
				e.Member, e.Tx = r.Rank(), r.Attempt.Machine.ID()
				known[e.Member] = true
				list = append(list, e)
			}
		}
	}
	for member, e := range a.elsewhere {
		if !known[member] {
			list = append(list, e)
		}
	}
	return list
}

// Judged is the attempt by which the work of a unit is judged: for a replacement, the attempt
// of the gang. nil where there is no such attempt.
func (a *Attempt) Judged() *Attempt {
	if g := a.Unit.Gang(); g != nil {
		return g.Attempt
	}
	return a
}

// MayMend reports whether the commit of a unit may be sent: for a replacement, only while the
// gang runs without the member.
func (a *Attempt) MayMend() bool {
	g := a.Unit.Gang()
	return g == nil || a.Unit.IsWanted() && g.Attempt != nil && !g.Life.EndAsked()
}

// GangCompares are the compares by which the gang of a replacement still is COMMITTED
// without the member, none for another unit. model: mutant MEND_WITHOUT_PARENT
func (a *Attempt) GangCompares() []record.Compare {
	g := a.Unit.Gang()
	if g == nil {
		return nil
	}
	return []record.Compare{record.ModRevIs(record.TxKey(g.Attempt.Machine.ID()), g.Attempt.Machine.Revision())}
}
