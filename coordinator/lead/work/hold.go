package work

// hold is the reason why a waiting unit is not tried, apart from the owner's wish.
type hold uint8

const (
	NoHold         hold = iota
	HoldDelay           // until the instant of the unit's next try
	HoldThrottled       // as many units of the job run as the job's parallelism allows
	HoldDependency      // a dependency of the job has not come true
)

// HoldAll holds all waiting units of a job because of a dependency, and returns the units newly
// held.
func (j *Job) HoldAll() (changed []*Unit) {
	for _, u := range j.Units {
		if u.Hold != HoldDependency && u.Waiting() && u.Attempt == nil && u.Adopting == "" {
			u.SetHold(HoldDependency)
			changed = append(changed, u)
		}
	}
	return changed
}

// WhyUnwanted is the reason to end the units of a job still going on, "" without a reason.
func (j *Job) WhyUnwanted() string {
	switch e := j.Policy().EndOf(j.States()); {
	case e.Stops && IsOverdueEnd(j.Units[e.Of]):
		return "" // finishOverdue ends the others
	case e.Stops:
		return "the job has failed: " + j.Units[e.Of].Record.Reason
	case j.Gang && hasWorkEnded(j.Units[0]):
		return "the first unit of the gang has ended"
	}
	return ""
}
