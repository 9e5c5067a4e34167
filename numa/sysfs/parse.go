package sysfs

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// parseList reads numbers and ranges, as the kernel prints them with %*pbl. A
// list need not ascend, since trees edited by hand do not, but it names no
// member twice. Unlike bitset.Parse it takes no strides, which the kernel reads
// and never prints, so that its work is bounded by limit for any text.
// beyond reports that members above limit were left out.
func parseList(text string, limit int) (s bitset.Set, beyond bool, err error) {
	if text == "" {
		return s, false, nil
	}
	for element := range strings.SplitSeq(text, ",") {
		lowText, highText, isRange := strings.Cut(element, "-")
		low, err := parseMember(lowText)
		if err != nil {
			return bitset.Set{}, false, fmt.Errorf("list element %.40q: %w", element, err)
		}
		high := low
		if isRange {
			if high, err = parseMember(highText); err != nil {
				return bitset.Set{}, false, fmt.Errorf("list element %.40q: %w", element, err)
			}
		}
		if high < low {
			return bitset.Set{}, false, fmt.Errorf("list element %.40q goes backwards", element)
		}
		beyond = beyond || high > limit
		for i := low; i <= min(high, limit); i++ {
			if s.Has(i) {
				return bitset.Set{}, false, fmt.Errorf("list element %.40q: %d is named twice", element, i)
			}
			s.Add(i)
		}
	}
	return s, beyond, nil
}

func parseMember(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > bitset.MaxMember {
		return 0, fmt.Errorf("%.40q is not a number in 0..%d", text, bitset.MaxMember)
	}
	return int(n), nil
}

// parseMask reads the kernel's format %*pb: hexadecimal words of 32
// bits separated by commas, the most significant first.
func parseMask(text string, limit int) (s bitset.Set, beyond bool, err error) {
	words := strings.Split(text, ",")
	for i, word := range words {
		bits, err := strconv.ParseUint(word, 16, 32)
		if err != nil || len(word) > 8 {
			return bitset.Set{}, false, fmt.Errorf("mask word %.40q is not hexadecimal of 32 bits", word)
		}
		base := 32 * (len(words) - 1 - i)
		for bit := range 32 {
			if bits&(1<<bit) == 0 {
				continue
			}
			if base+bit > limit {
				beyond = true
				continue
			}
			s.Add(base + bit)
		}
	}
	return s, beyond, nil
}

// parseIsolcpus reads the CPUs of isolcpus= in a kernel command line, by the
// rules of housekeeping_isolcpus_setup in kernel/sched/isolation.c: flags come
// before the list, and one without "domain" among its flags isolates nothing
// from the scheduler. found is false where there is no isolcpus=.
func parseIsolcpus(cmdline string, limit int) (s bitset.Set, found bool, err error) {
	for word := range strings.FieldsSeq(cmdline) {
		list, ok := strings.CutPrefix(word, "isolcpus=")
		if !ok {
			continue
		}
		flags, domain := 0, false
		for list != "" && (list[0] < '0' || list[0] > '9') {
			flag, rest, more := strings.Cut(list, ",")
			if !more {
				return bitset.Set{}, true, fmt.Errorf("isolcpus=%.40q is not a list of CPUs", list)
			}
			flags++
			domain = domain || flag == "domain"
			list = rest
		}
		// A boot parameter may have strides, which bitset.Parse bounds.
		set, err := bitset.Parse(list)
		if err != nil {
			return bitset.Set{}, true, fmt.Errorf("isolcpus: %w", err)
		}
		found = true
		if flags > 0 && !domain {
			continue
		}
		for id := range set.All() {
			if id <= limit {
				s.Add(id)
			}
		}
	}
	return s, found, nil
}

// parseStat reads the online CPUs from proc/stat, which has a line "cpuN …"
// for each (proc_stat(5)).
func parseStat(text string, limit int) (s bitset.Set, err error) {
	for line := range strings.Lines(text) {
		digits, ok := strings.CutPrefix(line, "cpu")
		if !ok {
			continue
		}
		digits, _, _ = strings.Cut(digits, " ")
		if id, err := strconv.ParseUint(digits, 10, 16); err == nil && int(id) <= limit {
			s.Add(int(id))
		}
	}
	if s.IsEmpty() {
		return s, fmt.Errorf("no line of a CPU")
	}
	return s, nil
}

func parseNumber(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < -1 {
		return 0, fmt.Errorf("%.40q is not a number in -1..%d", text, math.MaxInt32)
	}
	return int(n), nil
}

// parseCount reads a number of pages.
func parseCount(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%.40q is not a count", text)
	}
	return n, nil
}

// meminfoField finds the value behind a name in proc/meminfo or in a node's
// meminfo, whose lines begin with "Node <id> ". Fields after the name are
// returned as they are, e.g. ["5", "kB"]; nil where the name is absent.
func meminfoField(text, name string) []string {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) > 2 && fields[0] == "Node" {
			fields = fields[2:]
		}
		if len(fields) > 0 && fields[0] == name+":" {
			return fields[1:]
		}
	}
	return nil
}

// parseMemTotal finds MemTotal in a meminfo of either kind.
func parseMemTotal(text string) (resource.Bytes, error) {
	fields := meminfoField(text, "MemTotal")
	if fields == nil {
		return 0, fmt.Errorf("no MemTotal")
	}
	if len(fields) != 2 || fields[1] != "kB" {
		return 0, fmt.Errorf("MemTotal %.60q is not an amount in kB", strings.Join(fields, " "))
	}
	kib, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil || kib > uint64(resource.MaxMemory)>>10 {
		return 0, fmt.Errorf("MemTotal %.40q is not a number in 0..%d", fields[0], resource.MaxMemory>>10)
	}
	return resource.Bytes(kib) << 10, nil
}

// parseHugePagesTotal finds HugePages_Total in a meminfo of either kind, 0
// where there is none.
func parseHugePagesTotal(text string) (int64, error) {
	fields := meminfoField(text, "HugePages_Total")
	switch len(fields) {
	case 0:
		return 0, nil
	case 1:
		return parseCount(fields[0])
	}
	return 0, fmt.Errorf("HugePages_Total %.60q is not a count", strings.Join(fields, " "))
}

// parseHugePageSize finds Hugepagesize in proc/meminfo, in kB.
func parseHugePageSize(text string) (int, error) {
	fields := meminfoField(text, "Hugepagesize")
	if len(fields) == 2 && fields[1] == "kB" {
		if kb, err := strconv.ParseUint(fields[0], 10, 31); err == nil && kb > 0 && kb <= uint64(resource.MaxHugepageSize>>10) {
			return int(kb), nil
		}
	}
	return 0, fmt.Errorf("the line Hugepagesize: %.60q is not an amount in kB of 1..%d", strings.Join(fields, " "), resource.MaxHugepageSize>>10)
}

// parseDistances reads one row of want distances. The least is 1; ACPI's SLIT
// has one byte for each.
func parseDistances(text string, want int) ([]int, error) {
	fields := strings.Fields(text)
	if len(fields) != want {
		return nil, fmt.Errorf("%d distances for %d online nodes", len(fields), want)
	}
	row := make([]int, want)
	for i, field := range fields {
		d, err := strconv.ParseUint(field, 10, 8)
		if err != nil || d == 0 {
			return nil, fmt.Errorf("distance %.40q is not a number in 1..255", field)
		}
		row[i] = int(d)
	}
	return row, nil
}

// parseAllowed finds one of the lists of proc/<pid>/status, by the name before
// its colon.
func parseAllowed(text, name string, limit int) (s bitset.Set, beyond bool, err error) {
	for line := range strings.Lines(text) {
		if list, ok := strings.CutPrefix(line, name+":"); ok {
			return parseList(strings.TrimSpace(list), limit)
		}
	}
	return s, false, fmt.Errorf("no %s", name)
}
