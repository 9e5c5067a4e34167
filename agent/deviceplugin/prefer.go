package deviceplugin

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
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
	choose := func(from []string, n int) ([]string, bool) {
		free := host.NewFree()
		free.Unhealthy = 0
		for i := range inventory {
			if !slices.Contains(from, inventory[i].UUID) {
				free.Unhealthy |= 1 << i
			}
		}
		var a resource.Assignment
		if !host.Assign(free, resource.Request{GPUs: n}, &a) {
			return nil, false
		}
		var list []string
		for _, g := range a.GPUs {
			list = append(list, g.UUID)
		}
		return list, true
	}
	for _, id := range available {
		if _, known := index[id]; !known {
			return nil, false
		}
	}
	if list, ok = choose(available, n); !ok || containsAll(list, required) {
		return list, ok
	}
	// The kubelet names required units where a container of the pod has them already.
	// Every unit beside them is the one that package fit would add to them.
	list = slices.Clone(required)
	for len(list) < n {
		best, found := "", -1
		for _, id := range available {
			if slices.Contains(list, id) {
				continue
			}
			weight := 0
			for _, other := range list {
				weight += 1 + int(host.Inventory().Link(index[id], index[other]))
			}
			if weight > found {
				best, found = id, weight
			}
		}
		list = append(list, best)
	}
	return list, true
}

func containsAll(list, part []string) bool {
	return !slices.ContainsFunc(part, func(id string) bool { return !slices.Contains(list, id) })
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
