package lead

import (
	"cmp"
	"slices"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// This file chooses the devices that are kept from new work because an operator has
// lowered the allocatable amount of GPUs. A device that is granted stays granted. CPUs and
// memory are withheld as amounts: see fit.Withheld.

// withheldAmounts is the part of the node's CPUs and memory that an operator withholds.
func (n *node) withheldAmounts() fit.Withheld {
	if n.view.Free == nil {
		return fit.Withheld{}
	}
	return n.view.Free.Withheld
}

// withholding chooses as many devices as the limit is below the number of the devices
// that are handed out whole, and returns their bits. The choice is a function of the
// limit, the health, the pool and the free amounts, but for one thing: a free device that is
// withheld stays so.
//
// Devices that are used are chosen only where too few are free. They take no new work
// until another device becomes free, which then is chosen in their place.
func (n *node) withholding() (chosen uint64) {
	limit, limited := n.spec.Lowered[resource.GPU]
	if !limited {
		return 0
	}
	var left []int
	for i := range n.host.Inventory.Devices {
		if !n.host.Inventory.Devices[i].MIG.Enabled {
			left = append(left, i)
		}
	}
	for range len(left) - int(limit/int64(resource.WholeDevice)) {
		at := n.leastUseful(left)
		chosen |= 1 << at
		left = slices.DeleteFunc(left, func(i int) bool { return i == at })
	}
	return chosen
}

// leastUseful is the device to withhold next of those that are left: a device of the
// kubelet's pool, which takes no new work anyway, then an unhealthy device, then a free
// one, then the device with the greatest free part. Among unhealthy
// devices, and among free ones, a device that was withheld before comes first. Among
// equal ones comes the device with the weakest links to the others that are left, then
// the last one.
func (n *node) leastUseful(left []int) int {
	free, sick := n.view.Free.GPU, n.unhealthy()
	rank := func(i int) int {
		withheld := n.withheld&(1<<i) != 0
		switch {
		case n.isPooled(n.host.Inventory.Devices[i].UUID):
			return 0
		case sick&(1<<i) != 0 && withheld:
			return 1
		case sick&(1<<i) != 0:
			return 2
		case free[i] == resource.WholeDevice && withheld:
			return 3
		case free[i] == resource.WholeDevice:
			return 4
		}
		return 5
	}
	links := func(i int) (sum int) {
		for _, j := range left {
			sum += int(n.host.Inventory.Link(i, j)) // 0 to itself
		}
		return sum
	}
	return slices.MinFunc(left, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(free[b], free[a]), cmp.Compare(links(a), links(b)), cmp.Compare(b, a))
	})
}
