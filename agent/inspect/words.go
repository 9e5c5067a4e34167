package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/musterd/muster/resource"
)

// size prints bytes in the largest binary unit that leaves at least one, to a
// tenth, rounded down.
func size(b resource.Bytes) string {
	const units = "KMGTPE"
	if b < 1024 {
		return strconv.FormatInt(int64(b), 10) + " B"
	}
	unit, scale := 0, int64(1024)
	for int64(b)/scale >= 1024 && unit < len(units)-1 {
		unit, scale = unit+1, scale*1024
	}
	whole := int64(b) / scale
	tenths := (int64(b) % scale) / (scale / 10)
	return fmt.Sprintf("%d.%d %ciB", whole, min(tenths, 9), units[unit])
}

// pages prints the huge pages that there are, smallest first.
func pages(hugepages map[int]int64) string {
	var sizes []int
	for kb, n := range hugepages {
		if n > 0 {
			sizes = append(sizes, kb)
		}
	}
	slices.Sort(sizes)
	var b strings.Builder
	for _, kb := range sizes {
		fmt.Fprintf(&b, "   %d × %s pages", hugepages[kb], size(resource.Bytes(kb)<<10))
	}
	return b.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func orUnknown(s string) string { return cmp.Or(printable(s), "unknown") }

// printable replaces what a terminal could obey.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '?'
	}, s)
}
