// Package samplefile reads a sample configuration file for its reference: the
// comment above a key is the key's text. The samples in systemd/ are installed with
// the programs, so a person reads the same text on the host and in docs/reference.
package samplefile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// Key is one key of a configuration file.
type Key struct {
	Path string
	Type string
	Text string
	// Default is the value without the key, Example one from the sample.
	Default, Example string
}

// Any stands in paths for the key of a map.
const Any = "NAME"

// Fact is the range of a key, or the values that it takes, and values at its edges
// and beyond them.
type Fact struct {
	Range, Unit     string
	Within, Outside []string
}

// Keys returns the leaves of a configuration in the order of its struct, with the
// texts of a sample. The defaults are those of the value.
func Keys(sample string, defaults any) ([]Key, error) {
	v := reflect.ValueOf(defaults)
	var keys []Key
	if err := walk(v, "", &keys); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, k := range keys {
		for path := k.Path; ; {
			known[path] = true
			i := strings.LastIndex(path, ".")
			if i < 0 {
				break
			}
			path = path[:i]
		}
	}
	texts, examples := comments(sample, known)
	for i := range keys {
		keys[i].Text, keys[i].Example = texts[keys[i].Path], examples[keys[i].Path]
		if group := strings.LastIndex(keys[i].Path, "."); keys[i].Text == "" && group > 0 {
			keys[i].Text = texts[keys[i].Path[:group]] // the comment above the group is about its keys
		}
	}
	return keys, nil
}

func walk(v reflect.Value, path string, keys *[]Key) error {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("json")
		at := strings.TrimPrefix(path+"."+name, ".")
		switch {
		case f.Anonymous:
			if err := walk(v.Field(i), path, keys); err != nil {
				return err
			}
		case name == "":
		case f.Type.Kind() == reflect.Struct && f.Type.Name() != "Duration":
			if err := walk(v.Field(i), at, keys); err != nil {
				return err
			}
		case f.Type.Kind() == reflect.Map && f.Type.Elem().Kind() == reflect.Struct:
			if err := walk(reflect.Zero(f.Type.Elem()), at+"."+Any, keys); err != nil {
				return err
			}
		default:
			shown, err := text(v.Field(i))
			if err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			*keys = append(*keys, Key{Path: at, Type: typeName(f.Type), Default: shown})
		}
	}
	return nil
}

// text is a default as a person writes it; "" for none.
func text(v reflect.Value) (string, error) {
	if v.Type().Name() == "Duration" {
		shown := fmt.Sprint(v.Field(0).Interface())
		for _, zero := range []string{"m0s", "h0m"} {
			if strings.HasSuffix(shown, zero) {
				shown = shown[:len(shown)-2]
			}
		}
		return shown, nil
	}
	if v.IsZero() && v.Kind() != reflect.Bool && v.Kind() != reflect.Int {
		return "", nil
	}
	raw, err := json.Marshal(v.Interface())
	return strings.Trim(string(raw), `"`), err
}

func typeName(t reflect.Type) string {
	switch {
	case t.Name() == "Duration":
		return "duration"
	case t.Name() == "Scalar":
		return "text or number"
	}
	switch t.Kind() {
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	case reflect.Map:
		return "map of " + typeName(t.Elem())
	case reflect.Bool:
		return "boolean"
	case reflect.Int:
		return "whole number"
	}
	return "text"
}

var keyLine = regexp.MustCompile(`^( *)([A-Za-z][A-Za-z0-9]*):(?: +(.*))?$`)

// comments reads the texts and the examples of a sample. A key may be commented out;
// one without a text of its own, directly below its neighbour, shares its text.
func comments(sample string, known map[string]bool) (texts, examples map[string]string) {
	texts, examples = map[string]string{}, map[string]string{}
	var stack []string
	var pending []string
	shared := ""
	for line := range strings.Lines(sample) {
		line = strings.TrimRight(line, " \n")
		body := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(body)]
		if body == "" {
			pending, shared = nil, ""
			continue
		}
		commented := strings.HasPrefix(body, "#")
		if commented {
			line = indent + strings.TrimPrefix(strings.TrimPrefix(body, "#"), " ")
		}
		path, value, isKey := key(line, &stack, known)
		switch {
		case isKey:
			if len(pending) > 0 {
				shared = strings.Join(pending, " ")
			}
			if texts[path] == "" {
				texts[path] = shared
			}
			if value != "" && value != `""` && value != "[]" && value != "{}" && (commented || examples[path] == "") {
				examples[path] = value
			}
			pending = nil
			if value == "" {
				shared = "" // what is below has texts of its own
			}
		case commented:
			pending = append(pending, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")))
		}
	}
	return texts, examples
}

// key reads a line as a key that the configuration has, below the keys of stack.
func key(line string, stack *[]string, known map[string]bool) (path, value string, ok bool) {
	m := keyLine.FindStringSubmatch(line)
	if m == nil || len(m[1])%2 != 0 || len(m[1])/2 > len(*stack) {
		return "", "", false
	}
	above := (*stack)[:len(m[1])/2]
	for _, name := range []string{m[2], Any} {
		at := strings.Join(append(append([]string{}, above...), name), ".")
		if known[at] {
			*stack = append(append([]string{}, above...), name)
			return at, m[3], true
		}
	}
	return "", "", false
}
