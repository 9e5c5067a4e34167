package health_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/health"
)

// A day of a GPU: a program's fault, a bad row of memory, and a fall off the
// bus.
func Example() {
	policy := health.DefaultPolicy()
	start := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	gpu := health.Fresh(start)

	show := func(clock string) {
		fmt.Println(strings.TrimSpace(fmt.Sprintf("%s  %-9s  %s", clock, gpu.Health, gpu.Reason)))
	}
	tell := func(clock, story string, e devices.Event) {
		at, _ := time.Parse("15:04", clock)
		now := start.Add(at.Sub(time.Date(0, 1, 1, 8, 0, 0, 0, time.UTC)))
		for { // the changes by time alone until then
			due, comes := policy.Next(gpu)
			if !comes || due.After(now) {
				break
			}
			gpu = policy.Tick(gpu, due)
			show(due.Format("15:04"))
		}
		fmt.Println(clock, " --", story)
		gpu = policy.Observe(gpu, now, e)
		show(clock)
	}

	tell("08:05", "a program reads past its array", devices.Event{Kind: devices.EventXID, XID: 13})
	tell("09:00", "a memory error takes one program", devices.Event{Kind: devices.EventXID, XID: 94})
	tell("09:40", "the card was idle and has been reset", devices.Event{Kind: devices.EventRepaired})
	tell("11:00", "the card falls off the bus", devices.Event{Kind: devices.EventXID, XID: 79})
	tell("11:01", "nothing answers at its address", devices.Event{Kind: devices.EventLost})
	tell("13:30", "somebody has reseated it", devices.Event{Kind: devices.EventReturned})
	tell("14:00", "it falls again", devices.Event{Kind: devices.EventLost})
	tell("14:10", "and returns, to be watched twice as long", devices.Event{Kind: devices.EventReturned})
	tell("15:00", "the evening is quiet", devices.Event{Kind: devices.EventXID, XID: 45})

	// Output:
	// 08:05  -- a program reads past its array
	// 08:05  ok
	// 09:00  -- a memory error takes one program
	// 09:00  suspect    XID 94: contained memory error; a reset is due
	// 09:40  -- the card was idle and has been reset
	// 09:40  ok
	// 11:00  -- the card falls off the bus
	// 11:00  tainted    XID 79: GPU has fallen off the bus; needs a reset
	// 11:01  -- nothing answers at its address
	// 11:01  tainted    the device was lost
	// 13:30  -- somebody has reseated it
	// 13:30  probation  on probation after XID 79: GPU has fallen off the bus
	// 13:40  ok
	// 14:00  -- it falls again
	// 14:00  tainted    the device was lost
	// 14:10  -- and returns, to be watched twice as long
	// 14:10  probation  on probation after the device was lost
	// 14:30  ok
	// 15:00  -- the evening is quiet
	// 15:00  ok
}
