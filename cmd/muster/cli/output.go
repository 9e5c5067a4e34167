package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// outputs are the values of -o, and templates those that take an argument.
var (
	outputs   = []string{"table", "wide", "json", "yaml", "name"}
	templates = []string{"jsonpath=", "custom-columns="}
)

// checkOutput reads -o. A template counts as JSON, which encode then puts into
// the template.
func (a *app) checkOutput() error {
	for _, t := range templates {
		text, is := strings.CutPrefix(a.output, t)
		if !is {
			continue
		}
		var err error
		if t == "jsonpath=" {
			a.template, err = parsePath(text)
		} else {
			a.columns, err = parseColumns(text)
		}
		if err != nil {
			return usagef("-o %s%w", t, err)
		}
		a.output = "json"
		return nil
	}
	if !slices.Contains(outputs, a.output) {
		return usagef("-o %q: want one of %s, jsonpath=TEMPLATE, custom-columns=HEAD:.path,…", a.output, strings.Join(outputs, ", "))
	}
	return nil
}

func (a *app) isTable() bool { return a.output == "table" || a.output == "wide" }

// notef writes to standard error, for people; a failure to do so is nothing
// that could be reported.
func (a *app) notef(format string, args ...any) { _, _ = fmt.Fprintf(a.Stderr, format, args...) }

// printf writes a line of a verb's own result. Run reports a failure, once, at
// the end (see unwritten).
func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.Stdout, format, args...) }

// unwritten is the error of a standard output that has not taken everything, or
// nil. A reader that went away is no error to report, as with other tools.
func unwritten(stdout io.Writer) (err error, silent bool) {
	v, ok := stdout.(*visible)
	if !ok || v.failure == nil {
		return nil, false
	}
	return fmt.Errorf("write standard output: %w", v.failure), errors.Is(v.failure, syscall.EPIPE)
}

// print shows objects in the format asked for; document is the output of json and yaml
// show.
func (a *app) print(objects []object, document any) error {
	switch a.output {
	case "json", "yaml":
		if a.columns != nil {
			return a.customColumns(documentsOf(objects))
		}
		return a.encode(document)
	case "name":
		for _, o := range objects {
			a.printf("%s/%s\n", o.kind(), o.meta().Name)
		}
		return nil
	}
	a.tables(objects)
	return nil
}

// customColumns prints documents as the columns of -o custom-columns.
func (a *app) customColumns(documents []any) error {
	t := &table{}
	if !a.noHeaders {
		var heads []string
		for _, c := range a.columns {
			heads = append(heads, c.head)
		}
		t.rows = append(t.rows, heads)
	}
	for _, d := range documents {
		row, err := cells(a.columns, d)
		if err != nil {
			return fmt.Errorf("-o custom-columns: %w", err)
		}
		t.add(row...)
	}
	t.write(a.Stdout, "")
	return nil
}

// encode prints a document as JSON or YAML, or puts it into the template.
func (a *app) encode(document any) error {
	switch {
	case a.template != nil:
		if err := a.template.write(a.Stdout, document); err != nil {
			return fmt.Errorf("-o jsonpath: %w", err)
		}
		return nil
	case a.columns != nil:
		return a.customColumns([]any{document})
	}
	raw, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	raw = append(raw, '\n')
	if a.output == "yaml" && !onlyInJSON(raw) {
		if raw, err = yaml.JSONToYAML(raw); err != nil {
			return fmt.Errorf("encode the answer: %w", err)
		}
	}
	_, _ = a.Stdout.Write(raw) // as printf
	return nil
}

// onlyInJSON reports whether a JSON document has characters that the YAML library
// leaves as they are or refuses. JSON is YAML as well, and shows them escaped.
func onlyInJSON(raw []byte) bool {
	return bytes.ContainsFunc(raw, func(r rune) bool { return r > ' ' && isControl(r) }) ||
		bytes.Contains(raw, []byte(`\u2028`)) || bytes.Contains(raw, []byte(`\u2029`))
}

// table is rows, mostly under heads; empty cells show as <none>.
type table struct {
	rows [][]string
	// paint, where not nil, colours the cell of a row and a column once it is
	// aligned.
	paint func(row, column int, cell string) string
}

func newTable(heads ...string) *table { return &table{rows: [][]string{heads}} }

func (t *table) add(cells ...string) {
	for i, c := range cells {
		if cells[i] = oneCell(c); c == "" {
			cells[i] = "<none>"
		}
	}
	t.rows = append(t.rows, cells)
}

// write aligns the columns, three blanks apart, each line behind indent and
// without blanks at its end.
func (t *table) write(w io.Writer, indent string) { t.writeWide(w, indent, nil) }

// writeWide is write with columns of at least some widths; it returns the widths
// that they have.
func (t *table) writeWide(w io.Writer, indent string, widths []int) []int {
	widths = t.widths(widths)
	var text strings.Builder
	for r, row := range t.rows {
		blanks := 0
		text.WriteString(indent)
		for i, cell := range row {
			text.WriteString(strings.Repeat(" ", blanks))
			blanks = widths[i] - utf8.RuneCountInString(cell) + 3
			if t.paint != nil {
				cell = t.paint(r, i, cell)
			}
			text.WriteString(cell)
		}
		text.WriteByte('\n')
	}
	_, _ = io.WriteString(w, text.String()) // as printf
	return widths
}

// widths are the widths of columns with the cells of the table.
func (t *table) widths(widths []int) []int {
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}
