package shown

import (
	"testing"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/devices"
)

func TestTheUseOfADeviceIsShownAsFarAsItIsKnown(t *testing.T) {
	const unknown = devices.UnknownUse
	heard := &record.NodeObserved{}
	for name, c := range map[string]struct {
		told     record.DeviceUse
		observed *record.NodeObserved
		percent  int // unknown for nil
		memory   string
	}{
		"a busy device":                        {record.DeviceUse{UUID: "GPU-a", Percent: 37, Memory: 12 << 30}, heard, 37, "12Gi"},
		"an idle device":                       {record.DeviceUse{UUID: "GPU-a"}, heard, 0, "0"},
		"a driver that reports no percentage":  {record.DeviceUse{UUID: "GPU-a", Percent: unknown, Memory: 1 << 30}, heard, unknown, "1Gi"},
		"more memory than the device has":      {record.DeviceUse{UUID: "GPU-a", Percent: 1, Memory: 81 << 30}, heard, 1, ""},
		"a device that the host does not have": {record.DeviceUse{UUID: "GPU-b", Percent: 1, Memory: 1}, heard, unknown, ""},
		"an agent that nobody hears":           {record.DeviceUse{UUID: "GPU-a", Percent: 37, Memory: 1}, &record.NodeObserved{Unheard: true}, unknown, ""},
		"a node that was not observed yet":     {record.DeviceUse{UUID: "GPU-a", Percent: 37, Memory: 1}, nil, unknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := &Node{Observed: c.observed, Told: record.NodeStatus{Devices: []record.DeviceUse{c.told}}}
			percent, memory := n.use("GPU-a", 80<<30)
			if memory != c.memory || (percent == nil) != (c.percent == unknown) || percent != nil && *percent != c.percent {
				t.Errorf("percent %v, memory %q; want %d, %q", percent, memory, c.percent, c.memory)
			}
		})
	}
}
