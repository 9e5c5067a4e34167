package fakehost

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
)

// NVMLScript returns the machine's GPUs as the host nodeName has them, in the
// language of the fake NVML library (test/nvml/README.md). Discovery through
// that library finds the devices of the profile's Inventory.
func NVMLScript(p fake.Profile, nodeName string) []byte {
	return script(p, nodeName, func(int) bool { return true }, func(*bytes.Buffer, int) {})
}

// script is NVMLScript with the present GPUs alone, and with the lines of say
// about each.
func script(p fake.Profile, nodeName string, present func(gpu int) bool, say func(out *bytes.Buffer, gpu int)) []byte {
	var out bytes.Buffer
	m := p.Machine
	fmt.Fprintf(&out, "# profile %s\ndriver %s\n", m.Name, m.Driver)
	all := p.Inventory(nodeName).Devices
	for i, g := range m.GPUs {
		if !present(i) {
			continue
		}
		fmt.Fprintf(&out, "gpu %s\n  uuid %s\n  name %s\n  memory %d\n  numa %d\n",
			g.PCIBusID, all[i].UUID, g.Model, g.Memory.Bytes, g.NUMANode)
		if cluster, number, given := strings.Cut(g.Clique, "."); given {
			fmt.Fprintf(&out, "  fabric %s %s\n", cluster, number)
		}
		if m.NVLinks.Switched > 0 {
			fmt.Fprintf(&out, "  nvlink switch %d\n", m.NVLinks.Switched)
		} else {
			for j, n := range p.NVLinks[i] {
				if n > 0 && present(j) {
					fmt.Fprintf(&out, "  nvlink %s %d\n", m.GPUs[j].PCIBusID, n)
				}
			}
		}
		scriptMIG(&out, g, all[i].MIG)
		say(&out, i)
	}
	for i := range m.GPUs {
		for j := range i {
			if present(i) && present(j) {
				fmt.Fprintf(&out, "ancestor %s %s %d\n", m.GPUs[j].PCIBusID, m.GPUs[i].PCIBusID, p.Relations[i][j])
			}
		}
	}
	return out.Bytes()
}

// scriptMIG adds the mode and the instances of a card with MIG.
func scriptMIG(out *bytes.Buffer, g fake.GPU, state devices.MIG) {
	switch {
	case g.MIG == nil:
		return
	case !state.Enabled:
		fmt.Fprintf(out, "  mig off\n")
		return
	}
	fmt.Fprintf(out, "  mig on\n")
	for _, instance := range state.Instances {
		gpuSlices, computeSlices, err := fake.MIGSlices(instance.Profile)
		if err != nil {
			panic(fmt.Sprintf("fakehost: a validated profile holds %v", err))
		}
		fmt.Fprintf(out, "  instance %s %s %d %d %d\n", instance.UUID, instance.Profile, instance.Memory>>20, gpuSlices, computeSlices)
	}
}
