package sysfs

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// parseList reads what the kernel prints with %*pbl: numbers and ranges in
// ascending order without overlap. Unlike bitset.Parse it takes no strides,
// which the kernel reads but never prints, so that its work is bounded by
// limit whatever the text. beyond reports that members above limit were left
// out.
func parseList(text string, limit int) (s bitset.Set, beyond bool, err error) {
	if text == "" {
		return s, false, nil
	}
	last := -1
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
		if low <= last || high < low {
			return bitset.Set{}, false, fmt.Errorf("list element %.40q does not ascend", element)
		}
		last = high
		beyond = beyond || high > limit
		for i := low; i <= min(high, limit); i++ {
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

// parseMask reads what the kernel prints with %*pb: hexadecimal words of 32
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

// parseMemTotal finds MemTotal in proc/meminfo or in a node's meminfo, whose
// lines begin with "Node <id> ".
func parseMemTotal(text string) (resource.Bytes, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) > 2 && fields[0] == "Node" {
			fields = fields[2:]
		}
		if len(fields) == 0 || fields[0] != "MemTotal:" {
			continue
		}
		if len(fields) != 3 || fields[2] != "kB" {
			return 0, fmt.Errorf("%.60q is not an amount in kB", strings.TrimSpace(line))
		}
		kib, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil || kib > uint64(resource.MaxMemory)>>10 {
			return 0, fmt.Errorf("MemTotal %.40q is not a number in 0..%d", fields[1], resource.MaxMemory>>10)
		}
		return resource.Bytes(kib) << 10, nil
	}
	return 0, fmt.Errorf("no MemTotal")
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

// parseAllowed finds Cpus_allowed_list in proc/<pid>/status.
func parseAllowed(text string, limit int) (s bitset.Set, beyond bool, err error) {
	for line := range strings.Lines(text) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return parseList(strings.TrimSpace(list), limit)
		}
	}
	return s, false, fmt.Errorf("no Cpus_allowed_list")
}
