package limits

import (
	"math"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Admit judges a message that another process has sent. It returns nil or a
// *Violation. In a message that is admitted, unknown fields are gone and the
// control characters of text for people are replaced. Messages of other
// packages than muster.v1 and scheduler.v1 are admitted unjudged: no service of
// ours receives any.
func Admit(m proto.Message) error {
	reflected := m.ProtoReflect()
	p, err := planOf(reflected.Descriptor())
	if err != nil {
		return &Violation{Message: string(reflected.Descriptor().FullName()), Problem: err.Error()}
	}
	if p == nil || !reflected.IsValid() {
		return nil
	}
	if v := p.judge(reflected); v != nil {
		v.Message = string(p.name)
		return v
	}
	return nil
}

func (p *plan) judge(m protoreflect.Message) *Violation {
	if len(m.GetUnknown()) > 0 {
		m.SetUnknown(nil)
	}
	for i := range p.fields {
		f := &p.fields[i]
		if f.presence && !m.Has(f.field) {
			continue
		}
		if v := f.judge(m); v != nil {
			return v.in(f.name)
		}
	}
	for i := range p.choices {
		c := &p.choices[i]
		set := m.WhichOneof(c.oneof)
		if set == nil {
			continue
		}
		f := c.byNumber[set.Number()]
		if v := f.judge(m); v != nil {
			return v.in(f.name)
		}
	}
	return nil
}

func (f *fieldPlan) judge(m protoreflect.Message) *Violation {
	switch f.limit.kind {
	case flag:
		return nil
	case part:
		return f.part.judge(m.Get(f.field).Message())
	case list:
		return f.judgeList(m)
	case dict:
		return f.judgeMap(m)
	}
	clean, v := f.limit.judge(f.field, m.Get(f.field))
	if v == nil && clean.IsValid() {
		m.Set(f.field, clean)
	}
	return v
}

func (f *fieldPlan) judgeList(m protoreflect.Message) *Violation {
	if !m.Has(f.field) {
		return nil
	}
	entries := m.Get(f.field).List()
	if n := entries.Len(); int64(n) > f.limit.max {
		return problem("%d entries, more than %d", n, f.limit.max)
	}
	for i := range entries.Len() {
		if f.part != nil {
			if v := f.part.judge(entries.Get(i).Message()); v != nil {
				return v.at(i)
			}
			continue
		}
		clean, v := f.limit.elem.judge(f.field, entries.Get(i))
		if v != nil {
			return v.at(i)
		}
		if clean.IsValid() {
			entries.Set(i, clean)
		}
	}
	return nil
}

func (f *fieldPlan) judgeMap(m protoreflect.Message) (bad *Violation) {
	if !m.Has(f.field) {
		return nil
	}
	entries := m.Get(f.field).Map()
	if n := entries.Len(); int64(n) > f.limit.max {
		return problem("%d entries, more than %d", n, f.limit.max)
	}
	type entry struct {
		key   protoreflect.MapKey
		value protoreflect.Value
	}
	var cleaned []entry
	entries.Range(func(k protoreflect.MapKey, value protoreflect.Value) bool {
		if _, bad = f.limit.key.judge(f.field.MapKey(), k.Value()); bad != nil {
			bad = bad.in("[key " + shown(k.String()) + "]")
			return false
		}
		clean, v := f.limit.elem.judge(f.field.MapValue(), value)
		if v != nil {
			bad = v.in("[" + shown(k.String()) + "]")
			return false
		}
		if clean.IsValid() {
			cleaned = append(cleaned, entry{k, clean})
		}
		return true
	})
	for _, c := range cleaned {
		entries.Set(c.key, c.value)
	}
	return bad
}

// judge judges one value that is no message. A valid clean replaces it.
func (l *Limit) judge(field protoreflect.FieldDescriptor, value protoreflect.Value) (clean protoreflect.Value, bad *Violation) {
	switch l.kind {
	case text:
		return l.judgeText(value.String())
	case word:
		s := value.String()
		for _, w := range l.words {
			if s == w {
				return clean, nil
			}
		}
		return clean, problem("%s (%d bytes) is not one of %q", shown(s), len(s), l.words)
	case data:
		if n := len(value.Bytes()); int64(n) > l.max {
			return clean, problem("%d bytes, more than %d", n, l.max)
		}
	case enum:
		if n := value.Enum(); field.Enum().Values().ByNumber(n) == nil {
			return clean, problem("%d is no value of %s", n, field.Enum().Name())
		}
	case real:
		if x := value.Float(); !(x >= float64(l.min) && x <= float64(l.max)) { // NaN is neither
			return clean, problem("%g is outside %d..%d", x, l.min, l.max)
		}
	case number:
		return clean, l.judgeNumber(value)
	case flag:
	default:
		return clean, problem("the field has no limit")
	}
	return clean, nil
}

func (l *Limit) judgeText(s string) (clean protoreflect.Value, bad *Violation) {
	if int64(len(s)) > l.max {
		return clean, problem("%d bytes, more than %d", len(s), l.max)
	}
	if l.chars == free {
		return clean, nil
	}
	at := firstOutside(s, l.chars)
	if at < 0 {
		return clean, nil
	}
	if l.chars != line {
		return clean, problem("%s has a character at byte %d that is not of %s", shown(s), at, l.chars)
	}
	if plain := Plain(s, len(s)); plain != s {
		return protoreflect.ValueOfString(plain), nil
	}
	return clean, nil
}

func (l *Limit) judgeNumber(value protoreflect.Value) *Violation {
	switch n := value.Interface().(type) {
	case uint32:
		return l.within(int64(n))
	case uint64:
		if l.max == math.MaxInt64 { // whole ranges only: see compile
			return nil
		}
		if n > math.MaxInt64 {
			return problem("%d is outside %d..%d", n, l.min, l.max)
		}
		return l.within(int64(n))
	default:
		return l.within(value.Int())
	}
}

func (l *Limit) within(n int64) *Violation {
	if n < l.min || n > l.max {
		return problem("%d is outside %d..%d", n, l.min, l.max)
	}
	return nil
}
