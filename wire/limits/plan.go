package limits

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
)

// plan is how messages of one type are judged. It is immutable once compiled.
type plan struct {
	name    protoreflect.FullName
	size    int64        // bytes of a whole message of this type
	pointer reflect.Type // of the generated struct
	unknown int          // the struct's field with the unknown fields
	fields  []fieldPlan
	choices []choice
	// wire is the part of each field number that holds further messages or is
	// counted, for the scan before a message is decoded.
	wire map[protoreflect.FieldNumber]*fieldPlan
}

type fieldPlan struct {
	name     string
	index    int // of the struct's field; that of a oneof's field is 0, in its wrapper
	limit    *Limit
	optional bool  // the struct's field is a pointer to the value
	part     *plan // of a message, or of a list's messages
}

// choice is one oneof: an interface that holds a wrapper of the field that is
// set.
type choice struct {
	index  int
	byType map[reflect.Type]*fieldPlan
}

// files are the files whose messages have limits.
func files() []protoreflect.FileDescriptor {
	return []protoreflect.FileDescriptor{
		musterv1.File_muster_v1_resource_proto, musterv1.File_muster_v1_agent_proto, musterv1.File_muster_v1_coordinator_proto,
		schedulerv1.File_scheduler_v1_node_agent_proto,
	}
}

// ours reports whether a message is of a package that has limits.
func ours(d protoreflect.Descriptor) bool {
	pkg := d.ParentFile().Package()
	return pkg == "muster.v1" || pkg == "scheduler.v1"
}

// plans are all plans by the full names of their messages.
var plans = sync.OnceValues(func() (map[protoreflect.FullName]*plan, error) { return compile(files(), fields, sizes) })

// planOf returns the plan of a message, nil for one of another package.
func planOf(d protoreflect.MessageDescriptor) (*plan, error) {
	all, err := plans()
	if err != nil {
		return nil, err
	}
	if p := all[d.FullName()]; p != nil || !ours(d) {
		return p, nil
	}
	return nil, fmt.Errorf("%s has no limits", d.FullName())
}

// compile makes the plans of all messages of files. A field without a limit, or
// with one of another kind, and a limit without a field are errors.
func compile(files []protoreflect.FileDescriptor, limits map[string]Limit, sizes map[string]int64) (map[protoreflect.FullName]*plan, error) {
	c := compiler{limits: limits, sizes: sizes, done: map[protoreflect.FullName]*plan{}, used: map[string]bool{}}
	for _, f := range files {
		if err := c.all(f.Messages()); err != nil {
			return nil, err
		}
	}
	for name := range limits {
		if !c.used[name] {
			return nil, fmt.Errorf("the limit of %s: there is no such field", name)
		}
	}
	for name := range sizes {
		if c.done[protoreflect.FullName(name)] == nil {
			return nil, fmt.Errorf("the size of %s: there is no such message", name)
		}
	}
	return c.done, nil
}

type compiler struct {
	limits map[string]Limit
	sizes  map[string]int64
	done   map[protoreflect.FullName]*plan
	used   map[string]bool
}

func (c *compiler) all(messages protoreflect.MessageDescriptors) error {
	for i := range messages.Len() {
		m := messages.Get(i)
		if m.IsMapEntry() {
			continue
		}
		if _, err := c.message(m); err != nil {
			return err
		}
		if err := c.all(m.Messages()); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) message(m protoreflect.MessageDescriptor) (*plan, error) {
	if p := c.done[m.FullName()]; p != nil {
		return p, nil
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(m.FullName())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.FullName(), err)
	}
	p := &plan{name: m.FullName(), size: MaxSmall, wire: map[protoreflect.FieldNumber]*fieldPlan{}}
	if size, ok := c.sizes[string(m.FullName())]; ok {
		p.size = size
	}
	g, err := generatedType(kind)
	if err != nil {
		return nil, err
	}
	p.pointer, p.unknown = reflect.PointerTo(g.structure), g.unknown
	c.done[m.FullName()] = p
	choices := map[protoreflect.FullName]int{}
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		f, err := c.field(field)
		if err != nil {
			return nil, err
		}
		if f.part != nil || f.limit.kind == list || f.limit.kind == dict {
			p.wire[field.Number()] = f
		}
		oneof := field.ContainingOneof()
		if oneof == nil || oneof.IsSynthetic() {
			var found bool
			if f.index, found = g.fields[field.Number()]; !found {
				return nil, fmt.Errorf("%s is no field of %s", field.FullName(), g.structure)
			}
			if f.limit.kind != flag { // a bool needs no judge
				p.fields = append(p.fields, *f)
			}
			continue
		}
		at, seen := choices[oneof.FullName()]
		if !seen {
			index, found := g.oneofs[string(oneof.Name())]
			if !found {
				return nil, fmt.Errorf("%s is no field of %s", oneof.FullName(), g.structure)
			}
			at = len(p.choices)
			choices[oneof.FullName()] = at
			p.choices = append(p.choices, choice{index, map[reflect.Type]*fieldPlan{}})
		}
		set := kind.New()
		set.Set(field, set.NewField(field))
		wrapper := reflect.ValueOf(set.Interface()).Elem().Field(p.choices[at].index).Elem()
		p.choices[at].byType[wrapper.Type()] = f
	}
	return p, nil
}

// generated is where a generated struct has its fields.
type generated struct {
	structure reflect.Type
	unknown   int
	fields    map[protoreflect.FieldNumber]int
	oneofs    map[string]int
}

func generatedType(kind protoreflect.MessageType) (generated, error) {
	pointer := reflect.TypeOf(kind.Zero().Interface())
	if pointer.Kind() != reflect.Pointer || pointer.Elem().Kind() != reflect.Struct {
		return generated{}, fmt.Errorf("%s is generated as %s, want a pointer to a struct", kind.Descriptor().FullName(), pointer)
	}
	g := generated{structure: pointer.Elem(), fields: map[protoreflect.FieldNumber]int{}, oneofs: map[string]int{}}
	unknown, found := g.structure.FieldByName("unknownFields")
	if !found || unknown.Type.Kind() != reflect.Slice {
		return generated{}, fmt.Errorf("%s has no slice unknownFields", g.structure)
	}
	g.unknown = unknown.Index[0]
	for i := range g.structure.NumField() {
		tag := g.structure.Field(i).Tag
		if name := tag.Get("protobuf_oneof"); name != "" {
			g.oneofs[name] = i
		}
		if parts := strings.SplitN(tag.Get("protobuf"), ",", 3); len(parts) == 3 {
			number, err := strconv.Atoi(parts[1])
			if err != nil {
				return generated{}, fmt.Errorf("%s: field %s has the tag %q", g.structure, g.structure.Field(i).Name, tag)
			}
			g.fields[protoreflect.FieldNumber(number)] = i
		}
	}
	return g, nil
}

func (c *compiler) field(d protoreflect.FieldDescriptor) (*fieldPlan, error) {
	limit, ok := c.limits[string(d.FullName())]
	if !ok {
		return nil, fmt.Errorf("%s has no limit", d.FullName())
	}
	c.used[string(d.FullName())] = true
	f := &fieldPlan{name: string(d.Name()), limit: &limit, optional: d.HasOptionalKeyword()}
	var err error
	switch {
	case d.IsMap():
		err = firstOf(suits(limit, dict, d), kindSuits(limit.key, d.MapKey()), kindSuits(limit.elem, d.MapValue()))
	case d.IsList():
		err = firstOf(suits(limit, list, d), kindSuits(limit.elem, d))
	default:
		err = kindSuits(&limit, d)
	}
	if err != nil {
		return nil, err
	}
	if limit.kind == enum {
		limit.values = map[int64]bool{}
		for i := range d.Enum().Values().Len() {
			limit.values[int64(d.Enum().Values().Get(i).Number())] = true
		}
	}
	if d.Message() != nil && !d.IsMap() {
		f.part, err = c.message(d.Message())
	}
	return f, err
}

func suits(l Limit, want kind, d protoreflect.FieldDescriptor) error {
	if l.kind != want || l.elem == nil || want == dict && l.key == nil {
		return fmt.Errorf("the limit of %s is not that of a %s", d.FullName(), d.Cardinality())
	}
	return nil
}

// kindSuits checks that a limit can judge the values of a field.
func kindSuits(l *Limit, d protoreflect.FieldDescriptor) error {
	ok := false
	if l != nil {
		switch d.Kind() {
		case protoreflect.StringKind:
			ok = l.kind == text && l.chars != 0 && l.max > 0 || l.kind == word
		case protoreflect.BytesKind:
			ok = l.kind == data && l.max > 0
		case protoreflect.BoolKind:
			ok = l.kind == flag
		case protoreflect.EnumKind:
			ok = l.kind == enum && !d.IsList()
		case protoreflect.DoubleKind, protoreflect.FloatKind:
			ok = l.kind == real
		case protoreflect.MessageKind:
			ok = l.kind == part
		case protoreflect.GroupKind:
		default:
			ok = l.kind == number
		}
	}
	if !ok {
		return fmt.Errorf("the limit of %s does not suit its kind %s", d.FullName(), d.Kind())
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
