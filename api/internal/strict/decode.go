package strict

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/musterd/muster/api/text"
)

// Decode reads one document. The errors name each fault and its place, at most MaxErrors
// of them in the order of the document. A fault of the syntax ends the reading; the
// value is then nil. With other faults the value lacks the fields that have one. JSON
// null counts as absent.
func (dec Decoder[T]) Decode(doc []byte) (*T, []*Error) {
	d := &decoder{data: doc, sharing: dec.sharing, stored: dec.stored}
	if !utf8.Valid(doc) {
		return nil, []*Error{d.fail("the document is not valid UTF-8")}
	}
	v := new(T)
	d.space()
	if d.peek() != '{' {
		return nil, []*Error{d.syntax("an object {…}")}
	}
	if err := d.value(reflect.ValueOf(v).Elem(), dec.plan, form{}); err != nil {
		return nil, append(d.faults, err)
	}
	d.space()
	if d.pos < len(d.data) {
		return nil, append(d.faults, d.syntax("the end of the document"))
	}
	return v, d.faults
}

// MaxErrors bounds the faults of one document.
const MaxErrors = 32

// note keeps a fault beside which the document can be read on; with as many as may be
// kept, the fault ends the reading.
func (d *decoder) note(e *Error) *Error {
	if len(d.faults) == MaxErrors-1 {
		return e
	}
	d.faults = append(d.faults, e)
	return nil
}

// pass notes a fault of the next value and passes over the value.
func (d *decoder) pass(e *Error) *Error {
	if e := d.note(e); e != nil {
		return e
	}
	return d.skip(0)
}

// decoder is one pass over one document.
type decoder struct {
	data []byte
	// sharing: long strings share the memory of data.
	sharing bool
	// stored: an earlier version, perhaps with fewer rules for characters, has accepted the
	// document.
	stored bool
	// raws are the characters of the strings within a json.RawMessage; nil outside.
	raws   *text.Class
	pos    int
	path   []step
	values int // members and elements so far
	faults []*Error
}

// maxValues bounds the members of objects and the elements of arrays of a whole
// document: its value in memory is many times as large as its text.
const maxValues = 1 << 16

// count notes a member or an element more.
func (d *decoder) count() *Error {
	if d.values++; d.values <= maxValues {
		return nil
	}
	e := d.fail(fmt.Sprintf("the document has more than %d values", maxValues))
	e.Problem = OutOfRange
	return e
}

// step is a field or key, or an index where name is "".
type step struct {
	name  string
	index int
}

// value decodes the next value into v. The nesting is bounded by the type, and
// by maxDepth below json.RawMessage.
func (d *decoder) value(v reflect.Value, p *plan, f form) *Error {
	d.space()
	if d.peek() == 'n' {
		if !d.word("null") {
			return d.syntax("a value")
		}
		v.SetZero()
		return nil
	}
	if p.raw {
		return d.raw(v, f)
	}
	switch p.kind {
	case reflect.Pointer:
		target := reflect.New(p.elem.typ)
		if err := d.value(target.Elem(), p.elem, f); err != nil {
			return err
		}
		v.Set(target)
		return nil
	case reflect.Struct:
		return d.object(v, p)
	case reflect.Map:
		return d.dictionary(v, p, f)
	case reflect.Slice:
		return d.array(v, p, f)
	case reflect.Bool:
		return d.boolean(v)
	case reflect.String:
		return d.text(v, f)
	default:
		return d.integer(v)
	}
}

// members walks an object's members; one is called at each value.
func (d *decoder) members(one func(key string) *Error) *Error {
	if d.peek() != '{' {
		return d.wrongType("an object {…}")
	}
	d.pos++
	d.space()
	if d.peek() == '}' {
		d.pos++
		return nil
	}
	for {
		d.space()
		if d.peek() != '"' {
			return d.syntax("a field name in quotes")
		}
		key, err := d.quoted()
		if err != nil {
			return err
		}
		d.space()
		if d.peek() != ':' {
			return d.syntax("':' after a field name")
		}
		d.pos++
		d.path = append(d.path, step{name: key})
		if err := d.count(); err != nil {
			return err
		}
		if err := one(key); err != nil {
			return err
		}
		d.path = d.path[:len(d.path)-1]
		d.space()
		switch d.peek() {
		case ',':
			d.pos++
		case '}':
			d.pos++
			return nil
		default:
			return d.syntax("',' or '}'")
		}
	}
}

func (d *decoder) object(v reflect.Value, p *plan) *Error {
	var seen uint64
	return d.members(func(key string) *Error {
		i := p.lookup(key)
		if i < 0 {
			if near := p.nearest(key); near != "" {
				return d.pass(d.fail(fmt.Sprintf("unknown field, did you mean %q?", near)))
			}
			return d.pass(d.fail("unknown field"))
		}
		if seen&(1<<i) != 0 {
			return d.pass(d.fail("the field is given twice"))
		}
		seen |= 1 << i
		f := &p.fields[i]
		return d.value(v.Field(f.index), f.plan, f.form)
	})
}

func (d *decoder) dictionary(v reflect.Value, p *plan, f form) *Error {
	m := reflect.MakeMap(p.typ)
	element := reflect.New(p.elem.typ).Elem()
	if err := d.members(func(key string) *Error {
		k := reflect.ValueOf(key).Convert(p.typ.Key())
		if m.MapIndex(k).IsValid() {
			return d.pass(d.fail("the key is given twice"))
		}
		if err := d.checkText(key, text.Line); err != nil {
			return err
		}
		element.SetZero()
		if err := d.value(element, p.elem, f); err != nil {
			return err
		}
		m.SetMapIndex(k, element)
		return nil
	}); err != nil {
		return err
	}
	v.Set(m)
	return nil
}

// elements walks an array's elements; one is called at each value.
func (d *decoder) elements(one func(i int) *Error) *Error {
	if d.peek() != '[' {
		return d.wrongType("an array […]")
	}
	d.pos++
	d.space()
	if d.peek() == ']' {
		d.pos++
		return nil
	}
	for i := 0; ; i++ {
		d.path = append(d.path, step{index: i})
		if err := d.count(); err != nil {
			return err
		}
		if err := one(i); err != nil {
			return err
		}
		d.path = d.path[:len(d.path)-1]
		d.space()
		switch d.peek() {
		case ',':
			d.pos++
		case ']':
			d.pos++
			return nil
		default:
			return d.syntax("',' or ']'")
		}
	}
}

func (d *decoder) array(v reflect.Value, p *plan, f form) *Error {
	list := reflect.MakeSlice(p.typ, 0, 0)
	if err := d.elements(func(int) *Error {
		element := reflect.New(p.elem.typ).Elem()
		if err := d.value(element, p.elem, f); err != nil {
			return err
		}
		list = reflect.Append(list, element)
		return nil
	}); err != nil {
		return err
	}
	v.Set(list)
	return nil
}

func (d *decoder) boolean(v reflect.Value) *Error {
	switch {
	case d.peek() == 't' && d.word("true"):
		v.SetBool(true)
	case d.peek() == 'f' && d.word("false"):
		v.SetBool(false)
	default:
		return d.wrongType("true or false")
	}
	return nil
}

func (d *decoder) text(v reflect.Value, f form) *Error {
	if f.numbers && isNumberStart(d.peek()) {
		number, err := d.number()
		if err != nil {
			return err
		}
		v.SetString(number)
		return nil
	}
	if d.peek() != '"' {
		return d.wrongType("a string")
	}
	s, err := d.quoted()
	if err != nil {
		return err
	}
	v.SetString(s)
	return d.checkText(s, f.text)
}

func (d *decoder) integer(v reflect.Value) *Error {
	if !isNumberStart(d.peek()) {
		return d.wrongType("a whole number")
	}
	number, err := d.number()
	if err != nil {
		return err
	}
	if strings.ContainsAny(number, ".eE") {
		return d.note(d.fail(fmt.Sprintf("want a whole number, got %s", excerpt(number))))
	}
	n, parseErr := strconv.ParseInt(number, 10, v.Type().Bits())
	if parseErr != nil {
		e := d.fail(fmt.Sprintf("%s does not fit into %d bits", excerpt(number), v.Type().Bits()))
		e.Problem = OutOfRange
		return d.note(e)
	}
	v.SetInt(n)
	return nil
}
