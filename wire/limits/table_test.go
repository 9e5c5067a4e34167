package limits

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// everyMessage calls f with each message of the two packages that is linked in:
// a file that the table has forgotten is found too.
func everyMessage(t *testing.T, f func(protoreflect.MessageType)) {
	t.Helper()
	n := 0
	protoregistry.GlobalTypes.RangeMessages(func(m protoreflect.MessageType) bool {
		if d := m.Descriptor(); ours(d) && !d.IsMapEntry() {
			n++
			f(m)
		}
		return true
	})
	if n < 80 {
		t.Fatalf("%d messages are known, want all of both packages", n)
	}
}

func TestEveryFieldHasALimit(t *testing.T) {
	if _, err := plans(); err != nil {
		t.Fatal(err)
	}
	everyMessage(t, func(m protoreflect.MessageType) {
		d := m.Descriptor()
		if p, err := planOf(d); p == nil || err != nil {
			t.Errorf("%s: no plan: %v", d.FullName(), err)
		}
		for i := range d.Fields().Len() {
			if name := string(d.Fields().Get(i).FullName()); fields[name].kind == unset {
				t.Errorf("%s has no limit: add one to the tables of wire/limits", name)
			}
		}
	})
}

func TestATableWithAHoleIsRefused(t *testing.T) {
	without := func(name string, put ...Limit) map[string]Limit {
		table := together(fields)
		delete(table, name)
		for _, l := range put {
			table[name] = l
		}
		return table
	}
	for name, c := range map[string]struct {
		fields map[string]Limit
		sizes  map[string]int64
		want   string
	}{
		"a field without a limit":          {without("muster.v1.Reply.tx"), sizes, "muster.v1.Reply.tx has no limit"},
		"a limit of nothing":               {without("muster.v1.Reply.tx", Limit{}), sizes, "muster.v1.Reply.tx does not suit"},
		"a text as a number":               {without("muster.v1.Reply.tx", natural), sizes, "muster.v1.Reply.tx does not suit its kind string"},
		"a list as one entry":              {without("muster.v1.Reply.members", message), sizes, "muster.v1.Reply.members is not that of a repeated"},
		"a list of something else":         {without("muster.v1.Reply.members", listOf(1, boolean)), sizes, "muster.v1.Reply.members does not suit"},
		"a map whose keys have none":       {without("muster.v1.Host.labels", Limit{kind: dict, max: 1, elem: &boolean}), sizes, "muster.v1.Host.labels is not that"},
		"a limit of a field that is gone":  {without("muster.v1.Reply.gone", boolean), sizes, "muster.v1.Reply.gone: there is no such field"},
		"a size of a message that is gone": {fields, map[string]int64{"muster.v1.Gone": 1}, "muster.v1.Gone: there is no such message"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := compile(files(), c.fields, c.sizes); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestEachLimitIsKept sets one field of a message to its limit, which is
// admitted, and one past it, which is refused by the field's path and its value
// or size.
func TestEachLimitIsKept(t *testing.T) {
	kept := 0
	everyMessage(t, func(m protoreflect.MessageType) {
		for i := range m.Descriptor().Fields().Len() {
			field := m.Descriptor().Fields().Get(i)
			limit := fields[string(field.FullName())]
			for _, c := range casesOf(t, limit, field) {
				kept++
				message := m.New()
				c.set(message, field)
				err := Admit(message.Interface())
				switch {
				case c.want == "" && err != nil:
					t.Errorf("%s, %s: refused: %v", field.FullName(), c.name, err)
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), ": "+string(field.Name())) || !strings.Contains(err.Error(), c.want)):
					t.Errorf("%s, %s: error %v, want the field and %q", field.FullName(), c.name, err, c.want)
				case err != nil && len(err.Error()) > 600:
					t.Errorf("%s, %s: an error of %d bytes", field.FullName(), c.name, len(err.Error()))
				}
			}
		}
	})
	if kept < 500 {
		t.Errorf("%d cases were tried, want more", kept)
	}
}

type limitCase struct {
	name string
	set  func(protoreflect.Message, protoreflect.FieldDescriptor)
	want string // "" = admitted
}

func single(v protoreflect.Value) func(protoreflect.Message, protoreflect.FieldDescriptor) {
	return func(m protoreflect.Message, f protoreflect.FieldDescriptor) { m.Set(f, v) }
}

// values are values at a limit and past it.
func valuesOf(l Limit, field protoreflect.FieldDescriptor) (at []protoreflect.Value, past map[string]protoreflect.Value) {
	past = map[string]protoreflect.Value{}
	switch l.kind {
	case text:
		at = append(at, protoreflect.ValueOfString(strings.Repeat("a", int(l.max))), protoreflect.ValueOfString(""))
		past[fmt.Sprintf("%d bytes, more than %d", l.max+1, l.max)] = protoreflect.ValueOfString(strings.Repeat("a", int(l.max)+1))
		if l.chars != line && l.chars != free {
			past["has a character at byte 1"] = protoreflect.ValueOfString("a\x1b")
		}
	case word:
		at = append(at, protoreflect.ValueOfString(l.words[len(l.words)-1]))
		past["is not one of"] = protoreflect.ValueOfString(strings.Repeat("x", 1<<20))
	case data:
		at = append(at, protoreflect.ValueOfBytes(make([]byte, l.max)))
		past[fmt.Sprintf("%d bytes, more than %d", l.max+1, l.max)] = protoreflect.ValueOfBytes(make([]byte, l.max+1))
	case number:
		for _, n := range []int64{l.min, l.max} {
			if v, ok := integer(field, n); ok {
				at = append(at, v)
			}
		}
		if l.min > math.MinInt64 {
			if v, ok := integer(field, l.min-1); ok {
				past[fmt.Sprintf("%d is outside %d..%d", l.min-1, l.min, l.max)] = v
			}
		}
		if l.max < math.MaxInt64 {
			if v, ok := integer(field, l.max+1); ok {
				past[fmt.Sprintf("%d is outside %d..%d", l.max+1, l.min, l.max)] = v
			}
		}
	case real:
		at = append(at, protoreflect.ValueOfFloat64(float64(l.max)))
		past["NaN is outside"] = protoreflect.ValueOfFloat64(math.NaN())
		past["+Inf is outside"] = protoreflect.ValueOfFloat64(math.Inf(1))
	case enum:
		past["-1 is no value of"] = protoreflect.ValueOfEnum(-1)
	case flag:
		at = append(at, protoreflect.ValueOfBool(true))
	}
	return at, past
}

// integer is n as a field's value, if the field can hold it.
func integer(field protoreflect.FieldDescriptor, n int64) (protoreflect.Value, bool) {
	switch field.Kind() {
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n)), n >= math.MinInt32 && n <= math.MaxInt32
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n)), n >= 0 && n <= math.MaxUint32
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(n)), n >= 0
	default:
		return protoreflect.ValueOfInt64(n), true
	}
}

func casesOf(t *testing.T, l Limit, field protoreflect.FieldDescriptor) (cases []limitCase) {
	add := func(name string, set func(protoreflect.Message, protoreflect.FieldDescriptor), want string) {
		cases = append(cases, limitCase{name, set, want})
	}
	switch {
	case field.IsMap():
		keys, badKeys := valuesOf(*l.key, field.MapKey())
		values, badValues := valuesOf(*l.elem, field.MapValue())
		put := func(k, v protoreflect.Value) func(protoreflect.Message, protoreflect.FieldDescriptor) {
			return func(m protoreflect.Message, f protoreflect.FieldDescriptor) { m.Mutable(f).Map().Set(k.MapKey(), v) }
		}
		for _, v := range values {
			add("an entry at its limit", put(keys[0], v), "")
		}
		for want, k := range badKeys {
			add("a key past its limit", put(k, values[0]), want)
		}
		for want, v := range badValues {
			add("a value past its limit", put(keys[0], v), want)
		}
		fill := func(n int64) func(protoreflect.Message, protoreflect.FieldDescriptor) {
			return func(m protoreflect.Message, f protoreflect.FieldDescriptor) {
				for i := range n {
					m.Mutable(f).Map().Set(nthKey(f.MapKey(), i), values[0])
				}
			}
		}
		if l.max < 1<<13 {
			add("as many entries as may be", fill(min(l.max, 16)), "")
		}
		add("an entry too many", fill(l.max+1), fmt.Sprintf("%d entries, more than %d", l.max+1, l.max))
	case field.IsList():
		repeat := func(n int64) func(protoreflect.Message, protoreflect.FieldDescriptor) {
			return func(m protoreflect.Message, f protoreflect.FieldDescriptor) {
				entries := m.Mutable(f).List()
				for range n {
					entries.Append(entries.NewElement())
				}
			}
		}
		if l.elem.kind != word {
			add("as many entries as may be", repeat(l.max), "")
		}
		add("an entry too many", repeat(l.max+1), fmt.Sprintf("%d entries, more than %d", l.max+1, l.max))
		at, past := valuesOf(*l.elem, field)
		one := func(v protoreflect.Value) func(protoreflect.Message, protoreflect.FieldDescriptor) {
			return func(m protoreflect.Message, f protoreflect.FieldDescriptor) { m.Mutable(f).List().Append(v) }
		}
		for _, v := range at {
			add("an entry at its limit", one(v), "")
		}
		for want, v := range past {
			add("an entry past its limit", one(v), want)
		}
	case l.kind == part:
		add("a message", func(m protoreflect.Message, f protoreflect.FieldDescriptor) { m.Set(f, m.NewField(f)) }, "")
	default:
		at, past := valuesOf(l, field)
		for _, v := range at {
			add("at its limit", single(v), "")
		}
		for want, v := range past {
			add("past its limit", single(v), want)
		}
	}
	return cases
}

func nthKey(field protoreflect.FieldDescriptor, i int64) protoreflect.MapKey {
	if field.Kind() == protoreflect.StringKind {
		return protoreflect.ValueOfString(fmt.Sprint("k", i)).MapKey()
	}
	v, _ := integer(field, i+1)
	return v.MapKey()
}

func TestEmptyMessagesAreAdmitted(t *testing.T) {
	everyMessage(t, func(m protoreflect.MessageType) {
		if err := Admit(m.New().Interface()); err != nil {
			t.Errorf("an empty %s: %v", m.Descriptor().FullName(), err)
		}
	})
}
