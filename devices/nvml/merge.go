package nvml

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/devices"
)

// merge is the inventory after a sighting: the known devices in their order,
// lost ones as they last were, then the new ones by PCI address. It passes
// Validate if known does. A warning names each new device that is beyond
// devices.MaxDevices and each instance whose UUID is taken.
func merge(known *devices.Inventory, s sighting) (*devices.Inventory, []string) {
	seen := s.inventory
	var warnings []string
	at := make(map[string]int, len(seen.Devices)) // by UUID, the position in the sighting
	for i, d := range seen.Devices {
		at[d.UUID] = i
	}
	merged := &devices.Inventory{Driver: cmp.Or(seen.Driver, known.Driver)}
	var origin []int // of each merged device, the position in the sighting; -1 for a lost one
	for _, d := range known.Devices {
		i, there := at[d.UUID]
		if there {
			d = refresh(d, seen.Devices[i], s.doubtful[d.UUID])
			delete(at, d.UUID)
		} else {
			i = -1
		}
		merged.Devices, origin = append(merged.Devices, d), append(origin, i)
	}
	for i, d := range seen.Devices {
		if _, fresh := at[d.UUID]; !fresh {
			continue
		}
		if len(merged.Devices) == devices.MaxDevices {
			warnings = append(warnings, fmt.Sprintf("GPU %s at %s left out: the host has %d GPUs already, the most that are supported",
				d.UUID, d.PCIBusID, devices.MaxDevices))
			continue
		}
		d.Index = len(merged.Devices)
		merged.Devices, origin = append(merged.Devices, d), append(origin, i)
	}
	merged.Links = mergeLinks(known, s, origin)
	var more []string
	merged.Devices, more = distinctInstances(merged.Devices)
	return merged, append(warnings, more...)
}

// refresh is a known device with the properties that may have changed: its place after a
// rescan of the bus, its memory after a change of ECC mode, its partitions.
// A property that the driver did not report this time stays.
func refresh(known, seen devices.Device, doubtfulMIG bool) devices.Device {
	d := known
	d.PCIBusID, d.Memory = seen.PCIBusID, seen.Memory
	d.Model = cmp.Or(seen.Model, known.Model)
	if seen.NUMANode != devices.UnknownNode {
		d.NUMANode = seen.NUMANode
	}
	d.Clique = cmp.Or(seen.Clique, known.Clique)
	if !doubtfulMIG {
		d.MIG = seen.MIG
	}
	return d
}

// mergeLinks takes the links between devices that were seen as they are now,
// those of a lost device as they were, and the farthest relation between a
// lost device and a new one. Where relations could not be asked, known ones stay.
func mergeLinks(known *devices.Inventory, s sighting, origin []int) [][]devices.Link {
	seen := s.inventory
	rows := make([][]devices.Link, len(origin))
	for i := range rows {
		rows[i] = make([]devices.Link, len(origin))
		for j := range rows[i] {
			areKnown := i < len(known.Devices) && j < len(known.Devices)
			switch {
			case i == j:
			case s.relationsUnknown && areKnown:
				rows[i][j] = known.Links[i][j]
			case origin[i] >= 0 && origin[j] >= 0:
				rows[i][j] = seen.Links[origin[i]][origin[j]]
			case areKnown:
				rows[i][j] = known.Links[i][j]
			default:
				rows[i][j] = devices.LinkSYS
			}
		}
	}
	return rows
}

// distinctInstances leaves out instances whose UUID an earlier one has, so
// that none is handed out twice. The devices given are not changed.
func distinctInstances(list []devices.Device) ([]devices.Device, []string) {
	var warnings []string
	list = slices.Clone(list)
	owner := map[string]devices.Device{}
	for i, d := range list {
		kept := make([]devices.MIGInstance, 0, len(d.MIG.Instances))
		for _, m := range d.MIG.Instances {
			if first, taken := owner[m.UUID]; taken {
				warnings = append(warnings, fmt.Sprintf("GPU at %s: MIG instance %s left out: one of the GPU at %s has its UUID",
					d.PCIBusID, m.UUID, first.PCIBusID))
				continue
			}
			owner[m.UUID] = d
			kept = append(kept, m)
		}
		if len(kept) < len(d.MIG.Instances) {
			list[i].MIG.Instances = kept
		}
	}
	return list, warnings
}

func equalInventories(a, b *devices.Inventory) bool {
	return a.Driver == b.Driver &&
		slices.EqualFunc(a.Devices, b.Devices, equalDevices) &&
		slices.EqualFunc(a.Links, b.Links, slices.Equal[[]devices.Link])
}

func equalDevices(a, b devices.Device) bool {
	instances := slices.Equal(a.MIG.Instances, b.MIG.Instances)
	enabled := a.MIG.Enabled == b.MIG.Enabled
	return instances && enabled && a.Index == b.Index && a.UUID == b.UUID && a.Model == b.Model && a.Memory == b.Memory &&
		a.PCIBusID == b.PCIBusID && a.Clique == b.Clique && a.NUMANode == b.NUMANode && a.Health == b.Health
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
