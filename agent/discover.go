package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

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
	// Unknown lists the GPUs that the driver counts and that are not in
	// Inventory.
	Unknown []devices.Unknown
	// Hung names the call into the driver that has not returned, "" where all
	// have.
	Hung string
	// Limits are those of this process's cgroups on the running host.
	Limits sysfs.Limits
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
	// Limit bounds all calls into the driver together; 0 is DiscoveryLimit.
	Limit time.Duration
	// Driver, where not nil, is asked instead of an own one: WatchDevices with the
	// same one waits for the calls that a discovery left behind.
	Driver *nvml.Driver
}

// DiscoveryLimit is the time that a discovery gives the driver for all calls
// together.
const DiscoveryLimit = 30 * time.Second

// root is the folder that holds sys/ and proc/.
func (o DiscoverOptions) root() string {
	if o.SysfsRoot == "" {
		return "/"
	}
	return o.SysfsRoot
}

// NewDriver is the host's driver, for Driver of these options.
func (o DiscoverOptions) NewDriver() (*nvml.Driver, error) {
	tree, err := sysfs.Open(o.root())
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	return nvml.NewDriver(o.NVMLLibrary, nvml.WithNUMANode(func(busID string) (int, bool) { return sysfs.PCINode(tree, busID) })), nil
}

// Discover reads a host's processors, memory and GPUs. A host without the
// driver is one without GPUs, and so is a host whose driver cannot be used or
// hangs: Warnings say so, and WatchDevices looks for the GPUs again. It takes as
// long as the driver, at most Limit. Errors: ctx has ended; the host's processors
// cannot be read; NVMLLibrary is set and cannot be opened.
func Discover(ctx context.Context, o DiscoverOptions) (Discovered, error) {
	root := o.root()
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
		d.Limits, more = sysfs.ReadLimits(tree)
		faults = append(faults, more...)
	}
	for _, f := range faults {
		d.Warnings = append(d.Warnings, f.String())
	}
	if left := fit.LeftOut(topology); len(left) > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("the host has more than %d NUMA nodes with CPUs or memory: nodes %s hand out no memory, and their CPUs count as CPUs of an unknown node",
			fit.MaxNodes-1, bitset.Of(left...)))
	}
	d.Host, d.BootID, d.Topology = host, live.BootID, topology
	if err := d.gpus(ctx, o); err != nil {
		return Discovered{}, err
	}
	return d, nil
}

// gpus asks the driver for the inventory.
func (d *Discovered) gpus(ctx context.Context, o DiscoverOptions) error {
	d.Inventory = &devices.Inventory{}
	driver := o.Driver
	if driver == nil {
		var err error
		if driver, err = o.NewDriver(); err != nil {
			return err
		}
	}
	found, err := driver.Discover(ctx, cmp.Or(o.Limit, DiscoveryLimit))
	switch {
	case err == nil:
		d.Inventory, d.Running, d.Unknown, d.Hung = found.Inventory, found.Running, found.Unknown, found.Hung
		d.Warnings = append(d.Warnings, found.Warnings...)
	case ctx.Err() != nil, errors.Is(err, nvml.ErrNoLibrary) && o.NVMLLibrary != "":
		return fmt.Errorf("discover GPUs: %w", err)
	case errors.Is(err, nvml.ErrNoDriver):
		d.NoDriver = err.Error()
	default:
		d.Warnings = append(d.Warnings, "the NVIDIA driver cannot be used, so no GPU is known: "+err.Error())
	}
	return nil
}
