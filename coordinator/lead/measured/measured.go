// Package measured converts the measured use of members to records and back, and
// bounds the devices in a record. When a use is recorded is decided elsewhere.
package measured

import (
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
)

// mostDevices bounds the devices in the exits of a unit: a record has a bound, and a
// host may report any number. Where the exits have more devices, each member has a sum
// over its devices, under the UUID allDevices.
const (
	mostDevices = 1024
	allDevices  = "all"
)

// FoldDevices keeps the devices of a unit's exits within their bound.
func FoldDevices(exits []record.Exit) {
	rows := 0
	for _, e := range exits {
		if e.Use != nil {
			rows += len(e.Use.Devices)
		}
	}
	if rows <= mostDevices {
		return
	}
	for _, e := range exits {
		if e.Use == nil || len(e.Use.Devices) == 0 {
			continue
		}
		sum := record.WorkDevice{UUID: allDevices}
		for _, d := range e.Use.Devices {
			sum.BusyMillis += d.BusyMillis
			sum.MeasuredMillis += d.MeasuredMillis
			sum.Memory += d.Memory
			sum.PeakMemory += d.PeakMemory
		}
		e.Use.Devices = []record.WorkDevice{sum}
	}
}

// UseOf converts a measured use for a record; nil for none.
func UseOf(u *grant.WorkUse) *record.Use {
	if u == nil {
		return nil
	}
	r := &record.Use{CPUMillis: u.CPU.Milliseconds(), Memory: u.Memory, PeakMemory: u.PeakMemory}
	if u.OOMKills != grant.UnknownKills {
		kills := int64(u.OOMKills)
		r.OOMKills = &kills
	}
	for _, d := range u.Devices {
		r.Devices = append(r.Devices, record.WorkDevice{UUID: d.UUID, BusyMillis: d.Busy.Milliseconds(), MeasuredMillis: d.Measured.Milliseconds(), Memory: d.Memory, PeakMemory: d.PeakMemory})
	}
	return r
}

// UseFrom converts the measured use of a record.
func UseFrom(r *record.Use) *grant.WorkUse {
	if r == nil {
		return nil
	}
	u := &grant.WorkUse{CPU: time.Duration(r.CPUMillis) * time.Millisecond, Memory: r.Memory, PeakMemory: r.PeakMemory, OOMKills: grant.UnknownKills}
	if r.OOMKills != nil {
		u.OOMKills = int(*r.OOMKills)
	}
	for _, d := range r.Devices {
		u.Devices = append(u.Devices, grant.DeviceUse{UUID: d.UUID, Busy: time.Duration(d.BusyMillis) * time.Millisecond, Measured: time.Duration(d.MeasuredMillis) * time.Millisecond, Memory: d.Memory, PeakMemory: d.PeakMemory})
	}
	return u
}
