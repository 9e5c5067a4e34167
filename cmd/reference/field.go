package reference

import (
	"reflect"
	"strings"
)

// Field describes one field of a document, or a document as a whole.
type Field struct {
	// Name is the field's name in JSON and YAML; of a document its kind.
	Name string `json:"name"`
	// Path leads from the document to the field, without indexes and without keys of
	// maps; it is empty for the document.
	Path string `json:"path,omitempty"`
	// Type is the field's type in words, such as "list of object".
	Type string `json:"type"`
	Text string `json:"description"`
	// Default is the value of a field that is left out.
	Default string `json:"default,omitempty"`
	Unit    string `json:"unit,omitempty"`
	// Range is LOW..HIGH, both included; either may be empty.
	Range string `json:"range,omitempty"`
	// Values are all values that the field takes.
	Values []string `json:"values,omitempty"`
	// Example is a value in YAML.
	Example  string `json:"example,omitempty"`
	Required bool   `json:"required,omitempty"`
	// ReadOnly fields are set by the server; values of a submission are ignored.
	ReadOnly bool `json:"readOnly,omitempty"`
	// Recorded fields are kept and have no effect in this version, Refused ones are
	// answered with 422.
	Recorded bool    `json:"recordedOnly,omitempty"`
	Refused  bool    `json:"notSupported,omitempty"`
	Fields   []Field `json:"fields,omitempty"`
}

// texts are comments, by TYPE or TYPE.FIELD of the Go source.
type texts map[string]string

// written are the types of fields that are decoded elsewhere than in package api,
// by TYPE.FIELD.
type written map[string]reflect.Type

// walker describes types.
type walker struct {
	texts   texts
	written written
	kind    string // the document whose fields are described
}

// document describes a type as a whole.
func (w walker) document(t reflect.Type) Field {
	w.kind = t.Name()
	return Field{Name: t.Name(), Type: "object", Text: w.texts[t.Name()], Fields: w.fields(t, Field{})}
}

// fields describes the fields of a struct, which of is, in the order of the
// source.
func (w walker) fields(t reflect.Type, of Field) []Field {
	var all []Field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		all = append(all, w.field(t.Name()+"."+f.Name, f, Field{
			Name: name, Path: strings.TrimPrefix(of.Path+"."+name, "."), ReadOnly: of.ReadOnly, Refused: of.Refused,
		}))
	}
	return all
}

// field adds the facts of a struct's field to its name and path.
func (w walker) field(id string, of reflect.StructField, f Field) Field {
	t := of.Type
	if other, ok := w.written[id]; ok {
		t = other
	}
	tag := of.Tag.Get
	f.Type, f.Text = typeName(t, tag("format")), renamed(w.texts[id], of.Name, f.Name)
	f.Default, f.Unit, f.Range, f.Example = tag("default"), tag("unit"), tag("range"), tag("example")
	f.Required, f.Recorded = tag("required") == "true", tag("recorded") == "true" || tag("recorded") == w.kind
	f.ReadOnly, f.Refused = f.ReadOnly || tag("by") == "server", f.Refused || tag("refused") == "true"
	if values := tag("oneof"); values != "" {
		f.Values = strings.Split(values, ",")
	}
	if inner := element(t); inner.Kind() == reflect.Struct {
		f.Fields = w.fields(inner, f)
	}
	return f
}

// renamed is a comment that begins with the field's name in JSON, not in Go.
func renamed(text, goName, name string) string {
	if rest, ok := strings.CutPrefix(text, goName+" "); ok {
		return name + " " + rest
	}
	return text
}

// element is the type inside pointers, lists and maps.
func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

// typeName words a type. The format says more of texts: a quantity, a duration, a
// time.
func typeName(t reflect.Type, format string) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem(), format)
	case reflect.Slice:
		return "list of " + typeName(t.Elem(), format)
	case reflect.Map:
		return "map of " + typeName(t.Elem(), format)
	case reflect.Struct:
		return "object"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64:
		if format == "quantity" { // a type of its own writes the amount with its unit
			return format
		}
		return "integer"
	case reflect.Float64:
		return "number"
	}
	switch {
	case format == "time":
		return "time (RFC 3339)"
	case format != "":
		return format
	}
	return "string"
}
