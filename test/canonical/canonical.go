// Package canonical prints values for comparison: two values print alike exactly
// if they have the same content. Pointers print as the values that they point to,
// and maps in the order of their keys, so that a text never depends on addresses
// or on a map's order.
package canonical

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// deepest bounds the nesting, so that a cycle fails instead of never ending.
const deepest = 64

// Text prints a value with everything that the value reaches, on one line.
// Functions and channels print as their type. Errors print as their
// message.
func Text(value any) string {
	var b strings.Builder
	write(&b, reflect.ValueOf(value), 0)
	return b.String()
}

func write(b *strings.Builder, v reflect.Value, depth int) {
	if depth > deepest {
		panic(fmt.Sprintf("canonical: a value of %s nests deeper than %d", v.Type(), deepest))
	}
	if !v.IsValid() {
		b.WriteString("nil")
		return
	}
	if writeWhole(b, v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		if v.Kind() == reflect.Interface {
			b.WriteString(v.Elem().Type().String() + " ")
		}
		write(b, v.Elem(), depth+1)
	case reflect.Struct:
		writeFields(b, v, depth)
	case reflect.Map:
		writeMap(b, v, depth)
	case reflect.Slice, reflect.Array:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(' ')
			}
			write(b, v.Index(i), depth+1)
		}
		b.WriteByte(']')
	case reflect.String:
		b.WriteString(strconv.Quote(v.String()))
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		b.WriteString(v.Type().String())
	default:
		fmt.Fprint(b, v) // numbers and booleans
	}
}

// writeWhole prints the values that have a text of their own.
func writeWhole(b *strings.Builder, v reflect.Value) bool {
	if v.Type() == reflect.TypeFor[time.Time]() {
		if v.CanInterface() {
			at := v.Interface().(time.Time)
			fmt.Fprintf(b, "%s%+v", at.UTC().Format(time.RFC3339Nano), v.Field(1))
			return true
		}
		fmt.Fprintf(b, "time %v %v", v.Field(0), v.Field(1)) // its zone is a pointer
		return true
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 && !v.IsNil() {
		b.WriteString(strconv.Quote(string(v.Bytes())))
		return true
	}
	if v.Kind() != reflect.Interface && v.CanInterface() {
		if err, is := v.Interface().(error); is && (v.Kind() != reflect.Pointer || !v.IsNil()) {
			b.WriteString(strconv.Quote(err.Error()))
			return true
		}
	}
	return false
}

// writeFields prints the fields that are not zero.
func writeFields(b *strings.Builder, v reflect.Value, depth int) {
	b.WriteByte('{')
	first := true
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			continue
		}
		if !first {
			b.WriteByte(' ')
		}
		first = false
		b.WriteString(v.Type().Field(i).Name + ":")
		write(b, v.Field(i), depth+1)
	}
	b.WriteByte('}')
}

func writeMap(b *strings.Builder, v reflect.Value, depth int) {
	lines := make([]string, 0, v.Len())
	for entries := v.MapRange(); entries.Next(); {
		var line strings.Builder
		write(&line, entries.Key(), depth+1)
		line.WriteByte(':')
		write(&line, entries.Value(), depth+1)
		lines = append(lines, line.String())
	}
	slices.Sort(lines)
	b.WriteString("map[" + strings.Join(lines, " ") + "]")
}
