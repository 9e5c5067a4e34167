package cli

import (
	"strconv"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// useTable lists the use that was measured of the members of a job. A value that nobody
// has measured is left out.
func useTable(members []api.JobMember) *table {
	t := newTable("NAME", "CPU", "MEMORY", "PEAK MEMORY", "OOM KILLS", "GPU TIME", "PEAK GPU MEMORY")
	for _, m := range members {
		if m.Use != nil {
			t.add(append([]string{m.Name}, useCells(m.Use)...)...)
		}
	}
	return t
}

// useCells are the cells of a use: CPU, memory now, its peak, kills, and of all devices
// together time and peak memory. A member that has ended has no memory now.
func useCells(u *api.MemberUse) []string {
	bytes := func(n int64) string { return humanAmount(resource.Memory, strconv.FormatInt(n, 10)) }
	cells := []string{duration(u.CPUMillis), "", bytes(u.PeakMemoryBytes), "", "", ""}
	if u.MemoryBytes > 0 {
		cells[1] = bytes(u.MemoryBytes)
	}
	if u.OOMKills != nil {
		cells[3] = strconv.FormatInt(*u.OOMKills, 10)
	}
	var busy, peak int64
	for _, d := range u.Devices {
		busy, peak = busy+d.BusyMillis, peak+d.PeakMemoryBytes
	}
	if len(u.Devices) > 0 {
		cells[4], cells[5] = duration(busy), bytes(peak)
	}
	return cells
}

// duration shows milliseconds with at most one digit behind the point.
func duration(millis int64) string {
	d := time.Duration(millis) * time.Millisecond
	if d >= time.Second {
		d = d.Round(100 * time.Millisecond)
	}
	return d.String()
}
