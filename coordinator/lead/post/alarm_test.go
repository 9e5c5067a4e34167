package post_test

import (
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
)

// TestAlarmsRingInTheirOrder: by their instants, and of one instant in the order in
// which they were set; a cancelled alarm stays silent.
func TestAlarmsRingInTheirOrder(t *testing.T) {
	o := newOffice(t)
	var rang []string
	set := func(wait time.Duration, name string) *post.Alarm {
		return o.After(wait, func() { rang = append(rang, name) })
	}
	var cancelled *post.Alarm
	o.do(func() {
		set(3, "late")
		set(2, "first of two")
		cancelled = set(2, "cancelled")
		set(2, "second of two")
		set(1, "early")
		o.Cancel(cancelled)
		o.Cancel(cancelled)
		o.Cancel(nil)
	})
	o.pass(1)
	if want := []string{"early"}; !slices.Equal(rang, want) {
		t.Errorf("at 1 %v, want %v", rang, want)
	}
	o.pass(1)
	o.do(func() { o.Cancel(cancelled) })
	o.pass(1)
	if want := []string{"early", "first of two", "second of two", "late"}; !slices.Equal(rang, want) || o.Alarms() != 0 {
		t.Errorf("at 3 %v, want %v; %d alarms are set", rang, want, o.Alarms())
	}
}

// TestAWakeUpIsAskedForOnce: an earlier alarm asks anew, a later alarm does not.
func TestAWakeUpIsAskedForOnce(t *testing.T) {
	o := newOffice(t)
	for i, c := range []struct {
		wait time.Duration
		asks bool
	}{{5, true}, {5, false}, {6, false}, {4, true}} {
		if o.do(func() { o.After(c.wait, func() {}) }); o.did(post.WakeAt) != c.asks {
			t.Errorf("step %d: asks %t", i, !c.asks)
		}
	}
	if o.pass(4); !o.did(post.WakeAt) {
		t.Error("the next alarm has no wake-up")
	}
}
