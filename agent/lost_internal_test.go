package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/devices"
)

// The condition names the cards of the last discovery: that of the start, until the
// watch knows better.
func TestTheCardsThatCouldNotBeUsedAreNamed(t *testing.T) {
	hung := devices.Unknown{Position: 1, Why: "nvmlDeviceGetUUID has not returned for 5s"}
	gone := devices.Unknown{Position: 2, PCIBusID: "0000:03:00.0", Why: "GPU is lost"}
	condition := func(reason, message string) *rpc.Condition {
		return &rpc.Condition{Type: "GPUsUnknown", True: true, Reason: reason, Message: message}
	}
	none := []devices.Unknown{}
	for name, c := range map[string]struct {
		found   Discovered
		watched bool
		now     *[]devices.Unknown // of the watch; nil: no news
		want    *rpc.Condition
	}{
		"all are used":                  {Discovered{}, false, nil, nil},
		"the driver hangs at the start": {Discovered{Hung: "nvmlInit_v2 has not returned"}, false, nil, condition("DriverHangs", "nvmlInit_v2 has not returned")},
		"and answers":                   {Discovered{Hung: "nvmlInit_v2 has not returned"}, true, nil, nil},
		"a card hangs at the start":     {Discovered{Unknown: []devices.Unknown{hung}}, false, nil, condition("NotUsable", "GPU 1 at an unknown PCI address: nvmlDeviceGetUUID has not returned for 5s")},
		"and still when others answer":  {Discovered{Hung: hung.Why, Unknown: []devices.Unknown{hung}}, true, nil, condition("NotUsable", "GPU 1 at an unknown PCI address: nvmlDeviceGetUUID has not returned for 5s")},
		"and answers later":             {Discovered{Unknown: []devices.Unknown{hung}}, true, &none, nil},
		"another cannot be used later":  {Discovered{Unknown: []devices.Unknown{hung}}, true, &[]devices.Unknown{hung, gone}, condition("NotUsable", "GPU 1 at an unknown PCI address: nvmlDeviceGetUUID has not returned for 5s; GPU 2 at 0000:03:00.0: GPU is lost")},
	} {
		t.Run(name, func(t *testing.T) {
			a := &Agent{deps: Deps{Discovered: c.found}}
			a.watched.Store(c.watched)
			a.unknown.Store(c.now)
			got, ok := a.unknownGPUs()
			if ok != (c.want != nil) {
				t.Fatalf("condition %+v: %t, want %+v", got, ok, c.want)
			}
			if ok {
				if diff := cmp.Diff(*c.want, got); diff != "" {
					t.Errorf("condition (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// The condition names the call about the driver that hangs, and ends with the call.
func TestADriverThatHangsIsNamed(t *testing.T) {
	a := &Agent{}
	if c, ok := a.driverHangs(); ok {
		t.Errorf("condition %+v without news", c)
	}
	call, none := "nvmlInit_v2 has not returned for 30s", ""
	a.hangs.Store(&call)
	want := rpc.Condition{Type: "DriverHangs", True: true, Reason: "NoAnswer", Message: call}
	if c, ok := a.driverHangs(); !ok || c != want {
		t.Errorf("condition %+v, want %+v", c, want)
	}
	a.hangs.Store(&none)
	if c, ok := a.driverHangs(); ok {
		t.Errorf("condition %+v after the return", c)
	}
}
