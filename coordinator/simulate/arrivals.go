package simulate

import (
	"fmt"
	"math/rand"

	"github.com/musterd/muster/resource"
)

// Arrivals draws which pods arrive, and in which order: the list is inflated by pods of
// itself, drawn with replacement, until the next one would exceed the percentage of the
// nodes' GPUs, or cut by random removal to the percentage. As in the published
// evaluation a pod of several GPUs counts as one when it is held against the target,
// so the list may end a little above it.
func Arrivals(nodes []Node, pods []Pod, percent int, seed int64) ([]Pod, error) {
	var capacity, sum int64
	for i := range nodes {
		capacity += int64(nodes[i].GPUs) * int64(resource.WholeDevice)
	}
	list := make([]Pod, len(pods), 2*len(pods))
	copy(list, pods)
	for i := range pods {
		sum += pods[i].gpu()
	}
	if capacity == 0 || sum == 0 {
		return nil, fmt.Errorf("the nodes have %d GPUs, and the pods ask for %d milli of GPUs: want both above 0", capacity/int64(resource.WholeDevice), sum)
	}
	lots := rand.New(rand.NewSource(seed))
	target := capacity / 100 * int64(percent)
	for sum > target && len(list) > 1 {
		at := lots.Intn(len(list))
		sum -= list[at].gpu()
		list[at] = list[len(list)-1]
		list = list[:len(list)-1]
	}
	for len(list) < MaxPods {
		p := pods[lots.Intn(len(pods))]
		if sum+min(p.gpu(), int64(resource.WholeDevice)) > target {
			break
		}
		sum += p.gpu()
		list = append(list, p)
	}
	lots.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list, nil
}
