package strict

import (
	"fmt"
	"reflect"
)

// maxDepth bounds how deep a value may be nested whose type does not.
const maxDepth = 32

// raw keeps the text of the next value, after a check of its syntax.
func (d *decoder) raw(v reflect.Value, f form) *Error {
	start := d.pos
	d.raws = &f.text
	err := d.skip(0)
	d.raws = nil
	if err != nil {
		return err
	}
	v.SetBytes(append([]byte(nil), d.data[start:d.pos]...))
	return nil
}

// skip passes over a value of any type: no key of an object twice, and at most
// maxDepth objects and arrays within each other.
func (d *decoder) skip(depth int) *Error {
	d.space()
	if depth > maxDepth {
		return d.fail(fmt.Sprintf("nested deeper than %d", maxDepth))
	}
	switch c := d.peek(); {
	case c == '{':
		seen := map[string]bool{}
		return d.members(func(key string) *Error {
			if seen[key] {
				return d.fail("the key is given twice")
			}
			seen[key] = true
			if err := d.checkRaw(key); err != nil {
				return err
			}
			return d.skip(depth + 1)
		})
	case c == '[':
		return d.elements(func(int) *Error { return d.skip(depth + 1) })
	case c == '"':
		s, err := d.quoted()
		if err != nil {
			return err
		}
		return d.checkRaw(s)
	case isNumberStart(c):
		_, err := d.number()
		return err
	case d.word("true"), d.word("false"), d.word("null"):
		return nil
	}
	return d.syntax("a value")
}

// checkRaw is checkText for a string within a json.RawMessage.
func (d *decoder) checkRaw(s string) *Error {
	if d.raws == nil {
		return nil
	}
	return d.checkText(s, *d.raws)
}
