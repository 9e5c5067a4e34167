package rpc

import (
	"math"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/devices"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
)

// sampleOf is a heartbeat as the history keeps it: the host's own claims, with CPU and
// memory cut to its capacity. Memory, disk and network are never 0 on a host that
// measures them: there 0 is unknown.
func sampleOf(node resource.NodeID, beat *schedulerv1.HeartbeatRequest, m measured, now time.Time) history.Heartbeat {
	h := history.Heartbeat{Node: node, At: now}
	var running, pending int64
	for _, p := range beat.GetPodStatuses() {
		switch p.GetPhase() {
		case "Running":
			running++
		case "Pending":
			pending++
		}
	}
	h.MembersRunning, h.MembersPending = &running, &pending
	for _, use := range m.devices {
		percent := math.NaN()
		if use.Percent != devices.UnknownUse {
			percent = float64(use.Percent)
		}
		h.GPUUtilizationPercent = append(h.GPUUtilizationPercent, percent)
	}
	u := beat.GetCurrentUsage()
	if u == nil {
		return h
	}
	if m.usage != nil {
		cpu := m.usage[resource.CPU]
		h.CPUMillicores, h.MemoryBytes = &cpu, above0(m.usage[resource.Memory])
	}
	h.DiskBytes, h.NetworkReceivedBytes, h.NetworkSentBytes = above0(u.GetDiskBytes()), above0(u.GetNetworkRxBytes()), above0(u.GetNetworkTxBytes())
	one, five := u.GetLoad_1M(), u.GetLoad_5M()
	h.LoadAverageOneMinute, h.LoadAverageFiveMinutes = &one, &five
	if u.ContainersRunning != nil {
		n := int64(u.GetContainersRunning())
		h.WorkRunning = &n
	}
	if u.OomKills != nil {
		h.OOMKills = above(-1, u.GetOomKills())
	}
	return h
}

func above0(n int64) *int64 { return above(0, n) }

// above is a number beyond a bound, else nil.
func above(bound, n int64) *int64 {
	if n <= bound {
		return nil
	}
	return &n
}
