package work

import (
	"github.com/musterd/muster/resource"
)

// Fate is the reason why a unit can never run; zero: it can, or that is not known.
type Fate struct {
	Reason  *resource.Reason // never changed
	Message string
}

func (f *Fate) Code() string {
	if f.Reason == nil {
		return ""
	}
	return f.Reason.Code
}

// WarningsOf are those that the client of a new unit gets.
func (u *Unit) WarningsOf() []string {
	if u.Fate.Message == "" || !u.Waiting() {
		return nil
	}
	return []string{u.Fate.Message + " It waits until a node or a quota changes that."}
}
