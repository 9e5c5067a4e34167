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
	records int
	log     []decisions.Record // since the last State, for a failure's message
}

func newAccount(coordinator string) *account {
	a := &account{checker: decisions.NewChecker()}
	a.checker.File(coordinator)
	return a
}

// statesEvery asks for a State that often, so that what the leader keeps is
// compared with what its records amount to.
const statesEvery = 50

// Append takes a record.
func (a *account) Append(r decisions.Record) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.checker.Report().OK() { // up to the first violation
		if r.State != nil {
			a.log = nil
		}
		a.log = append(a.log, r)
		a.checker.Record(r)
	}
	a.records++
	return a.records%statesEvery == 0
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
