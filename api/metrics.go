package api

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/resource"
)

// ClusterUtilization is the cluster in numbers. The leader answers, with numbers
// that are at most 1 s old.
type ClusterUtilization struct {
	// Timestamp is the time of the numbers.
	Timestamp string `json:"timestamp" format:"time" example:"2026-03-01T12:00:00Z"`
	// Cluster is the hardware and its use.
	Cluster ClusterNumbers `json:"cluster"`
	// Scheduling is the work of the leader.
	Scheduling SchedulingNumbers `json:"scheduling"`
}

// ClusterNumbers are the hardware of a cluster and its use.
type ClusterNumbers struct {
	// Nodes counts the nodes.
	Nodes NodeNumbers `json:"nodes"`
	// CPU is the amount of CPUs, in thousandths of a CPU.
	CPU AmountNumbers `json:"cpu"`
	// Memory is the amount of main memory.
	Memory AmountNumbers `json:"memory"`
	// GPU is the number of GPUs. Shares of a GPU are parts of 1.
	GPU DeviceNumbers `json:"gpu"`
}

// NodeNumbers counts nodes. Each node is ready, cordoned or not ready.
type NodeNumbers struct {
	// Total is the number of all nodes.
	Total int `json:"total" unit:"nodes" example:"64"`
	// Ready is the number of nodes that take new work.
	Ready int `json:"ready" unit:"nodes" example:"61"`
	// NotReady is the number of nodes that take no new work, for another reason than
	// a cordon.
	NotReady int `json:"notReady" unit:"nodes" example:"1"`
	// Cordoned is the number of nodes that a cordon alone keeps from new work.
	Cordoned int `json:"cordoned" unit:"nodes" example:"2"`
}

// AmountNumbers are the amounts of one resource in the whole cluster.
type AmountNumbers struct {
	// Capacity is all that the nodes have.
	Capacity string `json:"capacity" format:"quantity" example:"8192000m"`
	// Allocatable is the part of the capacity that Muster hands out.
	Allocatable string `json:"allocatable" format:"quantity" example:"8064000m"`
	// Requested is the amount that allocations hold.
	Requested string `json:"requested" format:"quantity" example:"6000000m"`
	// Used is the amount in use, measured on the hosts. A host whose agent has not
	// reported to the present leader counts as 0.
	Used string `json:"used" format:"quantity" example:"4032000m"`
	// Utilization is used divided by allocatable; 0 where nothing is allocatable.
	Utilization float64 `json:"utilization" range:"0.." example:"0.5"`
}

// DeviceNumbers are the GPUs of the whole cluster.
type DeviceNumbers struct {
	// Capacity is the number of all GPUs.
	Capacity float64 `json:"capacity" unit:"devices" example:"512"`
	// Allocatable is the number of GPUs that Muster hands out.
	Allocatable float64 `json:"allocatable" unit:"devices" example:"512"`
	// Requested is the number of GPUs that allocations hold; a share counts as its
	// part, a MIG instance as 0.
	Requested float64 `json:"requested" unit:"devices" example:"480.5"`
	// Used is the number of GPUs on which something ran at the last report of their
	// host: the driver measured computing, or more than 64 MiB of device memory in use.
	Used float64 `json:"used" unit:"devices" example:"384"`
	// Utilization is used divided by allocatable; 0 where nothing is allocatable.
	Utilization float64 `json:"utilization" range:"0.." example:"0.75"`
}

// SchedulingNumbers are the work of the leader. Latencies are of the time since
// since.
type SchedulingNumbers struct {
	// PendingAllocations is the number of allocations that wait for a place.
	PendingAllocations int `json:"pendingAllocations" unit:"allocations" example:"142"`
	// SchedulingRate is the number of allocations that began to run in the last
	// minute, per second.
	SchedulingRate string `json:"schedulingRate" example:"487/sec"`
	// AvgSchedulingLatencyMs is the mean time from the acceptance of a unit that had
	// room at once to its commit.
	AvgSchedulingLatencyMs int64 `json:"avgSchedulingLatencyMs" unit:"ms" example:"12"`
	// P99SchedulingLatencyMs is the time that 99 of 100 such units did not exceed, at
	// most 19 % too high.
	P99SchedulingLatencyMs int64 `json:"p99SchedulingLatencyMs" unit:"ms" example:"85"`
	// PreemptionsLast1h is the number of units that were evicted in the last hour, for
	// other units or by a request for a preemption.
	PreemptionsLast1h int64 `json:"preemptionsLast1h" unit:"units" example:"23"`
	// Since is the time when the leader's term began. Nothing before it counts.
	Since string `json:"since" format:"time" example:"2026-03-01T09:00:00Z"`
}

// QueueUsage is the queues with their depths and their waits. A tenant sees the
// queues in which its own work waits, and its own work alone in depth and
// oldestItem.
type QueueUsage struct {
	// Queues are the queues in which units wait, or have waited since since, by name.
	Queues []QueueNumbers `json:"queues"`
	// Since is the time when the leader's term began. Waits that ended before it do
	// not count.
	Since string `json:"since" format:"time" example:"2026-03-01T09:00:00Z"`
}

// QueueNumbers are one queue.
type QueueNumbers struct {
	// Name is the name of the queue.
	Name string `json:"name" example:"gpu-training"`
	// Depth is the number of units that wait in the queue.
	Depth int `json:"depth" unit:"units" example:"23"`
	// OldestItem is the time when the unit that waits longest was accepted; absent
	// where nothing waits.
	OldestItem string `json:"oldestItem,omitempty" format:"time" example:"2026-03-01T11:45:00Z"`
	// AvgWaitTime is the mean time from acceptance to commit, of the units that began
	// to run.
	AvgWaitTime string `json:"avgWaitTime" format:"duration" example:"300s"`
	// P99WaitTime is the time that 99 of 100 such units did not exceed, at most 19 %
	// too high.
	P99WaitTime string `json:"p99WaitTime" format:"duration" example:"1800s"`
}

// TenantUsage is the use of the cluster by one tenant: the amounts that quota
// charges for it.
type TenantUsage struct {
	// Tenant is the name of the tenant.
	Tenant string `json:"tenant" example:"ml-team"`
	// Period is the time that peaks and averages are about, as it was asked for.
	Period string `json:"period" format:"duration" example:"24h"`
	// Since is the beginning of the time that peaks and averages are about: later than
	// the period's where the leader's term began later.
	Since string `json:"since" format:"time" example:"2026-03-01T09:00:00Z"`
	// Resources are the amounts, by resource.
	Resources map[resource.Name]TenantResource `json:"resources"`
	// Cost is the price of the amounts that the tenant's work held in the period; absent
	// where no history is kept, or no price list.
	Cost *TenantCost `json:"cost,omitempty"`
}

// TenantCost is the price of what a tenant's work held, by the price list of the
// coordinators.
type TenantCost struct {
	// Period is the time that the cost is about, as it was asked for.
	Period string `json:"period" format:"duration" example:"24h"`
	// Total is the sum, in the currency of the price list.
	Total string `json:"total" example:"$12,450.00"`
	// Breakdown is the cost of cpu, memory, gpu, storage, and of each other resource by
	// its name. Each cost is rounded by itself.
	Breakdown map[string]string `json:"breakdown" example:"gpu: $6,800.00"`
}

// TenantResource is the use of one resource by one tenant.
type TenantResource struct {
	// Quota is the sum of the tightest hard limits of the tenant's namespaces; absent
	// where a namespace has none. Quota trees do not count.
	Quota string `json:"quota,omitempty" format:"quantity" example:"10000"`
	// CurrentUsage is the amount that is charged now.
	CurrentUsage string `json:"currentUsage" format:"quantity" example:"6500"`
	// PeakUsage is the greatest amount of the period; absent where the leader keeps no
	// history of the tenant, and of a GPU model where the answer is from the history.
	PeakUsage string `json:"peakUsage,omitempty" format:"quantity" example:"8200"`
	// AvgUsage is the average amount of the period; absent as peakUsage is.
	AvgUsage string `json:"avgUsage,omitempty" format:"quantity" example:"5800"`
	// UtilizationOfQuota is currentUsage divided by quota; absent without a quota, and
	// where the quota is 0.
	UtilizationOfQuota *float64 `json:"utilizationOfQuota,omitempty" range:"0.." example:"0.65"`
}

// Ratio is a part of a whole, to four decimals; 0 of nothing.
func Ratio(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(part/whole*1e4) / 1e4
}

// The bounds of the period of a tenant's usage.
const (
	DefaultUsagePeriod = 24 * time.Hour
	LeastUsagePeriod   = time.Minute
	GreatestPeriod     = 366 * 24 * time.Hour
)

// ParsePeriod reads the period of a tenant's usage: a duration, or days as in 30d; "" is
// the default. Where no history is kept, the answer is about the leader's term alone.
func ParsePeriod(text string) (time.Duration, *Status) {
	if text == "" {
		return DefaultUsagePeriod, nil
	}
	d, err := time.ParseDuration(text)
	if days, found := strings.CutSuffix(text, "d"); found {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(min(max(n, 0), 10_000)) * 24 * time.Hour
	}
	switch {
	case err != nil:
		return 0, Errorf(http.StatusBadRequest, "query parameter period=%q: want a duration in 1m..366d, e.g. 24h or 30d", clip(text))
	case d < LeastUsagePeriod || d > GreatestPeriod:
		return 0, invalid("period", "%s is outside 1m..366d", clip(text))
	}
	return d, nil
}

// FormatMoney prints hundredths of a cent as an amount of money with two digits behind
// the point, rounded half up: "$12,450.00", or "12,450.00 EUR" in another currency than
// USD.
func FormatMoney(currency string, hundredths int64) string {
	cents := (max(hundredths, 0) + 50) / 100
	whole := strconv.FormatInt(cents/100, 10)
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	text := fmt.Sprintf("%s.%02d", whole, cents%100)
	if currency == "USD" {
		return "$" + text
	}
	return strings.TrimSpace(text + " " + currency)
}
