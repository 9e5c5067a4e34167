package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// outputs are the values of -o.
var outputs = []string{"table", "wide", "json", "yaml", "name"}

func (a *app) checkOutput() error {
	if !slices.Contains(outputs, a.output) {
		return usagef("-o %q: want one of %s", a.output, strings.Join(outputs, ", "))
	}
	return nil
}

func (a *app) isTable() bool { return a.output == "table" || a.output == "wide" }

// notef writes to standard error, for people; a failure to do so is nothing
// that could be told anybody.
func (a *app) notef(format string, args ...any) { _, _ = fmt.Fprintf(a.Stderr, format, args...) }

// printf writes a line of a verb's own result. A broken standard output (a
// closed pipe) ends in silence, as with other tools.
func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.Stdout, format, args...) }

// print shows objects in the format asked for; document is what json and yaml
// show.
func (a *app) print(objects []object, document any) error {
	switch a.output {
	case "json", "yaml":
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

// encode prints a document as JSON or YAML.
func (a *app) encode(document any) error {
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
	_, err = a.Stdout.Write(raw)
	return err
}

// onlyInJSON reports whether a JSON document has characters that the YAML library
// leaves as they are or refuses. JSON is YAML as well, and shows them escaped.
func onlyInJSON(raw []byte) bool {
	return bytes.ContainsFunc(raw, func(r rune) bool { return r > ' ' && isControl(r) }) ||
		bytes.Contains(raw, []byte(`\u2028`)) || bytes.Contains(raw, []byte(`\u2029`))
}

// table is rows under heads; empty cells show as <none>.
type table struct{ rows [][]string }

func newTable(heads ...string) *table { return &table{rows: [][]string{heads}} }

func (t *table) add(cells ...string) {
	for i, c := range cells {
		if cells[i] = oneCell(c); c == "" {
			cells[i] = "<none>"
		}
	}
	t.rows = append(t.rows, cells)
}

// write aligns the columns, each line behind indent and without blanks at its
// end.
func (t *table) write(w io.Writer, indent string) {
	var text strings.Builder
	aligned := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for _, row := range t.rows {
		_, _ = fmt.Fprintln(aligned, strings.Join(row, "\t")) // a Builder cannot fail
	}
	_ = aligned.Flush()
	for line := range strings.Lines(text.String()) {
		_, _ = fmt.Fprintf(w, "%s%s\n", indent, strings.TrimRight(line, " \n"))
	}
}
