package limits

import (
	"math"
	"reflect"

	"google.golang.org/protobuf/proto"
)

// Admit judges a message that another process has sent. It returns nil or a
// *Violation. In a message that is admitted, unknown fields are gone and the
// control characters of text for people are replaced. Messages of other
// packages than muster.v1 and scheduler.v1 are admitted unjudged: no service of
// ours receives any.
//
// It reads the fields of the generated struct by package reflect, without an
// allocation: protoreflect allocates for each list and message. compile checks
// the struct against its descriptor.
func Admit(m proto.Message) error {
	reflected := m.ProtoReflect()
	p, err := planOf(reflected.Descriptor())
	if err != nil {
		return &Violation{Message: string(reflected.Descriptor().FullName()), Problem: err.Error()}
	}
	if p == nil || !reflected.IsValid() {
		return nil
	}
	value := reflect.ValueOf(m)
	if value.Type() != p.pointer {
		return &Violation{Message: string(p.name), Problem: "it is a " + value.Type().String() + ", which is not the generated type"}
	}
	if v := p.judge(value.Elem()); v != nil {
		v.Message = string(p.name)
		return v
	}
	return nil
}

// judge judges a message's struct, which is addressable.
func (p *plan) judge(m reflect.Value) *Violation {
	if m.Field(p.unknown).Len() > 0 {
		m.Addr().Interface().(proto.Message).ProtoReflect().SetUnknown(nil)
	}
	for i := range p.fields {
		f := &p.fields[i]
		if v := f.judge(m.Field(f.index)); v != nil {
			return v.in(f.name)
		}
	}
	for i := range p.choices {
		c := &p.choices[i]
		set := m.Field(c.index)
		if set.IsNil() {
			continue
		}
		wrapper := set.Elem() // a pointer to a struct of one field
		if wrapper.IsNil() {
			continue
		}
		f := c.byType[wrapper.Type()]
		if v := f.judge(wrapper.Elem().Field(0)); v != nil {
			return v.in(f.name)
		}
	}
	return nil
}

// judge judges a field's value, which can be set.
func (f *fieldPlan) judge(value reflect.Value) *Violation {
	switch f.limit.kind {
	case flag:
		return nil
	case part:
		if value.IsNil() {
			return nil
		}
		return f.part.judge(value.Elem())
	case list:
		return f.judgeList(value)
	case dict:
		return f.judgeMap(value)
	}
	if f.optional {
		if value.IsNil() {
			return nil
		}
		value = value.Elem()
	}
	return f.limit.judgeInPlace(value)
}

func (f *fieldPlan) judgeList(entries reflect.Value) *Violation {
	n := entries.Len()
	if int64(n) > f.limit.max {
		return problem("%d entries, more than %d", n, f.limit.max)
	}
	for i := range n {
		entry := entries.Index(i)
		var v *Violation
		if f.part == nil {
			v = f.limit.elem.judgeInPlace(entry)
		} else if !entry.IsNil() {
			v = f.part.judge(entry.Elem())
		}
		if v != nil {
			return v.at(i)
		}
	}
	return nil
}

func (f *fieldPlan) judgeMap(entries reflect.Value) *Violation {
	n := entries.Len()
	if n == 0 {
		return nil
	}
	if int64(n) > f.limit.max {
		return problem("%d entries, more than %d", n, f.limit.max)
	}
	type entry struct{ key, value reflect.Value }
	var cleaned []entry
	for all := entries.MapRange(); all.Next(); {
		key, value := all.Key(), all.Value()
		if _, v := f.limit.key.judge(key); v != nil {
			return v.in("[key " + shown(keyText(key)) + "]")
		}
		clean, v := f.limit.elem.judge(value)
		if v != nil {
			return v.in("[" + shown(keyText(key)) + "]")
		}
		if clean != nil {
			cleaned = append(cleaned, entry{key, reflect.ValueOf(*clean)})
		}
	}
	for _, c := range cleaned {
		entries.SetMapIndex(c.key, c.value)
	}
	return nil
}

// judgeInPlace judges a value that can be set, and cleans it there.
func (l *Limit) judgeInPlace(value reflect.Value) *Violation {
	clean, v := l.judge(value)
	if clean != nil {
		value.SetString(*clean)
	}
	return v
}

// judge judges one value that is no message. clean, if not nil, is the text
// that replaces it.
func (l *Limit) judge(value reflect.Value) (clean *string, bad *Violation) {
	switch l.kind {
	case text:
		return l.judgeText(value.String())
	case word:
		s := value.String()
		for _, w := range l.words {
			if s == w {
				return nil, nil
			}
		}
		return nil, problem("%s (%d bytes) is not one of %q", shown(s), len(s), l.words)
	case data:
		if n := value.Len(); int64(n) > l.max {
			return nil, problem("%d bytes, more than %d", n, l.max)
		}
	case enum:
		if n := value.Int(); !l.values[n] {
			return nil, problem("%d is no value of %s", n, value.Type().Name())
		}
	case real:
		if x := value.Float(); !(x >= float64(l.min) && x <= float64(l.max)) { // NaN is neither
			return nil, problem("%g is outside %d..%d", x, l.min, l.max)
		}
	case number:
		return nil, l.judgeNumber(value)
	case flag:
	default:
		return nil, problem("the field has no limit")
	}
	return nil, nil
}

func (l *Limit) judgeText(s string) (clean *string, bad *Violation) {
	if int64(len(s)) > l.max {
		return nil, problem("%d bytes, more than %d", len(s), l.max)
	}
	if l.chars == free {
		return nil, nil
	}
	at := firstOutside(s, l.chars)
	if at < 0 {
		return nil, nil
	}
	if l.chars != line {
		return nil, problem("%s has a character at byte %d that is not of %s", shown(s), at, l.chars)
	}
	if plain := Plain(s, len(s)); plain != s {
		return &plain, nil
	}
	return nil, nil
}

func (l *Limit) judgeNumber(value reflect.Value) *Violation {
	if value.CanInt() {
		return l.within(value.Int())
	}
	n := value.Uint()
	switch {
	case l.max == math.MaxInt64: // any number of its type
		return nil
	case n > math.MaxInt64:
		return problem("%d is outside %d..%d", n, l.min, l.max)
	}
	return l.within(int64(n))
}

func (l *Limit) within(n int64) *Violation {
	if n < l.min || n > l.max {
		return problem("%d is outside %d..%d", n, l.min, l.max)
	}
	return nil
}
