//go:build !cgo || !linux

package nvml

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/musterd/muster/devices"
)

// Built reports whether this program was built so that it can load NVML.
const Built = false

// Driver is a driver that is never there.
type Driver struct{}

// NewDriver returns the driver that is never there.
func NewDriver(string, ...Option) *Driver { return &Driver{} }

// Discover returns ErrNoDriver, wrapped: this program was built without NVML.
func (d *Driver) Discover(context.Context, time.Duration) (Found, error) {
	return Found{}, fmt.Errorf("%w: this program was built for %s without cgo, so it cannot load NVML: build it on Linux with CGO_ENABLED=1",
		ErrNoDriver, runtime.GOOS)
}

// Watch waits until ctx ends.
func (d *Driver) Watch(ctx context.Context, _ *devices.Inventory, _ WatchOptions, _ func(devices.Change)) error {
	<-ctx.Done()
	return nil
}
