package edit

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Table is the objects of one kind, by name.
type Table[T any] struct {
	Kind[T]
	byName map[string]*Kept[T]
}

func newTable[T any](k Kind[T]) *Table[T] {
	return &Table[T]{Kind: k, byName: map[string]*Kept[T]{}}
}

// Get returns an object; nil where there is none of the name.
func (t *Table[T]) Get(name string) *Kept[T] { return t.byName[name] }

// Find is Get with the refusal where there is none.
func (t *Table[T]) Find(name string) (*Kept[T], *api.Status) {
	if k := t.byName[name]; k != nil {
		return k, nil
	}
	return nil, t.NotFound(name)
}

// Names are the names of all objects, ascending.
func (t *Table[T]) Names() []string { return slices.Sorted(maps.Keys(t.byName)) }

// Len counts the objects.
func (t *Table[T]) Len() int { return len(t.byName) }

// Set takes an object over that is durable.
func (t *Table[T]) Set(object T, rev resource.Revision) {
	m := t.Meta(&object)
	*m = At(*m, rev)
	t.byName[m.Name] = &Kept[T]{object, rev}
}

// Put judges the write of an object that is valid by itself. create: there must be
// none of its name.
func (t *Table[T]) Put(v View, given *T, create bool) (Write, *api.Status) {
	m := *t.Meta(given)
	before := t.byName[m.Name]
	object := t.Typed(given)
	w, status := Begin(v, before, t.Noun+" "+m.Name, m, create, t.Meta, &object)
	if status == nil && t.Judge != nil {
		status = t.Judge(v, before, &object, &w)
	}
	if status != nil {
		return Write{}, status
	}
	return t.Write(w, object), nil
}

// Write completes the write of an object that was judged.
func (t *Table[T]) Write(w Write, object T) Write {
	m := *t.Meta(&object)
	document := object
	w.Op = record.Put(t.Key(m.Name), t.Codec.encode(m, Encode(&document, t.Meta(&document))))
	w.WakesNobody = t.WakesNobody
	w.Landed = func(rev resource.Revision) { t.Set(object, rev) }
	w.Result = func() any { return t.byName[m.Name].Copy() }
	return w
}

// Delete judges the deletion of an object.
func (t *Table[T]) Delete(v View, name string, require api.Preconditions) (Write, *api.Status) {
	k, status := t.Find(name)
	if k == nil && t.Undeletable != nil {
		if kept := t.Undeletable(v, name); kept != nil {
			status = kept
		}
	}
	if status == nil {
		status = require.Check(t.Noun+" "+name, At(*t.Meta(&k.Object), k.Rev))
	}
	if status != nil {
		return Write{}, status
	}
	was := k.Copy()
	w := Write{
		Op: record.Delete(t.Key(name)), Rev: k.Rev, WakesNobody: t.WakesNobody,
		Landed: func(resource.Revision) { delete(t.byName, name) },
		Result: func() any { return was },
	}
	if t.Used != nil {
		if status := t.Used(v, was, &w); status != nil {
			return Write{}, status
		}
	}
	return w, nil
}

// load takes an object of the store, where the key is of this kind.
func (t *Table[T]) load(kv record.KV) (mine bool, err error) {
	if !strings.HasPrefix(kv.Key, t.Prefix) {
		return false, nil
	}
	k, err := t.Read(kv)
	if err == nil {
		t.byName[t.Meta(&k.Object).Name] = k
	}
	return true, err
}

func (t *Table[T]) prefix() string { return t.Prefix }
