package monitor

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/resource"
)

// Utilization is the answer to GET /api/v1/metrics/cluster/utilization.
func Utilization(f *lead.Figures) *api.ClusterUtilization {
	var capacity, allocatable, used, requested amounts
	o := &api.ClusterUtilization{Timestamp: post.Stamp(f.At)}
	nodes := &o.Cluster.Nodes
	for i := range f.Nodes {
		n := &f.Nodes[i]
		nodes.Total++
		switch {
		case n.Conditions.Ready:
			nodes.Ready++
		case onlyCordoned(n.Conditions):
			nodes.Cordoned++
		default:
			nodes.NotReady++
		}
		capacity.addVector(n.Capacity)
		allocatable.addVector(n.Allocatable)
		used.cpu, used.memory = used.cpu+n.Usage[resource.CPU], used.memory+n.Usage[resource.Memory]
		used.gpu += int64(n.Busy) * int64(resource.WholeDevice)
	}
	for _, a := range f.Allocated {
		requested.cpu, requested.memory, requested.gpu = requested.cpu+int64(a.CPU), requested.memory+int64(a.Memory), requested.gpu+int64(a.GPU)
	}
	c := &o.Cluster
	c.CPU = api.AmountNumbers{
		Capacity: milli(capacity.cpu), Allocatable: milli(allocatable.cpu), Requested: milli(requested.cpu), Used: milli(used.cpu),
		Utilization: api.Ratio(float64(used.cpu), float64(allocatable.cpu)),
	}
	c.Memory = api.AmountNumbers{
		Capacity: bytes(capacity.memory), Allocatable: bytes(allocatable.memory), Requested: bytes(requested.memory), Used: bytes(used.memory),
		Utilization: api.Ratio(float64(used.memory), float64(allocatable.memory)),
	}
	c.GPU = api.DeviceNumbers{
		Capacity: gpus(capacity.gpu), Allocatable: gpus(allocatable.gpu), Requested: gpus(requested.gpu), Used: gpus(used.gpu),
		Utilization: api.Ratio(float64(used.gpu), float64(allocatable.gpu)),
	}
	o.Scheduling = api.SchedulingNumbers{
		PendingAllocations: f.PendingMembers, SchedulingRate: rate(f.Scheduling.PerSecond), PreemptionsLast1h: f.Scheduling.Preemptions,
		AvgSchedulingLatencyMs: milliseconds(f.Scheduling.Mean), P99SchedulingLatencyMs: milliseconds(f.Scheduling.P99), Since: post.Stamp(f.Elected),
	}
	return o
}

// onlyCordoned reports whether a cordon alone keeps a node from new work.
func onlyCordoned(c lead.NodeConditions) bool {
	return c.Cordoned && !c.Banned && !c.Fenced && !c.Isolated && !c.Disconnected && !c.Unregistered && !c.Quarantined && !c.DiskFull
}

// amounts are sums over the cluster, in base units.
type amounts struct{ cpu, memory, gpu int64 }

func (a *amounts) addVector(v resource.Vector) {
	a.cpu, a.memory, a.gpu = a.cpu+v[resource.CPU], a.memory+v[resource.Memory], a.gpu+v[resource.GPU]
}

// milli is an amount of CPUs in the specification's form, always in thousandths.
func milli(amount int64) string { return strconv.FormatInt(amount, 10) + "m" }

func bytes(amount int64) string { return resource.FormatBytes(resource.Bytes(amount)) }

func gpus(amount int64) float64 { return resource.GPU.Measure(amount) }

func milliseconds(d time.Duration) int64 { return d.Round(time.Millisecond).Milliseconds() }

// rate is a number per second: whole from 10 on, else with one decimal where it
// has any.
func rate(perSecond float64) string {
	if perSecond >= 10 {
		perSecond = math.Round(perSecond)
	}
	return strconv.FormatFloat(math.Round(perSecond*10)/10, 'f', -1, 64) + "/sec"
}

// Queues is the answer to GET /api/v1/metrics/queues: all queues, or those in which
// work of one tenant waits.
func Queues(f *lead.Figures, tenant resource.TenantID, all bool) *api.QueueUsage {
	found := map[string]*api.QueueNumbers{}
	queue := func(name string) *api.QueueNumbers {
		if found[name] == nil {
			wait := f.Waits[name]
			found[name] = &api.QueueNumbers{Name: name, AvgWaitTime: seconds(wait.Mean), P99WaitTime: seconds(wait.P99)}
		}
		return found[name]
	}
	for kind, of := range f.Queues {
		if !all && kind.Tenant != tenant {
			continue
		}
		q := queue(kind.Queue)
		q.Depth += of.Units
		if q.OldestItem == "" || of.Oldest != "" && of.Oldest < q.OldestItem {
			q.OldestItem = of.Oldest
		}
	}
	if all {
		for name := range f.Waits {
			queue(name)
		}
	}
	o := &api.QueueUsage{Queues: []api.QueueNumbers{}, Since: post.Stamp(f.Elected)}
	for _, q := range found {
		o.Queues = append(o.Queues, *q)
	}
	slices.SortFunc(o.Queues, func(a, b api.QueueNumbers) int { return cmp.Compare(a.Name, b.Name) })
	return o
}

// seconds is a duration in the specification's form, in whole seconds from 10 s on
// and to the millisecond below.
func seconds(d time.Duration) string {
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	}
	return strconv.FormatFloat(float64(milliseconds(d))/1000, 'f', -1, 64) + "s"
}
