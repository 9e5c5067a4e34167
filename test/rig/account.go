package rig

import (
	"fmt"
	"sync"

	"github.com/musterd/muster/coordinator/decisions"
)

// account verifies what a coordinator says of its decisions, as it says it.
type account struct {
	mu      sync.Mutex
	checker *decisions.Checker
	waiting int                // units in the last State
	log     []decisions.Record // the last State and all records since, for a failure's message
}

func newAccount(coordinator string) *account {
	a := &account{checker: decisions.NewChecker()}
	a.checker.File(coordinator)
	return a
}

// statesEvery is the number of records after which the account asks for a State,
// so that the leader's memory is compared with the sum of its records. A State
// lists all units that wait, so the account lets as many records pass as the last
// State has units, if these are more.
const statesEvery = 50

// Append takes a record, up to the first violation.
func (a *account) Append(r decisions.Record) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.checker.Report().OK() {
		return false
	}
	if r.State != nil {
		a.log, a.waiting = nil, len(r.State.Waiting)
	}
	a.log = append(a.log, r)
	a.checker.Record(r)
	return len(a.log)%max(statesEvery, a.waiting) == 0
}

// failure says what was not as it should be, or nothing.
func (a *account) failure() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	report := a.checker.Report()
	if report.OK() {
		return ""
	}
	text := fmt.Sprintf("the account of decisions is wrong: %v", report.Violations)
	for _, r := range a.log {
		text += "\n" + string(decisions.Encode(r))
	}
	return text
}

// Decisions is what the account of this coordinator amounts to so far.
func (k *Coordinator) Decisions() decisions.Report {
	k.account.mu.Lock()
	defer k.account.mu.Unlock()
	return *k.account.checker.Report()
}
