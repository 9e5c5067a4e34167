package cluster

import "github.com/musterd/muster/resource"

// Amounts is what decides cheaply that there cannot be room: no state of a host
// has room for a request of more than is free of any of these.
type Amounts struct {
	CPU    resource.Millicores
	Memory resource.Bytes
	GPU    resource.Milli // of healthy devices
}

// Least is the least that a member of a request takes; a core has at least one
// thread.
func Least(r *resource.Request) Amounts {
	return Amounts{r.CPU + resource.Millicores(r.Cores)*resource.WholeCPU, r.Memory, r.GPUMilli()}
}

// FreeAmounts are the amounts that are free on a node.
func (n *Node) FreeAmounts() Amounts { return Amounts{n.FreeCPU, n.FreeMemory, n.FreeGPU} }

// Plus adds both amounts.
func (a Amounts) Plus(b Amounts) Amounts {
	return Amounts{a.CPU + b.CPU, a.Memory + b.Memory, a.GPU + b.GPU}
}

// Covers reports whether each amount is at least that of b.
func (a Amounts) Covers(b Amounts) bool {
	return a.CPU >= b.CPU && a.Memory >= b.Memory && a.GPU >= b.GPU
}
