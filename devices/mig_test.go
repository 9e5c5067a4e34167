package devices_test

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/devices"
)

// partitioned has two GPUs with instances next to a whole one.
func partitioned() *devices.Inventory {
	inv := threeGPUs()
	inv.Devices[0].MIG = devices.MIG{Enabled: true, Instances: []devices.MIGInstance{
		{UUID: "MIG-a0", Profile: "3g.40gb", Memory: 40 << 30}, {UUID: "MIG-a1", Profile: "1g.10gb", Memory: 10 << 30},
	}}
	inv.Devices[1].MIG = devices.MIG{Enabled: true, Instances: []devices.MIGInstance{{UUID: "MIG-b0", Profile: "7g.80gb", Memory: 80 << 30}}}
	return inv
}

func TestValidPartitionsAreAccepted(t *testing.T) {
	most := partitioned()
	most.Devices[0].MIG.Instances = nil
	for i := range devices.MaxMIGInstances {
		most.Devices[0].MIG.Instances = append(most.Devices[0].MIG.Instances, devices.MIGInstance{UUID: fmt.Sprintf("MIG-a%d", i)})
	}
	none := partitioned()
	none.Devices[0].MIG.Instances = nil
	for name, inv := range map[string]*devices.Inventory{
		"two GPUs with instances": partitioned(), "the most instances": most, "MIG mode without instances": none,
	} {
		if err := inv.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateNamesTheBrokenPartition(t *testing.T) {
	for name, c := range map[string]struct {
		breach func(a, b *devices.MIG)
		want   string
	}{
		"instances outside MIG mode": {
			func(a, _ *devices.MIG) { a.Enabled = false }, "devices: device 0 has 2 MIG instances and is not in MIG mode",
		},
		"an instance too many": {
			func(_, b *devices.MIG) { b.Instances = make([]devices.MIGInstance, devices.MaxMIGInstances+1) },
			"devices: device 1 has 17 MIG instances, at most 16 are supported",
		},
		"an instance without a UUID": {func(a, _ *devices.MIG) { a.Instances[1].UUID = "" }, "devices: device 0: MIG instance 1 has no UUID"},
		"a UUID twice on a device": {
			func(a, _ *devices.MIG) { a.Instances[1].UUID = "MIG-a0" }, "devices: device 0: MIG instance 1 shares UUID MIG-a0 with one of device 0",
		},
		"a UUID on two devices": {
			func(_, b *devices.MIG) { b.Instances[0].UUID = "MIG-a1" }, "devices: device 1: MIG instance 0 shares UUID MIG-a1 with one of device 0",
		},
		"negative memory": {func(_, b *devices.MIG) { b.Instances[0].Memory = -1 }, "devices: device 1: MIG instance 0 has -1 bytes of memory, outside 0..1125899906842624"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := partitioned()
			c.breach(&inv.Devices[0].MIG, &inv.Devices[1].MIG)
			if err := inv.Validate(); err == nil || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestSlicesOfAProfile(t *testing.T) {
	for profile, want := range map[string]int{
		"1g.10gb": 1, "2g.20gb": 2, "3g.40gb": 3, "4g.40gb": 4, "7g.80gb": 7, "1c.3g.40gb": 3, "2c.7g.80gb": 7,
		"1g.10gb+me": 1, "4g.96gb+gfx": 4, "2g.48gb-me": 2,
		"": 1, "g.": 1, "g.10gb": 1, "0g.10gb": 1, "xg.10gb": 1, "large": 1, "10gb": 1,
	} {
		if got := (devices.MIGInstance{Profile: profile}).Slices(); got != want {
			t.Errorf("%q takes %d slices, want %d", profile, got, want)
		}
	}
}
