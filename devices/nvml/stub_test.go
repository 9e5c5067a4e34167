//go:build !cgo || !linux

package nvml_test

import (
	"errors"
	"testing"
	"time"

	"github.com/musterd/muster/devices/nvml"
)

func TestAProgramWithoutCgoHasNoDriver(t *testing.T) {
	driver := nvml.NewDriver("", nvml.WithNUMANode(func(string) (int, bool) { return 0, true }))
	if _, err := driver.Discover(t.Context(), time.Second); !errors.Is(err, nvml.ErrNoDriver) {
		t.Errorf("Discover: %v, want ErrNoDriver", err)
	}
}
