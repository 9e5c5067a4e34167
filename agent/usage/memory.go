package usage

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/musterd/muster/agent/pressure"
	"github.com/musterd/muster/resource"
)

// ReadMemory reads the stalls and the amounts of a host's memory from proc/
// below a root. A kernel without pressure files, or one that measures nothing
// (CONFIG_PSI, psi=0), has no stalls. The error says that amounts or stalls
// cannot be read, and the reading is then of no use.
func ReadMemory(root fs.FS) (pressure.Reading, error) {
	var r pressure.Reading
	text, err := head(root, "proc/meminfo")
	if err == nil {
		r.Total, r.Available, err = parseMeminfo(text)
	}
	if err != nil {
		return r, fmt.Errorf("usage: memory: %w", err)
	}
	// Where psi is off the file is absent, or reading it fails (EOPNOTSUPP).
	text, err = head(root, "proc/pressure/memory")
	if err != nil {
		return r, nil
	}
	if r.Stall, err = parseStall(text); err != nil {
		return r, fmt.Errorf("usage: memory: proc/pressure/memory: %w", err)
	}
	r.HasStall = true
	return r, nil
}

// head reads the first 64 KiB of a file; both files are far shorter.
func head(root fs.FS, path string) ([]byte, error) {
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 64<<10))
}

// parseMeminfo finds MemTotal and MemAvailable. Kernels before 3.14 lack the
// latter: free memory and caches stand in for it.
func parseMeminfo(text []byte) (total, available resource.Bytes, err error) {
	fields := map[string]resource.Bytes{}
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		if len(words) != 3 || words[2] != "kB" {
			continue
		}
		kB, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil || kB > uint64(resource.MaxMemory>>10) {
			continue
		}
		fields[strings.TrimSuffix(words[0], ":")] = resource.Bytes(kB) << 10
	}
	total, ok := fields["MemTotal"]
	if !ok || total == 0 {
		return 0, 0, fmt.Errorf("proc/meminfo: no MemTotal above 0")
	}
	available, ok = fields["MemAvailable"]
	if !ok {
		available = fields["MemFree"] + fields["Buffers"] + fields["Cached"]
	}
	return total, min(available, total), nil
}

// parseStall finds avg10 of the line "full", a percentage with two digits behind
// the point.
func parseStall(text []byte) (pressure.Percent, error) {
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		if len(words) < 2 || words[0] != "full" {
			continue
		}
		number, ok := strings.CutPrefix(words[1], "avg10=")
		whole, part, point := strings.Cut(number, ".")
		percent, err := strconv.ParseUint(whole, 10, 7)
		hundredths, partErr := strconv.ParseUint(part, 10, 7)
		if !ok || !point || len(part) != 2 || err != nil || partErr != nil || percent*100+hundredths > 10000 {
			return 0, fmt.Errorf("%.40q is not avg10= and a percentage", words[1])
		}
		return pressure.Percent(percent*100 + hundredths), nil
	}
	return 0, fmt.Errorf("no line full")
}

// OOMKills reads from proc/ below a root how many processes the kernel has killed for
// lack of memory since the boot: UnknownKills where the kernel does not count them. With
// an error too, the number is UnknownKills.
func OOMKills(root fs.FS) (int64, error) {
	text, err := head(root, "proc/vmstat")
	if err != nil {
		return UnknownKills, err
	}
	for line := range bytes.Lines(text) {
		number, found := strings.CutPrefix(strings.TrimSpace(string(line)), "oom_kill ")
		if !found {
			continue
		}
		kills, err := strconv.ParseInt(number, 10, 64)
		if err != nil || kills < 0 {
			return UnknownKills, fmt.Errorf("usage: proc/vmstat: oom_kill %.40q: want a number from 0", number)
		}
		return kills, nil
	}
	return UnknownKills, nil
}
