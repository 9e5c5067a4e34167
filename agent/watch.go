package agent

import (
	"context"
	"errors"
	"time"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/nvml"
	"github.com/musterd/muster/numa/sysfs"
)

// driverRetry is the time between looks for a driver that is not there.
const driverRetry = 30 * time.Second

// WatchDevices is Deps.Watch for the driver that Discover with the same
// options found, or did not find: a driver that is installed later is taken
// up, and its cards are new ones.
func WatchDevices(o DiscoverOptions, how nvml.WatchOptions) func(context.Context, *devices.Inventory, func(devices.Change)) error {
	return func(ctx context.Context, known *devices.Inventory, emit func(devices.Change)) error {
		root := o.SysfsRoot
		if root == "" {
			root = "/"
		}
		tree, err := sysfs.Open(root)
		if err != nil {
			return err
		}
		for {
			source, err := nvml.Open(o.NVMLLibrary, nvml.WithNUMANode(func(busID string) (int, bool) { return sysfs.PCINode(tree, busID) }))
			if err == nil {
				err = source.Watch(ctx, known, how, emit)
				return errors.Join(err, source.Close())
			}
			if !errors.Is(err, nvml.ErrNoDriver) {
				return err
			}
			if !pause(ctx, driverRetry) {
				return nil
			}
		}
	}
}
