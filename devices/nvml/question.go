//go:build cgo && linux

package nvml

import (
	"fmt"
	"sync/atomic"
	"time"
)

// question is one call into the library that has begun.
type question struct {
	call     string // the function's name in NVML; "" before the first call
	about    string // the card in words, "" for the driver as a whole
	position int    // NVML's index of the card, -1 for the driver as a whole
	uuid     string // the card's, "" where it is not known yet
	since    time.Time
	hung     atomic.Bool // the watch has reported that it hangs
}

// String is e.g. "nvmlDeviceGetName of GPU 2 at 0000:0f:00.0".
func (q *question) String() string {
	switch {
	case q.call == "":
		return "a call that waits for another one"
	case q.about == "":
		return q.call
	}
	return q.call + " of " + q.about
}

// silence says how long the driver has not answered.
func (q *question) silence(now time.Time) string {
	return fmt.Sprintf("%v has not returned for %s", q, rounded(now.Sub(q.since)))
}

// rounded is a duration as people say it.
func rounded(d time.Duration) time.Duration {
	if d >= 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// asker notes that a call begins; a nil card stands for the driver.
type asker func(call string, c *card)

// ask is the question about a card, or about the driver.
func ask(call string, c *card) *question {
	q := &question{call: call, position: -1, since: time.Now()}
	if c != nil {
		q.about, q.position, q.uuid = c.String(), c.position, c.device.UUID
	}
	return q
}
