package shim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// This file measures the use of a member (D25). The shim writes down at the end the
// sums that the kernel has kept of all its children; the agent samples meanwhile, and
// keeps its own sums beside it, so a restart of the agent loses nothing.

// Use is the use of a member since its start. Sums and peaks never fall.
type Use struct {
	Version int `json:"version"`
	// CPUMillis is the time of processors, in milliseconds.
	CPUMillis int64 `json:"cpuMillis"`
	// MemoryBytes is the memory in use at the last sample, PeakMemoryBytes the most. By
	// cgroup the kernel has counted every moment; else the resident memory of all
	// processes is added up at each sample, and the greatest single process counts too.
	MemoryBytes     int64 `json:"memoryBytes"`
	PeakMemoryBytes int64 `json:"peakMemoryBytes"`
	// OOMKills are the processes that the kernel has killed because the member's cgroup
	// had no memory left; nil without a cgroup.
	OOMKills *int64 `json:"oomKills,omitempty"`
	// Devices are sorted by UUID.
	Devices []DeviceUse `json:"devices,omitempty"`
}

// DeviceUse is the use of one device or MIG instance by a member. A value that the
// driver does not report stays 0.
type DeviceUse struct {
	UUID string `json:"uuid"`
	// BusyMillis is the time during which the device computed, in milliseconds: the sum
	// of part times time.
	BusyMillis int64 `json:"busyMillis"`
	// MeasuredMillis is the time that BusyMillis is a part of, in milliseconds; 0 where an
	// older version has measured.
	MeasuredMillis  int64 `json:"measuredMillis,omitempty"`
	MemoryBytes     int64 `json:"memoryBytes"`
	PeakMemoryBytes int64 `json:"peakMemoryBytes"`
}

const (
	useFile      = "use"      // Use at the end, by the shim
	measuredFile = "measured" // Use so far, by the agent
	// maxDevices bounds Use.Devices, and maxUse the files of a Use, in bytes: a UUID has at
	// most 256, the numbers and names of a device at most 192.
	maxDevices = 1024
	maxUse     = 512 * maxDevices
)

// ParseUse reads what a shim or an agent has measured.
func ParseUse(data []byte) (Use, error) {
	u, err := decode[Use](data, maxUse)
	switch {
	case err != nil:
		return Use{}, fmt.Errorf("use: %w", err)
	case u.Version != version:
		return Use{}, fmt.Errorf("use: version %d, this program reads version %d", u.Version, version)
	case u.CPUMillis < 0 || u.MemoryBytes < 0 || u.PeakMemoryBytes < 0 || u.OOMKills != nil && *u.OOMKills < 0:
		return Use{}, fmt.Errorf("use: a value is negative: %s", bytes.TrimSpace(data[:min(len(data), 256)]))
	case len(u.Devices) > maxDevices:
		return Use{}, fmt.Errorf("use: %d devices, want at most %d", len(u.Devices), maxDevices)
	}
	for i, d := range u.Devices {
		if d.BusyMillis < 0 || d.MeasuredMillis < 0 || d.MemoryBytes < 0 || d.PeakMemoryBytes < 0 || d.UUID == "" || i > 0 && d.UUID <= u.Devices[i-1].UUID {
			return Use{}, fmt.Errorf("use: devices[%d]: %+v: want ascending UUIDs and nothing negative", i, d)
		}
	}
	return u, nil
}

// And joins two measurements of the same member, next being the later one. The sums and
// peaks of processors and memory are the greater ones of both. The memory in use is that
// of next. The devices are those of next, where next has any: the caller has added the
// earlier sums to them.
func (u Use) And(next Use) Use {
	sum := Use{
		Version: version, CPUMillis: max(u.CPUMillis, next.CPUMillis), MemoryBytes: next.MemoryBytes, PeakMemoryBytes: max(u.PeakMemoryBytes, next.PeakMemoryBytes, next.MemoryBytes),
		OOMKills: next.OOMKills, Devices: next.Devices,
	}
	if u.OOMKills != nil && (sum.OOMKills == nil || *sum.OOMKills < *u.OOMKills) {
		sum.OOMKills = u.OOMKills
	}
	if len(sum.Devices) == 0 {
		sum.Devices = u.Devices
	}
	return sum
}

// Measured is the use that is on record in the folder: of the shim at the end, of the
// agent before. ok is false where there is none.
func (f Folder) Measured() (u Use, ok bool) {
	u, err := read(f, measuredFile, maxUse, ParseUse)
	last, lastErr := read(f, useFile, maxUse, ParseUse)
	switch {
	case lastErr != nil:
		return u, err == nil
	case err != nil:
		return last, true
	}
	return u.And(last), true
}

// WriteMeasured notes the use so far, and keeps the earlier note where it fails. A crash
// of the host may lose the last notes.
func (f Folder) WriteMeasured(u Use) error {
	u.Version = version
	data, err := json.Marshal(u)
	if err != nil {
		return err
	}
	if len(u.Devices) > maxDevices || len(data) > maxUse {
		return fmt.Errorf("use: %d devices in %d bytes, want at most %d in %d", len(u.Devices), len(data), maxDevices, maxUse)
	}
	temporary := f.path(measuredFile + ".tmp")
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, f.path(measuredFile))
}

// writeUse writes the sums that the kernel has kept of all children of the shim, once
// they have ended.
func (f Folder) writeUse(cgroup string) error {
	u := Use{Version: version}
	var sums unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &sums); err == nil {
		u.CPUMillis, u.PeakMemoryBytes = (sums.Utime.Nano()+sums.Stime.Nano())/1e6, sums.Maxrss<<10
	}
	if c, ok := cgroupUse(cgroup); ok {
		c.MemoryBytes = 0 // of caches: nothing runs any more
		u = c
	}
	return f.write(useFile, u)
}

// cgroupUse reads the sums of a folder of the unified hierarchy; ok is false where there
// is no such folder, or the kernel counts no memory in it.
func cgroupUse(path string) (u Use, ok bool) {
	if path == "" {
		return Use{}, false
	}
	micros, ok1 := readNumber(filepath.Join(path, "cpu.stat"), "usage_usec")
	now, ok2 := readNumber(filepath.Join(path, "memory.current"), "")
	kills, ok3 := readNumber(filepath.Join(path, "memory.events"), "oom_kill")
	if !ok1 || !ok2 || !ok3 {
		return Use{}, false
	}
	peak, _ := readNumber(filepath.Join(path, "memory.peak"), "") // since Linux 5.19
	return Use{Version: version, CPUMillis: micros / 1000, MemoryBytes: now, PeakMemoryBytes: max(peak, now), OOMKills: &kills}, true
}

// readNumber reads the number of a line "key number" of a file, or of a file that has a
// number alone.
func readNumber(path, key string) (int64, bool) {
	file, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err != nil {
		return 0, false
	}
	return parseNumber(data, key)
}

func parseNumber(data []byte, key string) (int64, bool) {
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if key != "" && len(words) == 2 && words[0] == key || key == "" && len(words) == 1 {
			n, err := strconv.ParseInt(words[len(words)-1], 10, 64)
			return n, err == nil && n >= 0
		}
	}
	return 0, false
}

// ticks is the unit of times in /proc: 100 a second on every Linux that Go knows.
const ticks = 100

// Sample is all processes of a host at one moment.
type Sample struct {
	all      map[int]stat
	children map[int][]int
}

// TakeSample reads /proc once, for any number of members.
func TakeSample() (Sample, error) {
	pids, err := processes()
	if err != nil {
		return Sample{}, err
	}
	s := Sample{all: make(map[int]stat, len(pids)), children: map[int][]int{}}
	for _, pid := range pids {
		if one, err := readStat(pid); err == nil { // else it has ended meanwhile
			s.all[pid] = one
			s.children[one.parent] = append(s.children[one.parent], pid)
		}
	}
	return s, nil
}

// Below are the processes below a process.
func (s Sample) Below(pid int) []int {
	var list []int
	seen := map[int]bool{pid: true}
	for next := s.children[pid]; len(next) > 0; {
		child := next[0]
		next = next[1:]
		if !seen[child] { // two looks at different times may make a circle
			seen[child] = true
			list = append(list, child)
			next = append(next, s.children[child]...)
		}
	}
	return list
}

// UseOf is the present use of the member of a shim, with the sums of its children that
// have ended, and the member's processes. ok is false where the shim has ended.
func (s Sample) UseOf(shim Process, cgroup string) (u Use, pids []int, ok bool) {
	own, found := s.all[shim.PID]
	if !found || own.start != shim.Start {
		return Use{}, nil, false
	}
	pids = s.Below(shim.PID)
	if u, ok := cgroupUse(workFolder(cgroup)); ok {
		return u, pids, true
	}
	time, pages := own.childTime, int64(0)
	for _, pid := range pids {
		one := s.all[pid]
		time += one.time + one.childTime
		pages += one.pages
	}
	u = Use{Version: version, CPUMillis: int64(time) * 1000 / ticks, MemoryBytes: pages * int64(os.Getpagesize())}
	u.PeakMemoryBytes = u.MemoryBytes
	return u, pids, true
}
