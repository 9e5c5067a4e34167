package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/nvml"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/numa/sysfs"
	"github.com/musterd/muster/resource/bitset"
)

// Discovered holds the facts discovered about a host. It is immutable.
type Discovered struct {
	// Host is the host's identity as sysfs gives it.
	Host sysfs.Host
	// BootID is the running kernel's boot identifier, half of the incarnation.
	BootID    string
	Topology  *numa.Topology
	Inventory *devices.Inventory // empty on a host without GPUs
	// Running lists the processes on the devices and MIG instances whose driver
	// reports them.
	Running []devices.Running
	// NoDriver is the reason for having no GPUs where the driver is absent; ""
	// where it answered.
	NoDriver string
	// Warnings are faults of the host that were worked around, in the order
	// found.
	Warnings []string
}

// DiscoverOptions say where to look; the zero value is the running host.
type DiscoverOptions struct {
	// SysfsRoot is a folder that holds sys/ and proc/; "" is "/".
	SysfsRoot string
	// NVMLLibrary is the library to open; "" stands for the one that the loader
	// finds.
	NVMLLibrary string
}

// Discover reads a host's processors, memory and GPUs. A host without the
// driver is one without GPUs; a driver that answers with errors is refused,
// since its devices would vanish from the cluster otherwise. It may block for
// seconds while the driver wakes up.
func Discover(o DiscoverOptions) (Discovered, error) {
	root := o.SysfsRoot
	if root == "" {
		root = "/"
	}
	tree, err := sysfs.Open(root)
	if err != nil {
		return Discovered{}, fmt.Errorf("discover: %w", err)
	}
	var d Discovered
	topology, faults, err := sysfs.Read(tree)
	if err != nil {
		return Discovered{}, fmt.Errorf("discover %s: %w", root, err)
	}
	host, more := sysfs.ReadHost(tree)
	faults = append(faults, more...)
	live := host
	if filepath.Clean(root) != "/" {
		live, _ = sysfs.ReadHost(os.DirFS("/"))
	} else {
		allowed, ok, more := sysfs.AllowedCPUs(tree)
		if faults = append(faults, more...); ok {
			topology = sysfs.Restrict(topology, allowed)
		}
	}
	for _, f := range faults {
		d.Warnings = append(d.Warnings, f.String())
	}
	if left := fit.LeftOut(topology); len(left) > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("the host has more than %d NUMA nodes with CPUs or memory: nodes %s hand out no memory, and their CPUs count as CPUs of an unknown node",
			fit.MaxNodes-1, bitset.Of(left...)))
	}
	d.Host, d.BootID, d.Topology = host, live.BootID, topology
	if err := d.gpus(o.NVMLLibrary, func(busID string) (int, bool) { return sysfs.PCINode(tree, busID) }); err != nil {
		return Discovered{}, err
	}
	return d, nil
}

// gpus asks the driver for the inventory.
func (d *Discovered) gpus(library string, node func(busID string) (int, bool)) error {
	d.Inventory = &devices.Inventory{}
	source, err := nvml.Open(library, nvml.WithNUMANode(node))
	switch {
	case errors.Is(err, nvml.ErrNoDriver) && library == "":
		d.NoDriver = err.Error()
		return nil
	case err != nil:
		return fmt.Errorf("discover GPUs: %w", err)
	}
	inventory, warnings, err := source.Discover()
	d.Running = source.Running()
	err = errors.Join(err, source.Close())
	d.Warnings = append(d.Warnings, warnings...)
	if errors.Is(err, nvml.ErrNoDriver) {
		d.NoDriver = err.Error()
		return nil
	}
	if err != nil {
		return fmt.Errorf("discover GPUs: %w", err)
	}
	d.Inventory = inventory
	return nil
}
