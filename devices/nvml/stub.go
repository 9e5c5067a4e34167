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

// Source would be an open NVML library. Programs built without cgo, or not for
// Linux, cannot load one, so none is ever returned.
type Source struct{}

// Open returns ErrNoDriver, wrapped: this program was built without NVML.
func Open(string, ...Option) (*Source, error) {
	return nil, fmt.Errorf("%w: this program was built for %s without cgo, so it cannot load NVML: build it on Linux with CGO_ENABLED=1",
		ErrNoDriver, runtime.GOOS)
}

// Discover returns ErrNoDriver.
func (s *Source) Discover() (*devices.Inventory, []string, error) { return nil, nil, ErrNoDriver }

// Running returns nothing.
func (s *Source) Running() []devices.Running { return nil }

// Watch returns ErrNoDriver.
func (s *Source) Watch(context.Context, *devices.Inventory, WatchOptions, func(devices.Change)) error {
	return ErrNoDriver
}

// Close does nothing.
func (s *Source) Close() error { return nil }

// Driver is a driver that is never there.
type Driver struct{}

// NewDriver returns the driver that is never there.
func NewDriver(string, ...Option) *Driver { return &Driver{} }

// Discover returns ErrNoDriver, wrapped: this program was built without NVML.
func (d *Driver) Discover(context.Context, time.Duration) (Found, error) {
	_, err := Open("")
	return Found{}, err
}

// Watch waits until ctx ends.
func (d *Driver) Watch(ctx context.Context, _ *devices.Inventory, _ WatchOptions, _ func(devices.Change)) error {
	<-ctx.Done()
	return nil
}
