package work

import (
	"slices"

	"github.com/musterd/muster/coordinator/txn"
)

// Company is the set of attempts of units that start together: a single Txn commits all of the
// attempts, or none (I17). Each attempt reserves by itself, and waits for the others before
// each Txn of an undecided transaction. Where an attempt comes to nothing, all attempts do.
type Company struct {
	// Attempts begins with the attempt that has the victims, if there are any.
	Attempts []*Attempt
	// Writing: a Txn of all attempts is under way. Over: each attempt goes on by itself.
	Writing, Over bool
}

// Add has an attempt start together with the others.
func (c *Company) Add(a *Attempt) {
	c.Attempts = append(c.Attempts, a)
	a.Company = c
}

// Are reports whether all attempts are in state s.
func (c *Company) Are(s txn.State) bool {
	return !slices.ContainsFunc(c.Attempts, func(a *Attempt) bool { return a.Machine == nil || a.Machine.State() != s })
}

// SetOver has each attempt go on by itself.
func (c *Company) SetOver() { c.Over = true }

// BeginWrite notes a Txn of all attempts under way.
func (c *Company) BeginWrite() { c.Writing = true }

// EndWrite notes the answer to the Txn of all attempts.
func (c *Company) EndWrite() { c.Writing = false }
