package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// columns is the width of the terminal that the picture is drawn for.
const columns = 100

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
func pages(hugepages map[int]int64) []string {
	var sizes []int
	for kb, n := range hugepages {
		if n > 0 {
			sizes = append(sizes, kb)
		}
	}
	slices.Sort(sizes)
	var words []string
	for _, kb := range sizes {
		words = append(words, fmt.Sprintf("  %d × %s pages", hugepages[kb], size(resource.Bytes(kb)<<10)))
	}
	return words
}

// elements are the parts of a set's list, which may be broken between them.
func elements(s bitset.Set) []string {
	words := strings.SplitAfter(s.String(), ",")
	for i := 1; i < len(words); i++ {
		words[i] = joined + words[i]
	}
	return words
}

// joined marks a word that follows the one before without a blank.
const joined = "\x00"

// wrap prints a title and words behind it, in lines of at most width columns
// where the words allow; the lines that follow are indented to the first word.
func wrap(title string, words []string, width int) []string {
	indent := strings.Repeat(" ", utf8.RuneCountInString(title)+1)
	lines := []string{title}
	used, fresh := len(indent)-1, true
	for _, word := range words {
		word, glued := strings.CutPrefix(word, joined)
		gap := " "
		if glued && !fresh {
			gap = ""
		}
		n := utf8.RuneCountInString(word)
		if used+len(gap)+n > width && !fresh {
			word = strings.TrimLeft(word, " ")
			n = utf8.RuneCountInString(word)
			lines = append(lines, indent+word)
			used = len(indent) + n
			continue
		}
		lines[len(lines)-1] += gap + word
		used += len(gap) + n
		fresh = false
	}
	return lines
}

// clip cuts a line that is too wide and marks the cut by an ellipsis.
func clip(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func orUnknown(s string) string { return cmp.Or(printable(s), "unknown") }

// printable replaces characters that a terminal could obey.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '?'
	}, s)
}
