package measured_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/lead/measured"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
)

// TestAUseIsReadAsItWasWritten: a leader that takes over has the same use.
func TestAUseIsReadAsItWasWritten(t *testing.T) {
	for name, u := range map[string]*grant.WorkUse{
		"nothing measured":   nil,
		"kills not counted":  {CPU: time.Second, Memory: 5, PeakMemory: 7, OOMKills: grant.UnknownKills},
		"no kills":           {CPU: time.Hour, PeakMemory: 7},
		"kills and devices":  {OOMKills: 3, Devices: []grant.DeviceUse{{UUID: "GPU-a", Busy: time.Minute, Measured: time.Hour, Memory: 1, PeakMemory: 2}, {UUID: "GPU-b"}}},
		"a device of others": {OOMKills: grant.UnknownKills, Devices: []grant.DeviceUse{{UUID: "GPU-z", PeakMemory: 1 << 40}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(u, measured.UseFrom(measured.UseOf(u))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTheDevicesOfALargeUnitAreAddedUp: the record stays small, and no sum is lost.
func TestTheDevicesOfALargeUnitAreAddedUp(t *testing.T) {
	for name, c := range map[string]struct{ members, devices, rows int }{
		"as many as fit": {128, 8, 8}, "one member more": {129, 8, 1}, "a host that claims too many": {1, 1025, 1}, "no devices": {4096, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var exits []record.Exit
			for i := range c.members {
				e := record.Exit{Member: i, Reason: "Completed", Use: &record.Use{}}
				for k := range c.devices {
					e.Use.Devices = append(e.Use.Devices, record.WorkDevice{UUID: fmt.Sprint("GPU-", k), BusyMillis: 2, PeakMemory: 3})
				}
				exits = append(exits, e)
			}
			measured.FoldDevices(exits)
			for _, e := range exits {
				var busy int64
				for _, d := range e.Use.Devices {
					busy += d.BusyMillis
				}
				if len(e.Use.Devices) != c.rows || busy != int64(2*c.devices) {
					t.Fatalf("member %d has %d rows with %d ms, want %d rows with %d", e.Member, len(e.Use.Devices), busy, c.rows, 2*c.devices)
				}
			}
		})
	}
}
