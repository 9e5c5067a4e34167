package devices_test

import (
	"testing"

	"github.com/musterd/muster/devices"
)

// threeGPUs is a valid inventory: two GPUs joined by NVLink, one apart.
func threeGPUs() *devices.Inventory {
	nv := devices.NVLink(4)
	return &devices.Inventory{
		Devices: []devices.Device{
			{Index: 0, UUID: "GPU-a", PCIBusID: "0000:07:00.0", Memory: 80 << 30},
			{Index: 1, UUID: "GPU-b", PCIBusID: "0000:0f:00.0", Memory: 80 << 30},
			{Index: 2, UUID: "GPU-c", PCIBusID: "0000:47:00.0", NUMANode: devices.UnknownNode},
		},
		Links: [][]devices.Link{
			{devices.LinkNone, nv, devices.LinkSYS},
			{nv, devices.LinkNone, devices.LinkPHB},
			{devices.LinkSYS, devices.LinkPHB, devices.LinkNone},
		},
	}
}

func TestValidInventoriesAreAccepted(t *testing.T) {
	for name, inv := range map[string]*devices.Inventory{"three GPUs": threeGPUs(), "no GPU": {}} {
		if err := inv.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateNamesTheBrokenInvariant(t *testing.T) {
	for name, c := range map[string]struct {
		breach func(*devices.Inventory)
		want   string
	}{
		"an index out of order":          {func(inv *devices.Inventory) { inv.Devices[1].Index = 2 }, "devices: device 1 carries index 2"},
		"a device without a UUID":        {func(inv *devices.Inventory) { inv.Devices[2].UUID = "" }, "devices: device 2 (0000:47:00.0) has no UUID"},
		"a UUID twice":                   {func(inv *devices.Inventory) { inv.Devices[2].UUID = "GPU-a" }, "devices: devices 0 and 2 share UUID GPU-a"},
		"negative memory":                {func(inv *devices.Inventory) { inv.Devices[1].Memory = -1 }, "devices: device 1 has -1 bytes of memory, outside 0..1125899906842624"},
		"more memory than any has":       {func(inv *devices.Inventory) { inv.Devices[1].Memory = 1 << 60 }, "devices: device 1 has 1152921504606846976 bytes of memory, outside 0..1125899906842624"},
		"a UUID that is a path":          {func(inv *devices.Inventory) { inv.Devices[0].UUID = "../../etc/x" }, `devices: device 0 (0000:07:00.0): UUID "../../etc/x": want 1 to 256 visible ASCII characters without ".."`},
		"a UUID with a line feed":        {func(inv *devices.Inventory) { inv.Devices[0].UUID = "GPU\n" }, `devices: device 0 (0000:07:00.0): UUID "GPU\n": want 1 to 256 visible ASCII characters without ".."`},
		"more devices than fit has":      {func(inv *devices.Inventory) { inv.Devices = make([]devices.Device, 65) }, "devices: 65 devices, more than 64"},
		"no link rows":                   {func(inv *devices.Inventory) { inv.Links = nil }, "devices: 0 link rows for 3 devices"},
		"a link row too many":            {func(inv *devices.Inventory) { inv.Links = append(inv.Links, nil) }, "devices: 4 link rows for 3 devices"},
		"link rows without a device":     {func(inv *devices.Inventory) { inv.Devices = nil }, "devices: 3 link rows for 0 devices"},
		"a first row too short":          {func(inv *devices.Inventory) { inv.Links[0] = inv.Links[0][:2] }, "devices: link row 0 has 2 columns for 3 devices"},
		"an empty row below a full one":  {func(inv *devices.Inventory) { inv.Links[2] = nil }, "devices: link row 2 has 0 columns for 3 devices"},
		"a row too long":                 {func(inv *devices.Inventory) { inv.Links[1] = make([]devices.Link, 4) }, "devices: link row 1 has 4 columns for 3 devices"},
		"a link that differs mirrored":   {func(inv *devices.Inventory) { inv.Links[2][1] = devices.LinkPIX }, "devices: link 1-2 is PHB, its mirror PIX"},
		"a device linked to itself":      {func(inv *devices.Inventory) { inv.Links[1][1] = devices.LinkPIX }, "devices: device 1 is linked to itself by PIX, want X"},
		"two devices without a relation": {func(inv *devices.Inventory) { inv.Links[0][2], inv.Links[2][0] = devices.LinkNone, devices.LinkNone }, "devices: link 0-2 is X, which only a device and itself may be"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := threeGPUs()
			c.breach(inv)
			if err := inv.Validate(); err == nil || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestLinkReadsTheMatrix(t *testing.T) {
	inv := threeGPUs()
	if got := inv.Link(1, 0); got != devices.NVLink(4) {
		t.Errorf("link 1-0 is %s, want NV4", got)
	}
	if got := inv.Link(2, 2); got != devices.LinkNone {
		t.Errorf("link 2-2 is %s, want X", got)
	}
}

func TestHealthNamesAndWhatTheyAllow(t *testing.T) {
	for name, c := range map[string]struct {
		health      devices.Health
		allocatable bool
	}{
		"ok": {devices.OK, true}, "suspect": {devices.Suspect, true}, "tainted": {devices.Tainted, false}, "probation": {devices.Probation, false},
	} {
		got, err := devices.ParseHealth(name)
		if err != nil || got != c.health || c.health.String() != name {
			t.Errorf("%q reads as %s, %v; %d prints as %s", name, got, err, uint8(c.health), c.health)
		}
		if got.Allocatable() != c.allocatable {
			t.Errorf("%s devices: allocatable is %t", name, got.Allocatable())
		}
	}
	unknown := devices.Health(4)
	if unknown.String() != "Health(4)" || unknown.Allocatable() {
		t.Errorf("an unknown state prints as %s, allocatable is %t", unknown, unknown.Allocatable())
	}
	for _, name := range []string{"", "OK", "Health(4)"} {
		want := `health "` + name + `": want ok, suspect, tainted or probation`
		if _, err := devices.ParseHealth(name); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}
