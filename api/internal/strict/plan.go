package strict

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/musterd/muster/api/text"
)

// plan describes the documents that a Go type accepts, computed once per type.
type plan struct {
	typ    reflect.Type
	kind   reflect.Kind
	raw    bool    // json.RawMessage
	elem   *plan   // of pointers, slices and maps
	fields []field // of structs
}

// field is one JSON member of a struct.
type field struct {
	name  string
	index int
	plan  *plan
	form
}

// form is how the strings of a field may be written.
type form struct {
	// numbers: where a string is wanted, a bare number is taken as its text
	// (tag `strict:"number"`), so that "cpu: 2" works as "cpu: \"2\"" does.
	numbers bool
	// text is the class of the strings (tag `text`).
	text text.Class
}

// Decoder reads documents into values of type T. It is immutable and safe for
// concurrent use.
type Decoder[T any] struct {
	plan    *plan
	sharing bool
	stored  bool
}

// Sharing is the decoder whose values share the memory of long strings with the document:
// nobody may change the document afterwards.
func (dec Decoder[T]) Sharing() Decoder[T] {
	dec.sharing = true
	return dec
}

// Stored is the decoder for documents of the store: the characters of their texts are not
// judged again.
func (dec Decoder[T]) Stored() Decoder[T] {
	dec.stored = true
	return dec
}

// For builds the decoder of T, a struct of strings, integers, booleans and
// pointers to, slices of, structs of and string-keyed maps of these, and of
// json.RawMessage, which takes any value as it was written. It panics on any
// other type, which is a mistake in the program.
func For[T any]() Decoder[T] {
	p := compile(reflect.TypeFor[T](), nil)
	if p.kind != reflect.Struct {
		panic(fmt.Sprintf("strict: %s is not a struct", p.typ))
	}
	return Decoder[T]{plan: p}
}

func compile(t reflect.Type, above []reflect.Type) *plan {
	for _, a := range above {
		if a == t {
			panic(fmt.Sprintf("strict: %s contains itself", t))
		}
	}
	above = append(above, t)
	p := &plan{typ: t, kind: t.Kind(), raw: t == reflect.TypeFor[json.RawMessage]()}
	if p.raw {
		return p
	}
	switch p.kind {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64:
	case reflect.Pointer, reflect.Slice:
		p.elem = compile(t.Elem(), above)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic(fmt.Sprintf("strict: %s has keys that are not strings", t))
		}
		p.elem = compile(t.Elem(), above)
	case reflect.Struct:
		p.fields = compileFields(t, above)
	default:
		panic(fmt.Sprintf("strict: %s cannot be decoded", t))
	}
	return p
}

func compileFields(t reflect.Type, above []reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields = append(fields, field{
			name: name, index: i, plan: compile(f.Type, above),
			form: form{numbers: f.Tag.Get("strict") == "number", text: text.ClassOf(f.Tag.Get("text"))},
		})
	}
	if len(fields) > 64 {
		panic(fmt.Sprintf("strict: %s has %d fields, at most 64 can be decoded", t, len(fields)))
	}
	return fields
}

// lookup finds a member by its exact name.
func (p *plan) lookup(name string) int {
	for i := range p.fields {
		if p.fields[i].name == name {
			return i
		}
	}
	return -1
}

// nearest names the field that the writer of name may have meant, or "".
func (p *plan) nearest(name string) string {
	best, least := "", 3
	for _, f := range p.fields {
		d := distance(strings.ToLower(f.name), strings.ToLower(name))
		if d < least && d*2 < len(f.name) {
			best, least = f.name, d
		}
	}
	return best
}

// distance is the Levenshtein distance of two short words; long ones are far.
func distance(a, b string) int {
	if len(a) > 40 || len(b) > 40 {
		return 40
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			substitution := diagonal
			if a[i] != b[j] {
				substitution++
			}
			row[j+1] = min(above+1, row[j]+1, substitution)
			diagonal = above
		}
	}
	return row[len(b)]
}
