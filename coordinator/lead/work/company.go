package work

import (
	"slices"

	"github.com/musterd/muster/coordinator/txn"
)

// Company is the attempts of units that start together: one Txn commits all of them,
// or none (I17). Each attempt reserves by itself, and waits for the others before each
// Txn of an undecided transaction. Where one comes to nothing, all do.
type Company struct {
	// Attempts begins with the one that has the victims, if there are any.
	Attempts []*Attempt
	// Writing: a Txn of all is under way. over: each attempt goes on by itself.
	Writing, Over bool
}

// Add has an attempt start together with the others.
func (c *Company) Add(a *Attempt) {
	c.Attempts = append(c.Attempts, a)
	a.Company = c
}

// Are reports whether all attempts are in a state.
func (c *Company) Are(s txn.State) bool {
	return !slices.ContainsFunc(c.Attempts, func(a *Attempt) bool { return a.Machine == nil || a.Machine.State() != s })
}

// SetOver has each attempt go on by itself.
func (c *Company) SetOver() { c.Over = true }

// BeginWrite notes that a Txn of all is under way, EndWrite that it has its answer.
func (c *Company) BeginWrite() { c.Writing = true }

func (c *Company) EndWrite() { c.Writing = false }
