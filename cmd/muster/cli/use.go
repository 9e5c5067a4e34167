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
	t := newTable("NAME", "CPU", "PEAK MEMORY", "OOM KILLS", "GPU TIME", "PEAK GPU MEMORY")
	for _, m := range members {
		if m.Use != nil {
			t.add(append([]string{m.Name}, useCells(m.Use)...)...)
		}
	}
	return t
}

// useCells are the cells of a use: CPU, peak memory, kills, and of all devices together
// time and peak memory.
func useCells(u *api.MemberUse) []string {
	cells := []string{duration(u.CPUMillis), humanAmount(resource.Memory, strconv.FormatInt(u.PeakMemoryBytes, 10)), "", "", ""}
	if u.OOMKills != nil {
		cells[2] = strconv.FormatInt(*u.OOMKills, 10)
	}
	var busy, peak int64
	for _, d := range u.Devices {
		busy, peak = busy+d.BusyMillis, peak+d.PeakMemoryBytes
	}
	if len(u.Devices) > 0 {
		cells[3], cells[4] = duration(busy), humanAmount(resource.Memory, strconv.FormatInt(peak, 10))
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
