package deviceplugin

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/fit"
)

// prefer chooses n of the available units, the required ones among them. Of GPUs the
// choice is that of package fit: the best links, then the fewest NUMA nodes, then the
// least harm to what remains. Of shares the choice spreads over the devices with the
// most available shares. MIG instances are taken by identifier.
func prefer(host *fit.Host, available, required []string, n int) ([]string, error) {
	for _, id := range required {
		if !slices.Contains(available, id) {
			return nil, fmt.Errorf("unit %s must be included and is not available", id)
		}
	}
	if n < len(required) || n > len(available) {
		return nil, fmt.Errorf("%d units are wanted of %d available ones, with %d that must be included", n, len(available), len(required))
	}
	chosen := slices.Clone(required)
	if n == len(chosen) {
		return chosen, nil
	}
	if list, ok := fitted(host, available, required, n); ok {
		return list, nil
	}
	return append(chosen, spreadOut(available, required, n-len(chosen))...), nil
}

// fitted is the choice of package fit, ok where all available units are whole GPUs of
// the host.
func fitted(host *fit.Host, available, required []string, n int) (list []string, ok bool) {
	inventory := host.Inventory().Devices
	index := map[string]int{}
	for _, d := range inventory {
		index[d.UUID] = d.Index
	}
	of := func(ids []string) (at []int, ok bool) {
		for _, id := range ids {
			i, known := index[id]
			if !known {
				return nil, false
			}
			at = append(at, i)
		}
		return at, true
	}
	among, ok := of(available)
	if !ok {
		return nil, false
	}
	with, _ := of(required) // they are among the available ones
	best, ok := host.Around(among, with, n)
	for _, i := range best {
		list = append(list, inventory[i].UUID)
	}
	return list, ok
}

// spreadOut chooses n units of those that are not required: each time one of the device
// with the most units left, the lowest identifier first.
func spreadOut(available, required []string, n int) []string {
	left := map[string][]string{}
	for _, id := range slices.Sorted(slices.Values(available)) {
		if !slices.Contains(required, id) {
			left[deviceOf(id)] = append(left[deviceOf(id)], id)
		}
	}
	var list []string
	for range n {
		best := ""
		for uuid, ids := range left {
			if len(ids) > 0 && (best == "" || cmp.Or(cmp.Compare(len(left[best]), len(ids)), cmp.Compare(uuid, best)) < 0) {
				best = uuid
			}
		}
		list = append(list, left[best][0])
		left[best] = left[best][1:]
	}
	return list
}
