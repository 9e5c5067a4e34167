package agent

import (
	"context"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/nvml"
)

// WatchDevices is Deps.Watch for the driver that Discover with the same
// options found, did not find, or found hanging. A driver that comes or answers
// later is taken up, and its cards are new ones.
func WatchDevices(o DiscoverOptions, how nvml.WatchOptions) func(context.Context, *devices.Inventory, []string, func(devices.Change)) error {
	return func(ctx context.Context, known *devices.Inventory, absent []string, emit func(devices.Change)) error {
		driver := o.Driver
		if driver == nil {
			var err error
			if driver, err = o.NewDriver(); err != nil {
				return err
			}
		}
		how.Absent = absent
		return driver.Watch(ctx, known, how, emit)
	}
}
