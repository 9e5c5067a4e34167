package conformance

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sentValue stands in a documented answer for the value that was sent.
const sentValue = "..."

// comparison compares an answer with the documented answer.
type comparison struct {
	varies  []string
	differs []difference
	absent  []string // fields that the answer must not have
	sent    any
}

// matches reports whether a field is pattern or part of it. A * in the pattern is
// any element of a list or any key.
func matches(pattern string, field []string) bool {
	parts := split(pattern)
	if len(parts) > len(field) {
		return false
	}
	for i, p := range parts {
		if p != "*" && p != field[i] {
			return false
		}
	}
	return true
}

// split cuts a field into its names. nvidia.com/gpu is one name.
func split(field string) []string {
	const gpu = "nvidia.com/gpu"
	parts := strings.Split(strings.ReplaceAll(field, gpu, "\x00"), ".")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "\x00", gpu)
	}
	return parts
}

// has reports whether a value has a field.
func has(v any, field string) bool { return len(found(v, split(field))) > 0 }

// found are the values of a field, several where it has a *.
func found(v any, field []string) []any {
	if len(field) == 0 {
		return []any{v}
	}
	var all []any
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if field[0] == "*" || field[0] == name {
				all = append(all, found(v[name], field[1:])...)
			}
		}
	case []any:
		for i := range v {
			if field[0] == "*" || field[0] == strconv.Itoa(i) {
				all = append(all, found(v[i], field[1:])...)
			}
		}
	}
	return all
}

// compare returns a line for each field of want that got has not. Fields that got
// has beside them are allowed, but for those that must be absent.
func (c comparison) compare(want, got any) []string {
	lines := c.value(nil, want, got)
	for _, field := range c.absent {
		if has(got, field) {
			lines = append(lines, fmt.Sprintf("%s works: take it from the table of docs/api.md", field))
		}
	}
	return lines
}

func (c comparison) value(at []string, want, got any) []string {
	field := strings.Join(at, ".")
	if slices.ContainsFunc(c.absent, func(p string) bool { return matches(p, at) }) {
		return nil
	}
	for _, d := range c.differs {
		if !matches(d.Field, at) {
			continue
		}
		if !reflect.DeepEqual(d.Want, got) {
			return []string{fmt.Sprintf("%s is %v, want %v, which differs from the document on purpose", field, got, d.Want)}
		}
		return nil
	}
	if want == sentValue {
		return c.comesBack(at, found(c.sent, at), got)
	}
	switch want := want.(type) {
	case map[string]any:
		return c.object(at, want, got)
	case []any:
		list, _ := got.([]any)
		var lines []string
		for i := range want {
			if i >= len(list) {
				return append(lines, fmt.Sprintf("%s has %d elements, the document has %d", field, len(list), len(want)))
			}
			lines = append(lines, c.value(append(slices.Clone(at), strconv.Itoa(i)), want[i], list[i])...)
		}
		return lines
	}
	if slices.ContainsFunc(c.varies, func(p string) bool { return matches(p, at) }) || isTime(want) {
		return alike(field, want, got)
	}
	if !reflect.DeepEqual(want, got) {
		return []string{fmt.Sprintf("%s is %v, want %v", field, got, want)}
	}
	return nil
}

func (c comparison) object(at []string, want map[string]any, got any) []string {
	object, ok := got.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%s is %v, want an object", strings.Join(at, "."), got)}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		lines = append(lines, c.value(append(slices.Clone(at), name), want[name], object[name])...)
	}
	return lines
}

// comesBack checks that the answer repeats a value that was sent. Lists of the
// document that are cut short have nothing to compare but that they are lists.
func (c comparison) comesBack(at []string, sent []any, got any) []string {
	if len(sent) == 1 {
		c.varies, c.differs = nil, nil
		return c.value(at, sent[0], got)
	}
	switch got := got.(type) {
	case []any:
		if len(got) > 0 {
			return nil
		}
	case map[string]any:
		if len(got) > 0 {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s is %v, want an object or a list with content", strings.Join(at, "."), got)}
}

func isTime(v any) bool {
	text, _ := v.(string)
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// alike checks that a value has the form of a documented value.
func alike(field string, want, got any) []string {
	switch {
	case reflect.TypeOf(want) != reflect.TypeOf(got):
		return []string{fmt.Sprintf("%s is %v (%T), want a %T such as %v", field, got, got, want, want)}
	case got == "":
		return []string{fmt.Sprintf("%s is empty, want a value such as %v", field, want)}
	case isTime(want) && !isTime(got):
		return []string{fmt.Sprintf("%s is %v, want a time such as %v", field, got, want)}
	}
	return nil
}

func TestAnswersAreComparedFieldByField(t *testing.T) {
	type o = map[string]any
	for name, c := range map[string]struct {
		comparison
		want, got any
		lines     int
	}{
		"equal answers":                           {want: o{"a": "1", "b": []any{o{"c": true}}}, got: o{"a": "1", "b": []any{o{"c": true}}}},
		"a field beside the documented ones":      {want: o{"a": "1"}, got: o{"a": "1", "z": "2"}},
		"another value":                           {want: o{"a": "1"}, got: o{"a": "2"}, lines: 1},
		"a number in place of a text":             {want: o{"a": "1"}, got: o{"a": 1.0}, lines: 1},
		"a missing field":                         {want: o{"a": "1", "b": "2"}, got: o{"a": "1"}, lines: 1},
		"a shorter list":                          {want: o{"a": []any{"1", "2"}}, got: o{"a": []any{"1"}}, lines: 1},
		"a time is another time":                  {want: o{"a": "2024-01-15T10:30:00Z"}, got: o{"a": "2026-01-15T10:30:00Z"}},
		"a time is no time":                       {want: o{"a": "2024-01-15T10:30:00Z"}, got: o{"a": "soon"}, lines: 1},
		"a value that varies":                     {comparison: comparison{varies: []string{"a.*.b"}}, want: o{"a": []any{o{"b": "1"}}}, got: o{"a": []any{o{"b": "2"}}}},
		"a value that varies is absent":           {comparison: comparison{varies: []string{"a"}}, want: o{"a": "1"}, got: o{}, lines: 1},
		"a value that varies is empty":            {comparison: comparison{varies: []string{"a"}}, want: o{"a": "1"}, got: o{"a": ""}, lines: 1},
		"a value that varies is of another type":  {comparison: comparison{varies: []string{"a"}}, want: o{"a": "1"}, got: o{"a": 1.0}, lines: 1},
		"a resource is one name":                  {comparison: comparison{varies: []string{"used.nvidia.com/gpu"}}, want: o{"used": o{"nvidia.com/gpu": "1"}}, got: o{"used": o{"nvidia.com/gpu": "2"}}},
		"a listed field is absent":                {comparison: comparison{absent: []string{"a"}}, want: o{"a": "1"}, got: o{}},
		"a listed field works":                    {comparison: comparison{absent: []string{"a"}}, want: o{"a": "1"}, got: o{"a": "2"}, lines: 1},
		"a difference on purpose":                 {comparison: comparison{differs: []difference{{Field: "a", Want: "2"}}}, want: o{"a": "1"}, got: o{"a": "2"}},
		"a difference on purpose has gone":        {comparison: comparison{differs: []difference{{Field: "a", Want: "2"}}}, want: o{"a": "1"}, got: o{"a": "1"}, lines: 1},
		"the value that was sent comes back":      {comparison: comparison{sent: o{"a": o{"b": "1000m"}}}, want: o{"a": sentValue}, got: o{"a": o{"b": "1000m", "c": "d"}}},
		"another value than was sent comes back":  {comparison: comparison{sent: o{"a": o{"b": "1000m"}}}, want: o{"a": sentValue}, got: o{"a": o{"b": "1"}}, lines: 1},
		"a list that the document cuts has items": {want: o{"items": sentValue}, got: o{"items": []any{"x"}}},
		"a list that the document cuts is empty":  {want: o{"items": sentValue}, got: o{"items": []any{}}, lines: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if lines := c.compare(c.want, c.got); len(lines) != c.lines {
				t.Errorf("got %d lines, want %d: %q", len(lines), c.lines, lines)
			}
		})
	}
}
