package reference

import (
	"fmt"
	"io"
	"strings"

	"github.com/musterd/muster/api"
)

// width is the longest line of an explanation.
const width = 80

// Explain writes a field and the fields directly below it for people, in the form
// of kubectl explain.
func Explain(w io.Writer, k *Kind, f *Field) error {
	var b strings.Builder
	fmt.Fprintf(&b, "KIND:     %s\nVERSION:  %s\n", k.Name, api.APIVersion)
	if f.Path != "" {
		fmt.Fprintf(&b, "FIELD:    %s <%s>%s\n", f.Path, f.Type, suffix(*f))
	}
	b.WriteString("\nDESCRIPTION:\n")
	wrapped(&b, f.Text, "    ")
	if facts := f.facts(); len(facts) > 0 {
		b.WriteString("\n")
		for _, fact := range facts {
			fmt.Fprintf(&b, "    %-9s %s\n", fact[0]+":", fact[1])
		}
	}
	if len(f.Fields) > 0 {
		b.WriteString("\nFIELDS:\n")
		for i, inner := range f.Fields {
			if i > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "  %s <%s>%s\n", inner.Name, inner.Type, suffix(inner))
			wrapped(&b, inner.Text, "    ")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ExplainAll writes the names and types of all fields below a field, indented.
func ExplainAll(w io.Writer, k *Kind, f *Field) error {
	var b strings.Builder
	fmt.Fprintf(&b, "KIND:     %s\nVERSION:  %s\n", k.Name, api.APIVersion)
	if f.Path != "" {
		fmt.Fprintf(&b, "FIELD:    %s <%s>%s\n", f.Path, f.Type, suffix(*f))
	}
	b.WriteString("\nDESCRIPTION:\n")
	wrapped(&b, f.Text, "    ")
	b.WriteString("\nFIELDS:\n")
	outline(&b, f.Fields, "  ")
	_, err := io.WriteString(w, b.String())
	return err
}

func outline(b *strings.Builder, fields []Field, indent string) {
	for _, f := range fields {
		fmt.Fprintf(b, "%s%s <%s>%s\n", indent, f.Name, f.Type, suffix(f))
		outline(b, f.Fields, indent+"  ")
	}
}

// suffix is the field's mark behind its type.
func suffix(f Field) string {
	if m := f.marks(); m != "" {
		return " -" + m + "-"
	}
	return ""
}

// wrapped writes a text in lines of at most width bytes.
func wrapped(b *strings.Builder, text, indent string) {
	line := indent
	for _, word := range strings.Fields(text) {
		switch {
		case line == indent:
		case len(line)+1+len(word) > width:
			b.WriteString(line + "\n")
			line = indent
		default:
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}
