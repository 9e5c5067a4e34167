package hostile

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/test/cluster"
)

// memory is resident memory in bytes, by the name of the process.
type memory map[string]int64

// resident reads what a process has in memory now and had at most since
// forgetPeak, in bytes.
func resident(pid int) (now, peak int64, err error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if name != "VmRSS" && name != "VmHWM" {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%s of process %d: %w", name, pid, err)
		}
		if name == "VmRSS" {
			now = kib << 10
		} else {
			peak = kib << 10
		}
	}
	if now == 0 {
		return 0, 0, fmt.Errorf("process %d has no memory: it has ended", pid)
	}
	return now, peak, nil
}

// forgetPeak makes the kernel count a process's peak from now on.
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o600)
}

// victims are the coordinators and the honest agents.
func victims(c *cluster.Cluster) []*cluster.Process {
	list := slices.Clone(c.Coordinators)
	for _, a := range c.Agents {
		list = append(list, a.Process)
	}
	return list
}

// before returns the memory of all victims and starts to count their peaks.
func before(c *cluster.Cluster) (memory, error) {
	m := memory{}
	for _, p := range victims(c) {
		if err := forgetPeak(p.PID()); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		now, _, err := resident(p.PID())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		m[p.Name] = now
	}
	return m, nil
}

// growth is how much more memory a victim had at its peak than before.
type growth struct {
	Process      string
	Before, Peak int64 // bytes
}

func (g growth) more() int64 { return g.Peak - g.Before }

// grown returns the growth of all victims since before, the largest first. A
// process that has ended is left out; its test fails for that.
func grown(c *cluster.Cluster, was memory) []growth {
	var list []growth
	for _, p := range victims(c) {
		if _, peak, err := resident(p.PID()); err == nil {
			list = append(list, growth{p.Name, was[p.Name], peak})
		}
	}
	slices.SortFunc(list, func(a, b growth) int {
		return cmp.Or(cmp.Compare(b.more(), a.more()), cmp.Compare(a.Process, b.Process))
	})
	return list
}
