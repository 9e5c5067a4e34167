package work

import (
	"github.com/musterd/muster/resource"
)

// Fate is the reason why a unit can never run; zero where the unit can run, or where the answer
// is not known.
type Fate struct {
	Reason  *resource.Reason // never changed
	Message string
}

// Code is the code of the reason, "" without a reason.
func (f *Fate) Code() string {
	if f.Reason == nil {
		return ""
	}
	return f.Reason.Code
}

// WarningsOf returns the warnings for the client of a new unit.
func (u *Unit) WarningsOf() []string {
	if u.Wait.Fate.Message == "" || !u.Waiting() {
		return nil
	}
	return []string{u.Wait.Fate.Message + " It waits until a node or a quota changes that."}
}
