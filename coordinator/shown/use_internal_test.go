package shown

import (
	"testing"

	"github.com/musterd/muster/devices"
)

func TestTheUseOfADeviceIsShownAsFarAsItIsKnown(t *testing.T) {
	const unknown = devices.UnknownUse
	for name, c := range map[string]struct {
		told    devices.Use
		silent  bool // no stream to the agent is open
		percent int  // unknown for nil
		memory  string
	}{
		"a busy device":                        {devices.Use{UUID: "GPU-a", Percent: 37, Memory: 12 << 30}, false, 37, "12Gi"},
		"an idle device":                       {devices.Use{UUID: "GPU-a"}, false, 0, "0"},
		"a driver that reports no percentage":  {devices.Use{UUID: "GPU-a", Percent: unknown, Memory: 1 << 30}, false, unknown, "1Gi"},
		"more memory than the device has":      {devices.Use{UUID: "GPU-a", Percent: 1, Memory: 81 << 30}, false, 1, ""},
		"a device that the host does not have": {devices.Use{UUID: "GPU-b", Percent: 1, Memory: 1}, false, unknown, ""},
		"an agent that is not connected":       {devices.Use{UUID: "GPU-a", Percent: 37, Memory: 1}, true, unknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Stream{Connected: !c.silent, Uses: []devices.Use{c.told}}
			percent, memory := s.use("GPU-a", 80<<30)
			if memory != c.memory || (percent == nil) != (c.percent == unknown) || percent != nil && *percent != c.percent {
				t.Errorf("percent %v, memory %q; want %d, %q", percent, memory, c.percent, c.memory)
			}
		})
	}
}
