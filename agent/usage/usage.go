// Package usage measures a host: its present use of processors, memory, disk and network,
// the stalls of its memory (ReadMemory, for package pressure), and the size of the file
// system that the agent hands out (Storage). It reads the counters through gopsutil and
// the kernel's files, and decides nothing. The present use is information for people and
// never changes the free capacity.
package usage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/disk"
	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"
	"github.com/shirou/gopsutil/v3/net"

	"github.com/musterd/muster/resource"
)

// Usage is one measurement. A part that could not be measured is 0, and the
// error that came with it names it.
type Usage struct {
	// CPU is the use of all CPUs together since the measurement before.
	CPU           resource.Millicores
	Memory        resource.Bytes // in use, not counting caches
	Load1, Load5  float64
	Disk          resource.Bytes // in use on the file system of the sampler's path
	NetworkRX     resource.Bytes // received since boot, loopback not counted
	NetworkTX     resource.Bytes
	DiskAvailable resource.Bytes // the space that the agent may still use there
	// OOMKills are the processes that the kernel has killed for lack of memory since the
	// boot; UnknownKills where the kernel does not count them (before Linux 4.13).
	OOMKills int64
}

// UnknownKills stands for a number of kills that the host does not count.
const UnknownKills = -1

// Sampler measures one host. It may be used by several goroutines.
type Sampler struct {
	path string

	mu         sync.Mutex
	busy, idle float64 // CPU seconds at the measurement before
}

// NewSampler returns a sampler that counts the disk of the file system that
// holds path.
func NewSampler(path string) *Sampler { return &Sampler{path: path} }

// Sample measures once; it may block for as long as the kernel takes. The
// error joins one entry for each part that could not be measured.
func (s *Sampler) Sample(ctx context.Context) (Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var u Usage
	var errs []error
	note := func(what string, err error) bool {
		if err != nil {
			errs = append(errs, fmt.Errorf("usage: measure %s: %w", what, err))
		}
		return err == nil
	}
	if times, err := cpu.TimesWithContext(ctx, false); note("cpu", err) && len(times) > 0 {
		u.CPU = s.millicores(times[0])
	}
	if m, err := mem.VirtualMemoryWithContext(ctx); note("memory", err) {
		u.Memory = resource.Bytes(m.Used)
	}
	if l, err := load.AvgWithContext(ctx); note("load", err) {
		u.Load1, u.Load5 = l.Load1, l.Load5
	}
	if d, err := disk.UsageWithContext(ctx, s.path); note("disk "+s.path, err) {
		u.Disk, u.DiskAvailable = resource.Bytes(d.Used), resource.Bytes(d.Free)
	}
	if cards, err := net.IOCountersWithContext(ctx, true); note("network", err) {
		for _, c := range cards {
			if c.Name != "lo" {
				u.NetworkRX += resource.Bytes(c.BytesRecv)
				u.NetworkTX += resource.Bytes(c.BytesSent)
			}
		}
	}
	kills, err := OOMKills(os.DirFS("/"))
	note("kills for lack of memory", err)
	u.OOMKills = kills
	return u, errors.Join(errs...)
}

// millicores turns the growth of the CPU counters into millicores: the busy
// part of the time that passed on all CPUs. The first call measures since boot.
func (s *Sampler) millicores(t cpu.TimesStat) resource.Millicores {
	idle := t.Idle + t.Iowait
	busy := t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal
	dBusy, dIdle := busy-s.busy, idle-s.idle
	s.busy, s.idle = busy, idle
	if dBusy <= 0 || dBusy+dIdle <= 0 {
		return 0
	}
	count, err := cpu.Counts(true)
	if err != nil || count < 1 {
		return 0
	}
	return resource.Millicores(dBusy / (dBusy + dIdle) * float64(count) * float64(resource.WholeCPU))
}
