package shim

import (
	"fmt"
	"time"
)

// Notice is a signal that announces the end of a command. The shim sends it at most once:
// when AfterMillis are over, or with an eviction that comes earlier, and never after the
// stop of a command for another reason. With an eviction SIGTERM follows BeforeMillis
// after the signal, at the latest when half of the grace is over.
type Notice struct {
	// Signal is its number, 1 to 64, sent to the command's process group.
	Signal int `json:"signal"`
	// BeforeMillis is the time between the signal and the end; 1 or more.
	BeforeMillis int64 `json:"beforeMillis"`
	// AfterMillis is the time from the start of the command to the signal; 0 where no
	// end is known.
	AfterMillis int64 `json:"afterMillis,omitempty"`
}

// Noticed says that a command has got the signal of its Notice.
type Noticed struct {
	Version int       `json:"version"`
	Signal  int       `json:"signal"`
	At      time.Time `json:"at"`
}

// MaxNotice bounds both times of a Notice.
const MaxNotice = 100 * 365 * 24 * time.Hour

// check validates a notice, which may be nil.
func (n *Notice) check() error {
	switch {
	case n == nil:
		return nil
	case n.Signal < 1 || n.Signal > 64:
		return fmt.Errorf("spec: notice: signal %d is outside 1..64", n.Signal)
	case n.BeforeMillis < 1 || n.BeforeMillis > MaxNotice.Milliseconds():
		return fmt.Errorf("spec: notice: beforeMillis %d is outside 1..%d", n.BeforeMillis, MaxNotice.Milliseconds())
	case n.AfterMillis < 0 || n.AfterMillis > MaxNotice.Milliseconds():
		return fmt.Errorf("spec: notice: afterMillis %d is outside 0..%d", n.AfterMillis, MaxNotice.Milliseconds())
	}
	return nil
}

// lead is the time between the signal and SIGTERM of an eviction with a grace.
func (n *Notice) lead(grace time.Duration) time.Duration {
	return min(time.Duration(n.BeforeMillis)*time.Millisecond, grace/2)
}

// ParseNoticed reads when the command got its signal.
func ParseNoticed(data []byte) (Noticed, error) {
	n, err := decode[Noticed](data, maxRecord)
	switch {
	case err != nil:
		return Noticed{}, fmt.Errorf("notice: %w", err)
	case n.Version != version:
		return Noticed{}, fmt.Errorf("notice: version %d, this program reads version %d", n.Version, version)
	case n.Signal < 1 || n.Signal > 64:
		return Noticed{}, fmt.Errorf("notice: signal %d is outside 1..64", n.Signal)
	}
	return n, nil
}
