package limits

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Document is the table of all limits in Markdown, message by message in the
// order of the .proto files. docs/reference/messages.md ends in it.
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
		if limit.kind == part || limit.kind == flag { // covered by its own rows; has no limit
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
