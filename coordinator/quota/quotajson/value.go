package quotajson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// value is a JSON value with the path by which errors name it.
type value struct {
	path   string
	scalar any // nil, bool, string or json.Number; delimiters are in kind
	kind   kind
	keys   []string // of an object, as written
	values []value  // of an object or array
}

type kind uint8

const (
	scalar kind = iota
	object
	array
)

// FieldError is input that is refused.
type FieldError struct {
	Path string // such as spec.nodes.A.quota.cpu; empty for the document
	What string
}

// Error returns e.g. `spec.nodes.A.quota.cpu: "x": not an amount`.
func (e *FieldError) Error() string {
	if e.Path == "" {
		return e.What
	}
	return e.Path + ": " + e.What
}

func (v *value) fail(format string, args ...any) error {
	return &FieldError{v.path, fmt.Sprintf(format, args...)}
}

// maxDepth bounds the nesting of a document.
const maxDepth = 32

// parse reads one document.
func parse(data []byte) (*value, error) {
	if !utf8.Valid(data) {
		return nil, &FieldError{"", "not valid UTF-8"}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v := &value{}
	if err := v.read(d, 0); err != nil {
		return nil, err
	}
	if d.More() || len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		return nil, &FieldError{"", fmt.Sprintf("byte %d: text behind the document", d.InputOffset())}
	}
	return v, nil
}

func (v *value) read(d *json.Decoder, depth int) error {
	if depth > maxDepth {
		return v.fail("nested deeper than %d", maxDepth)
	}
	token, err := d.Token()
	if err != nil {
		return v.syntax(d, err)
	}
	delim, isDelim := token.(json.Delim)
	switch {
	case !isDelim:
		v.scalar = token
		return nil
	case delim == '[':
		v.kind = array
		for d.More() {
			v.values = append(v.values, value{path: v.path + "[" + strconv.Itoa(len(v.values)) + "]"})
			if err := v.values[len(v.values)-1].read(d, depth+1); err != nil {
				return err
			}
		}
	default:
		v.kind = object
		if err := v.readMembers(d, depth); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil { // the closing delimiter
		return v.syntax(d, err)
	}
	return nil
}

func (v *value) readMembers(d *json.Decoder, depth int) error {
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return v.syntax(d, err)
		}
		key, isString := token.(string)
		if !isString {
			return v.fail("a key that is no string")
		}
		if seen[key] {
			return v.fail("the key %q appears twice", key)
		}
		seen[key] = true
		path := key
		if v.path != "" {
			path = v.path + "." + key
		}
		v.keys, v.values = append(v.keys, key), append(v.values, value{path: path})
		if err := v.values[len(v.values)-1].read(d, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (v *value) syntax(d *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return v.fail("byte %d: %v", syntax.Offset, err)
	}
	return v.fail("byte %d: the document ends here", d.InputOffset())
}

// is reports what the value is, for messages.
func (v *value) is() string {
	switch v.kind {
	case object:
		return "an object"
	case array:
		return "an array"
	}
	switch x := v.scalar.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(clip(x))
	case json.Number:
		return clip(x.String())
	default:
		return fmt.Sprint(x)
	}
}

// clip bounds somebody else's text in a message.
func clip(s string) string {
	if len(s) <= 64 {
		return s
	}
	return s[:64] + "…"
}

// null reports whether the value is null.
func (v *value) null() bool { return v.kind == scalar && v.scalar == nil }

// fields visits an object's members; an unknown one is visited too, and
// refused by what visit returns.
func (v *value) fields(visit func(key string, member *value) error) error {
	if v.kind != object {
		return v.fail("want an object, found %s", v.is())
	}
	for i, key := range v.keys {
		if err := visit(key, &v.values[i]); err != nil {
			return err
		}
	}
	return nil
}

func (v *value) unknown() error { return v.fail("unknown field") }

// text reads a string.
func (v *value) text() (string, error) {
	if s, ok := v.scalar.(string); ok && v.kind == scalar {
		return s, nil
	}
	return "", v.fail("want a string, found %s", v.is())
}

// integer reads a number without fraction.
func (v *value) integer() (int, error) {
	if n, ok := v.scalar.(json.Number); ok && v.kind == scalar {
		if i, err := strconv.Atoi(n.String()); err == nil {
			return i, nil
		}
	}
	return 0, v.fail("want an integer, found %s", v.is())
}
