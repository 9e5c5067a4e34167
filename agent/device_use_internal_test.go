package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices"
)

func TestTheUseOfADeviceThatCannotAnswerIsUnknown(t *testing.T) {
	inv := &devices.Inventory{Devices: []devices.Device{
		{UUID: "GPU-a"},
		{Index: 1, UUID: "GPU-b", MIG: devices.MIG{Enabled: true, Instances: []devices.MIGInstance{{UUID: "MIG-b"}}}},
	}}
	a, b, part := devices.Use{UUID: "GPU-a", Percent: 37, Memory: 4}, devices.Use{UUID: "GPU-b", Percent: devices.UnknownUse, Memory: 2}, devices.Use{UUID: "MIG-b", Percent: devices.UnknownUse, Memory: 1}
	all := uses{"GPU-a": a, "GPU-b": b, "MIG-b": part}
	for name, c := range map[string]struct {
		change devices.Change
		want   uses
	}{
		"nothing happens":        {devices.Change{}, all},
		"a new value":            {devices.Change{Use: []devices.Use{{UUID: "GPU-a"}}}, uses{"GPU-a": {UUID: "GPU-a"}, "GPU-b": b, "MIG-b": part}},
		"an XID changes no use":  {devices.Change{Events: []devices.Event{{UUID: "GPU-a", Kind: devices.EventXID}}}, all},
		"a card is lost":         {devices.Change{Events: []devices.Event{{UUID: "GPU-b", Kind: devices.EventLost}}}, uses{"GPU-a": a}},
		"a card hangs":           {devices.Change{Events: []devices.Event{{UUID: "GPU-a", Kind: devices.EventHung}}}, uses{"GPU-b": b, "MIG-b": part}},
		"the driver is gone":     {devices.Change{Events: []devices.Event{{Kind: devices.EventDriverGone}}}, uses{}},
		"the driver hangs":       {devices.Change{Events: []devices.Event{{Kind: devices.EventHung}}}, uses{}},
		"a driver stops to tell": {devices.Change{Use: []devices.Use{{UUID: "GPU-a", Percent: -1, Memory: -1}}}, uses{"GPU-b": b, "MIG-b": part}},
		"a device of no host":    {devices.Change{Use: []devices.Use{{UUID: "GPU-z"}}}, all},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, all.after(c.change, inv)); diff != "" {
				t.Errorf("uses (-want +got):\n%s", diff)
			}
		})
	}
}
