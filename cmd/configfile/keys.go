package configfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// CheckKeys refuses a JSON document with a field that the type of into does not
// have in exactly this spelling. The JSON library of Go matches fields without
// regard to case, so that "nodeid" would overwrite "nodeID". A value of another
// type than the field's is refused with the field's path and the value; types that
// decode themselves check their values later.
func CheckKeys(doc []byte, into any) error {
	return checkKeys(doc, reflect.TypeOf(into), "")
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func checkKeys(doc []byte, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return nil
	}
	if err := checkType(doc, t, path); err != nil || string(bytes.TrimSpace(doc)) == "null" {
		return err
	}
	switch t.Kind() {
	case reflect.Struct:
		fields := fieldsOf(t)
		return members(doc, path, func(key, at string, value json.RawMessage) error {
			f, known := fields[key]
			if !known {
				return fmt.Errorf("unknown field %q%s", at, meant(key, fields))
			}
			return checkKeys(value, f, at)
		})
	case reflect.Map:
		return members(doc, path, func(_, at string, value json.RawMessage) error { return checkKeys(value, t.Elem(), at) })
	case reflect.Slice, reflect.Array:
		var elements []json.RawMessage
		if json.Unmarshal(doc, &elements) != nil {
			return nil
		}
		for i, e := range elements {
			if err := checkKeys(e, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkType refuses a value of another type than the field's; null passes.
func checkType(doc []byte, t reflect.Type, path string) error {
	value := bytes.TrimSpace(doc)
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	isNumber := value[0] == '-' || value[0] >= '0' && value[0] <= '9'
	want, fits := "", true
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		want, fits = "keys with values below it", value[0] == '{'
	case reflect.Slice, reflect.Array:
		want, fits = "a list", value[0] == '['
	case reflect.Bool:
		want, fits = "true or false", value[0] == 't' || value[0] == 'f'
	case reflect.String:
		want, fits = "text", value[0] == '"'
		if isNumber || value[0] == 't' || value[0] == 'f' {
			want = "text, in quotes"
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		want = "a whole number"
		_, err := strconv.ParseInt(string(value), 10, t.Bits())
		fits = err == nil
	}
	if fits {
		return nil
	}
	if path == "" {
		path = "the file"
	}
	return fmt.Errorf("%s: %s: want %s", path, excerpt(value), want)
}

// excerpt shows the beginning of a value.
func excerpt(value []byte) string {
	const most = 80
	if len(value) <= most {
		return string(value)
	}
	return strings.ToValidUTF8(string(value[:most]), "") + "…"
}

// members calls one for each member of an object, in the order of the document,
// and refuses a key that is given twice.
func members(doc []byte, path string, one func(key, at string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil //nolint:nilerr // the decoder of the whole document says why
	}
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		key, isKey := token.(string)
		var value json.RawMessage
		if err != nil || !isKey || d.Decode(&value) != nil {
			return nil //nolint:nilerr // as above
		}
		at := key
		if path != "" {
			at = path + "." + key
		}
		if seen[key] {
			return fmt.Errorf("%s: the field is given twice", at)
		}
		seen[key] = true
		if err := one(key, at, value); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf returns the fields of a struct by their names in JSON, those of
// embedded structs among them.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "":
			for inner, of := range fieldsOf(f.Type) {
				fields[inner] = of
			}
		case name == "":
			fields[f.Name] = f.Type
		default:
			fields[name] = f.Type
		}
	}
	return fields
}

// meant names the field that a key differs from in the case of letters alone.
func meant(key string, fields map[string]reflect.Type) string {
	for name := range fields {
		if strings.EqualFold(name, key) {
			return fmt.Sprintf(", did you mean %q?", name)
		}
	}
	return ""
}
