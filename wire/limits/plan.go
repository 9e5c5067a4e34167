package limits

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
)

// plan is how messages of one type are judged. It is immutable once compiled.
type plan struct {
	name    protoreflect.FullName
	size    int64 // bytes of a whole message of this type
	fields  []fieldPlan
	choices []choice
	// wire is the part of each field number that holds further messages or is
	// counted, for the scan before a message is decoded.
	wire map[protoreflect.FieldNumber]*fieldPlan
}

type fieldPlan struct {
	field    protoreflect.FieldDescriptor
	name     string
	limit    *Limit
	presence bool  // judged only where it is set
	part     *plan // of a message, or of a list's messages
}

// choice is one oneof.
type choice struct {
	oneof    protoreflect.OneofDescriptor
	byNumber map[protoreflect.FieldNumber]*fieldPlan
}

// Files are the files whose messages have limits.
func files() []protoreflect.FileDescriptor {
	return []protoreflect.FileDescriptor{
		musterv1.File_muster_v1_resource_proto, musterv1.File_muster_v1_agent_proto, musterv1.File_muster_v1_coordinator_proto,
		musterv1.File_muster_v1_quotas_proto, schedulerv1.File_scheduler_v1_node_agent_proto,
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
	p := &plan{name: m.FullName(), size: MaxSmall, wire: map[protoreflect.FieldNumber]*fieldPlan{}}
	if size, ok := c.sizes[string(m.FullName())]; ok {
		p.size = size
	}
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
			p.fields = append(p.fields, *f)
			continue
		}
		at, seen := choices[oneof.FullName()]
		if !seen {
			at = len(p.choices)
			choices[oneof.FullName()] = at
			p.choices = append(p.choices, choice{oneof, map[protoreflect.FieldNumber]*fieldPlan{}})
		}
		p.choices[at].byNumber[field.Number()] = f
	}
	return p, nil
}

func (c *compiler) field(d protoreflect.FieldDescriptor) (*fieldPlan, error) {
	limit, ok := c.limits[string(d.FullName())]
	if !ok {
		return nil, fmt.Errorf("%s has no limit", d.FullName())
	}
	c.used[string(d.FullName())] = true
	f := &fieldPlan{field: d, name: string(d.Name()), limit: &limit, presence: d.HasPresence()}
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
			ok = l.kind == enum
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
