//go:build !cgo || !linux

package nvml_test

import (
	"errors"
	"testing"

	"github.com/musterd/muster/devices/nvml"
)

func TestAProgramWithoutCgoHasNoDriver(t *testing.T) {
	if _, err := nvml.Open("", nvml.WithNUMANode(func(string) (int, bool) { return 0, true })); !errors.Is(err, nvml.ErrNoDriver) {
		t.Errorf("Open: %v, want ErrNoDriver", err)
	}
}
