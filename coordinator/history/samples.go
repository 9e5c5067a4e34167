package history

import (
	"time"

	"github.com/musterd/muster/resource"
)

// Heartbeat is a sample of a node, at most one a minute and coordinator. Its key is
// (Node, At).
// Whoever hears the node writes it, best effort, outside batches and positions.
type Heartbeat struct {
	Node resource.NodeID
	At   time.Time
	// A nil is what the node does not measure.
	CPUMillicores, MemoryBytes, DiskBytes        *int64
	NetworkReceivedBytes, NetworkSentBytes       *int64 // totals since the boot
	MembersRunning, MembersPending, WorkRunning  *int64
	OOMKills                                     *int64 // total since the boot
	LoadAverageOneMinute, LoadAverageFiveMinutes *float64
	// GPUUtilizationPercent has the devices whose use the node measures, in the node's
	// order; NaN is a device whose driver does not report a percentage.
	GPUUtilizationPercent []float64
}

// QuotaUsage is the use of one limit of a quota in the interval that ends At. Its key is
// (Tenant, Namespace, Name, Slot, At). It is derived from slices and may be written anew.
type QuotaUsage struct {
	Namespace, Name string // "" are those of a whole tenant
	Tenant          resource.TenantID
	Slot            resource.Name
	At              time.Time
	Used, Peak      int64 // base units: at At, and the greatest of the interval
	PeakAt          time.Time
	Hard            int64 // base units; resource.Unlimited is no limit
}
