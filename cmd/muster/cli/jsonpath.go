package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// maxTemplate bounds a jsonpath expression or the columns of custom-columns, in
// bytes.
const maxTemplate = 64 << 10

// path is a compiled jsonpath expression of kubectl.
type path struct{ compiled *jsonpath.JSONPath }

// parsePath reads an expression such as "{.metadata.name}", with text around it.
func parsePath(text string) (p *path, err error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("%d bytes long, the limit is %d", len(text), maxTemplate)
	}
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("%q is empty: want an expression such as '{.metadata.name}'", text)
	}
	defer func() { // of the library, on an expression that it does not expect
		if fault := recover(); fault != nil {
			p, err = nil, fmt.Errorf("%q is not an expression: %v", text, fault)
		}
	}()
	p = &path{compiled: jsonpath.New("out").AllowMissingKeys(true)}
	if err := p.compiled.Parse(text); err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return p, nil
}

// relaxed is an expression whose braces and first dot may be left out.
var relaxed = regexp.MustCompile(`^(?:\{\.?([^{}]+)\}|\.?([^{}]+))$`)

// parseField reads the path of one field: {.metadata.name}, .metadata.name or
// metadata.name.
func parseField(text string) (*path, error) {
	m := relaxed.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%q: want a field such as .metadata.name", text)
	}
	return parsePath("{." + m[1] + m[2] + "}")
}

// write prints the template with the values of a document in it.
func (p *path) write(to io.Writer, document any) (err error) {
	v, err := plain(document)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := guarded(func() error { return p.compiled.Execute(&out, v) }); err != nil {
		return err
	}
	_, _ = to.Write(out.Bytes()) // as printf
	return nil
}

// find returns the values at the path in a document, none where there is none.
func (p *path) find(document any) (values []any, err error) {
	v, err := plain(document)
	if err != nil {
		return nil, err
	}
	err = guarded(func() error {
		results, err := p.compiled.FindResults(v)
		for _, some := range results {
			for _, r := range some {
				if r.CanInterface() && r.Interface() != nil {
					values = append(values, r.Interface())
				}
			}
		}
		return err
	})
	return values, err
}

// guarded runs the library on a document: it panics where a filter compares
// values of different types.
func guarded(run func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the expression does not suit the document: %v", fault)
		}
	}()
	return run()
}

// plain is a document as maps, slices and values, with whole numbers as int64.
func plain(document any) (any, error) {
	raw, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return plainJSON(raw), nil
}

// plainJSON is plain of an encoded document, and nil of a broken one.
func plainJSON(raw []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return nil
	}
	return withNumbers(v)
}

// withNumbers replaces the numbers of a decoded document by int64 and float64.
func withNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = withNumbers(value)
		}
	case []any:
		for i, value := range v {
			v[i] = withNumbers(value)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return v.String()
	}
	return v
}

// field is a flag for the path of one field.
type field struct {
	text string
	path *path
}

func (f *field) String() string { return f.text }

// Type implements pflag.Value.
func (f *field) Type() string { return "jsonpath" }

// Set implements pflag.Value.
func (f *field) Set(text string) (err error) {
	f.text = text
	f.path, err = parseField(text)
	return err
}

// column is one of custom-columns.
type column struct {
	head string
	path *path
}

// parseColumns reads HEAD:.path,HEAD:.path….
func parseColumns(text string) ([]column, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("%d bytes long, the limit is %d", len(text), maxTemplate)
	}
	var columns []column
	for part := range strings.SplitSeq(text, ",") {
		head, of, both := strings.Cut(part, ":")
		if !both || head == "" || of == "" {
			return nil, fmt.Errorf("%q: want HEAD:.path, as in NAME:.metadata.name,PHASE:.status.phase", part)
		}
		p, err := parseField(of)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", head, err)
		}
		columns = append(columns, column{head, p})
	}
	return columns, nil
}

// cells returns the columns of a document; several values of one path are
// separated by commas.
func cells(columns []column, document any) ([]string, error) {
	row := make([]string, 0, len(columns))
	for _, c := range columns {
		values, err := c.path.find(document)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.head, err)
		}
		texts := make([]string, 0, len(values))
		for _, v := range values {
			texts = append(texts, fmt.Sprint(v))
		}
		row = append(row, strings.Join(texts, ","))
	}
	return row, nil
}
