package run

import "time"

// Sweep removes what is kept no more.
func (r *Runner) Sweep(now time.Time) { r.sweep(now) }

// SetMeasureEvery sets the time between two measurements, before Run.
func (r *Runner) SetMeasureEvery(d time.Duration) { r.measureEvery = d }
