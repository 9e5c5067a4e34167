package run

import "time"

// Sweep removes the folders whose time is over.
func (r *Runner) Sweep(now time.Time) { r.sweep(now) }

// SetMeasureEvery sets the time between two measurements, before Run.
func (r *Runner) SetMeasureEvery(d time.Duration) { r.measureEvery = d }

// StartsAtOnce is startsAtOnce.
const StartsAtOnce = startsAtOnce
