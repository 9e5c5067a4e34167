package limits

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Document is the table of all limits in Markdown, message by message in the
// order of the .proto files. docs/reference/messages.md ends in the table.
func Document() (string, error) {
	all, err := plans()
	if err != nil {
		return "", err
	}
	whole := wholeMessages()
	var b strings.Builder
	for _, f := range files() {
		fmt.Fprintf(&b, "## %s\n\n", f.Path())
		b.WriteString("| field | limit |\n|---|---|\n")
		for i := range f.Messages().Len() {
			rows(&b, all, whole, f.Messages().Get(i))
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// wholeMessages are those that a call sends or returns by themselves.
func wholeMessages() map[protoreflect.FullName]bool {
	whole := map[protoreflect.FullName]bool{}
	for _, f := range files() {
		for i := range f.Services().Len() {
			methods := f.Services().Get(i).Methods()
			for j := range methods.Len() {
				whole[methods.Get(j).Input().FullName()], whole[methods.Get(j).Output().FullName()] = true, true
			}
		}
	}
	return whole
}

func rows(b *strings.Builder, all map[protoreflect.FullName]*plan, whole map[protoreflect.FullName]bool, m protoreflect.MessageDescriptor) {
	size := ""
	if whole[m.FullName()] {
		size = "at most " + bytesText(all[m.FullName()].size)
	}
	fmt.Fprintf(b, "| **%s** | %s |\n", m.Name(), size)
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		limit := fields[string(field.FullName())]
		if limit.kind == part || limit.kind == flag { // has rows of its own, or no limit
			continue
		}
		fmt.Fprintf(b, "| %s.%s | %s |\n", m.Name(), field.Name(), limit)
	}
	nested := make([]protoreflect.MessageDescriptor, 0, m.Messages().Len())
	for i := range m.Messages().Len() {
		nested = append(nested, m.Messages().Get(i))
	}
	nested = slices.DeleteFunc(nested, protoreflect.MessageDescriptor.IsMapEntry)
	for _, n := range nested {
		rows(b, all, whole, n)
	}
}

// String is the limit as documents show it.
func (l Limit) String() string {
	switch l.kind {
	case text:
		return fmt.Sprintf("at most %s of %s", bytesText(l.max), l.chars)
	case word:
		return "one of " + strings.Join(quoted(l.words), ", ")
	case data:
		return "at most " + bytesText(l.max)
	case number:
		if l.min == math.MinInt64 && l.max == math.MaxInt64 {
			return "any number of its type"
		}
		return bound(l.min) + " to " + bound(l.max)
	case real:
		return fmt.Sprintf("%d to %d", l.min, l.max)
	case enum:
		return "a value that the enumeration names"
	case flag:
		return "true or false"
	case part:
		return "a message, with its own limits"
	case list:
		if l.elem.kind == part {
			return fmt.Sprintf("at most %d entries", l.max)
		}
		return fmt.Sprintf("at most %d entries, each %s", l.max, l.elem)
	case dict:
		return fmt.Sprintf("at most %d entries; keys: %s; values: %s", l.max, l.key, l.elem)
	}
	return "no limit: refused"
}

func quoted(words []string) []string {
	q := make([]string, len(words))
	for i, w := range words {
		q[i] = "`" + w + "`"
	}
	return q
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// bound writes powers of two and their neighbours as such.
func bound(n int64) string {
	switch {
	case n == math.MinInt64:
		return "-2^63"
	case n == math.MaxInt64:
		return "2^63-1"
	case n >= 1<<20 && n&(n-1) == 0:
		power := 0
		for ; n > 1; n >>= 1 {
			power++
		}
		return fmt.Sprintf("2^%d", power)
	}
	return fmt.Sprint(n)
}
