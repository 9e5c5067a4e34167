package fake

import (
	"bytes"
	"fmt"
	"strings"
)

// NVMLScript returns the machine's GPUs as the host nodeName has them, in the
// language of the fake NVML library (test/nvml/README.md). Discovery through
// that library finds the devices that Inventory returns.
func (p Profile) NVMLScript(nodeName string) []byte {
	return p.script(nodeName, func(int) bool { return true }, func(*bytes.Buffer, int) {})
}

// script is NVMLScript with the GPUs that are present alone, and with the
// lines that say adds about each.
func (p Profile) script(nodeName string, present func(gpu int) bool, say func(out *bytes.Buffer, gpu int)) []byte {
	var out bytes.Buffer
	m := p.description
	fmt.Fprintf(&out, "# profile %s\ndriver %s\n", m.Name, m.Driver)
	for i, g := range m.GPUs {
		if !present(i) {
			continue
		}
		fmt.Fprintf(&out, "gpu %s\n  uuid %s\n  name %s\n  memory %d\n  numa %d\n",
			g.PCIBusID, gpuUUID(nodeName, i), g.Model, g.Memory.bytes, g.NUMANode)
		if cluster, number, given := strings.Cut(g.Clique, "."); given {
			fmt.Fprintf(&out, "  fabric %s %s\n", cluster, number)
		}
		if m.NVLinks.Switched > 0 {
			fmt.Fprintf(&out, "  nvlink switch %d\n", m.NVLinks.Switched)
		} else {
			for j, n := range p.nvlinks[i] {
				if n > 0 && present(j) {
					fmt.Fprintf(&out, "  nvlink %s %d\n", m.GPUs[j].PCIBusID, n)
				}
			}
		}
		g.scriptMIG(&out, nodeName, i)
		say(&out, i)
	}
	for i := range m.GPUs {
		for j := range i {
			if present(i) && present(j) {
				fmt.Fprintf(&out, "ancestor %s %s %d\n", m.GPUs[j].PCIBusID, m.GPUs[i].PCIBusID, p.relations[i][j])
			}
		}
	}
	return out.Bytes()
}

func (g gpu) scriptMIG(out *bytes.Buffer, nodeName string, index int) {
	switch {
	case g.MIG == nil:
		return
	case !g.MIG.Enabled:
		fmt.Fprintf(out, "  mig off\n")
		return
	}
	fmt.Fprintf(out, "  mig on\n")
	for i, instance := range g.MIG.Instances {
		gpuSlices, computeSlices, err := migSlices(instance.Profile)
		if err != nil {
			panic(fmt.Sprintf("fake: a validated profile holds %v", err))
		}
		fmt.Fprintf(out, "  instance %s %s %d %d %d\n",
			migUUID(nodeName, index, i), instance.Profile, instance.Memory.bytes/mebibyte, gpuSlices, computeSlices)
	}
}
