package run

import "time"

// SetMeasureEvery sets the time between two measurements, before Run.
func (r *Runner) SetMeasureEvery(d time.Duration) { r.measureEvery = d }
