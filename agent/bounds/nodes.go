package bounds

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// This file finds the device files of granted GPUs as NVIDIA's driver names them: the
// driver lists the minor numbers of GPUs and of the capabilities of MIG instances in /proc.

// commonNodes are the files that every user of the driver opens, as far as the host has
// them.
var commonNodes = []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}

// ErrUnknownNode is wrapped where the file of a granted GPU cannot be found.
var ErrUnknownNode = errors.New("the device file is not known")

// DeviceNodes are the files of an assignment's GPUs and MIG instances, and those that
// match extra, a list of patterns of path.Match. host is the root of the host. A member
// of MIG instances gets the capabilities of all instances of its GPUs: the driver's
// lists do not name the instances by UUID. The error wraps ErrUnknownNode.
func DeviceNodes(host fs.FS, a resource.Assignment, inventory *devices.Inventory, extra []string) ([]string, error) {
	nodes := []string{}
	instances := map[int]bool{} // by position: the GPU's MIG instances are used
	for _, g := range a.GPUs {
		instances[g.Index] = false
	}
	for _, g := range a.MIG {
		instances[g.GPU] = true
	}
	for at, mig := range instances {
		if at < 0 || at >= len(inventory.Devices) {
			return nil, fmt.Errorf("GPU %d of %d: %w", at, len(inventory.Devices), ErrUnknownNode)
		}
		d := &inventory.Devices[at]
		minor, err := minorOf(host, d)
		if err != nil {
			return nil, fmt.Errorf("GPU %s: %w: %w", d.UUID, ErrUnknownNode, err)
		}
		nodes = append(nodes, "/dev/nvidia"+strconv.Itoa(minor))
		if !mig {
			continue
		}
		capabilities, err := capabilitiesOf(host, minor)
		if err != nil {
			return nil, fmt.Errorf("MIG instances of GPU %s: %w: %w", d.UUID, ErrUnknownNode, err)
		}
		nodes = append(nodes, capabilities...)
	}
	if len(instances) > 0 {
		nodes = append(nodes, commonNodes...)
	}
	for _, pattern := range extra {
		found, err := fs.Glob(host, strings.TrimPrefix(pattern, "/"))
		if err != nil {
			return nil, fmt.Errorf("devices %q: %w", pattern, err)
		}
		for _, name := range found {
			nodes = append(nodes, "/"+name)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}

// minorOf reads the minor number of a GPU from the driver's list, by its PCI address.
func minorOf(host fs.FS, d *devices.Device) (int, error) {
	name := path.Join("proc/driver/nvidia/gpus", strings.ToLower(d.PCIBusID), "information")
	return readField(host, name, "Device Minor:")
}

// capabilitiesOf are the files of the MIG instances of a GPU.
func capabilitiesOf(host fs.FS, minor int) ([]string, error) {
	const folder = "proc/driver/nvidia/capabilities"
	var nodes []string
	at := path.Join(folder, "gpu"+strconv.Itoa(minor), "mig")
	for _, pattern := range []string{"gi*/access", "gi*/ci*/access"} {
		files, err := fs.Glob(host, path.Join(at, pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			number, err := readField(host, name, "DeviceFileMinor:")
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, "/dev/nvidia-caps/nvidia-cap"+strconv.Itoa(number))
		}
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("/%s has none", at)
	}
	return nodes, nil
}

// maxMinor bounds the minor number of a device, as the kernel does.
const maxMinor = 1<<20 - 1

// readField reads the number after a word of a small file.
func readField(host fs.FS, name, field string) (int, error) {
	data, err := fs.ReadFile(host, name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), field); ok {
			n, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil || n < 0 || n > maxMinor {
				return 0, fmt.Errorf("/%s: %s %q is no minor number", name, field, strings.TrimSpace(text))
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("/%s has no line %q", name, field)
}
