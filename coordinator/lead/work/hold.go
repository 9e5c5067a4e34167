package work

// hold is why a waiting unit is not tried, where that is not its owner's wish.
type hold uint8

const (
	NoHold         hold = iota
	HoldDelay           // until the instant of its next try
	HoldThrottled       // as many units of its job run as its parallelism allows
	HoldDependency      // a dependency of its job has not come true
)

// HoldAll holds all units of a job that wait, because of a dependency.
func (j *Job) HoldAll() (changed []*Unit) {
	for _, u := range j.Units {
		if u.Hold != HoldDependency && u.Waiting() && u.Attempt == nil && u.Adopting == "" {
			u.SetHold(HoldDependency)
			changed = append(changed, u)
		}
	}
	return changed
}

// WhyUnwanted is why the units of a job that still go on are to end, "" where they are not.
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
