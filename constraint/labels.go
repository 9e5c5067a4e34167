package constraint

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Labels are the labels and taints of one node, interned: two nodes of one Table
// have equal labels and taints exactly if their pointers are equal. nil is a node
// with neither. Immutable.
//
// Invariant: pairs ascend by key, without repetition.
type Labels struct {
	key    string // in the table
	pairs  []pair
	taints *Taints // nil for none
}

// pair is one label. number is its value where that is a 64-bit decimal integer.
type pair struct {
	Label
	number  int64
	numeric bool
}

// Label is one label of a node.
type Label struct{ Key, Value string }

// Taints are the taints of a node, in the node's order, interned: two nodes of one
// Table have equal ones exactly if their pointers are equal. nil has none. Immutable.
type Taints struct {
	key  string  // in the table
	list []Taint // that keep units away
	soft []Taint // that units rather avoid
}

// keepNobody reports whether no unit is kept away.
func (t *Taints) keepNobody() bool { return t == nil || len(t.list) == 0 }

// HasSoft reports whether a taint has the effect PreferNoSchedule.
func (t *Taints) HasSoft() bool { return t != nil && len(t.soft) > 0 }

// Values returns the labels, in a map of the caller's own.
func (l *Labels) Values() map[string]string {
	if l == nil || len(l.pairs) == 0 {
		return nil
	}
	values := make(map[string]string, len(l.pairs))
	for i := range l.pairs {
		values[l.pairs[i].Key] = l.pairs[i].Value
	}
	return values
}

// All yields the labels, ascending by key.
func (l *Labels) All() iter.Seq[Label] {
	return func(yield func(Label) bool) {
		for i := 0; l != nil && i < len(l.pairs); i++ {
			if !yield(l.pairs[i].Label) {
				return
			}
		}
	}
}

// Get returns the value of a label, false where the labels do not have the key.
func (l *Labels) Get(key string) (string, bool) {
	if p := l.find(key); p != nil {
		return p.Value, true
	}
	return "", false
}

// Taints returns the taints.
func (l *Labels) Taints() *Taints {
	if l == nil {
		return nil
	}
	return l.taints
}

// fewPairs is up to how many labels a look-up compares with each: then that is
// faster than halving.
const fewPairs = 8

// find returns the label of a key, nil where there is none.
func (l *Labels) find(key string) *pair {
	switch {
	case l == nil:
		return nil
	case len(l.pairs) <= fewPairs:
		for i := range l.pairs {
			if l.pairs[i].Key == key {
				return &l.pairs[i]
			}
		}
		return nil
	}
	if i, found := slices.BinarySearchFunc(l.pairs, key, func(p pair, key string) int { return strings.Compare(p.Key, key) }); found {
		return &l.pairs[i]
	}
	return nil
}

// Keepers returns the taints that keep units away, in the node's order. The
// caller must not change them.
func (l *Labels) Keepers() []Taint {
	if l == nil || l.taints == nil {
		return nil
	}
	return l.taints.list
}

// Table interns labels. It holds an entry as long as somebody holds the labels,
// so nodes that change their labels for ever do not grow it. The zero value is
// ready. One goroutine owns it.
//
// Invariant: an entry's holders are the calls of Intern that returned the labels,
// less the calls of Release; they are more than zero. The holders of taints are
// the entries with these taints.
type Table struct {
	entries map[string]*entry
	taints  map[string]*taintsEntry
	scratch []byte
	keys    []string
}

type entry struct {
	labels  *Labels
	holders int
}

type taintsEntry struct {
	taints  *Taints
	holders int
}

// Intern returns the one value of these labels and taints, and counts a holder of
// it. The order of the taints matters: a refusal names the first.
func (t *Table) Intern(labels map[string]string, taints []Taint) *Labels {
	t.keys = slices.AppendSeq(t.keys[:0], maps.Keys(labels))
	slices.Sort(t.keys)
	t.scratch = t.scratch[:0]
	for _, k := range t.keys {
		t.scratch = append(strconv.AppendQuote(t.scratch, k), '=')
		t.scratch = append(strconv.AppendQuote(t.scratch, labels[k]), ' ')
	}
	t.scratch = appendTaints(t.scratch, taints)
	e := t.entries[string(t.scratch)]
	if e == nil {
		if t.entries == nil {
			t.entries = map[string]*entry{}
		}
		e = &entry{labels: &Labels{key: string(t.scratch), pairs: makePairs(t.keys, labels)}}
		e.labels.taints = t.internTaints(taints)
		t.entries[e.labels.key] = e
	}
	e.holders++
	return e.labels
}

// Adopt counts a holder of labels that another Table has interned, all labels of a
// node at once: they are equal to labels of this Table exactly if the pointers are.
// All labels that a Table adopts come from one other Table, and before any others;
// nil has no holders.
func (t *Table) Adopt(l *Labels) *Labels {
	if l == nil {
		return nil
	}
	e := t.entries[l.key]
	if e == nil {
		if t.entries == nil {
			t.entries = map[string]*entry{}
		}
		e = &entry{labels: l}
		t.entries[l.key] = e
		if l.taints != nil {
			t.adoptTaints(l.taints)
		}
	}
	e.holders++
	return e.labels
}

// adoptTaints counts an entry with these taints.
func (t *Table) adoptTaints(of *Taints) {
	if t.taints == nil {
		t.taints = map[string]*taintsEntry{}
	}
	if t.taints[of.key] == nil {
		t.taints[of.key] = &taintsEntry{taints: of}
	}
	t.taints[of.key].holders++
}

// makePairs makes the labels of these keys.
func makePairs(keys []string, labels map[string]string) []pair {
	pairs := make([]pair, len(keys))
	for i, k := range keys {
		pairs[i] = pair{Label: Label{k, labels[k]}}
		n, err := strconv.ParseInt(labels[k], 10, 64)
		if err == nil {
			pairs[i].number, pairs[i].numeric = n, true
		}
	}
	return pairs
}

// internTaints returns the one value of these taints, and counts a holder of it.
func (t *Table) internTaints(taints []Taint) *Taints {
	if len(taints) == 0 {
		return nil
	}
	var keepers, soft []Taint
	for _, taint := range taints {
		if taint.keepsAway() {
			keepers = append(keepers, taint)
		} else {
			soft = append(soft, taint)
		}
	}
	t.scratch = appendTaints(appendTaints(t.scratch[:0], keepers), soft)
	e := t.taints[string(t.scratch)]
	if e == nil {
		if t.taints == nil {
			t.taints = map[string]*taintsEntry{}
		}
		e = &taintsEntry{taints: &Taints{key: string(t.scratch), list: keepers, soft: soft}}
		t.taints[e.taints.key] = e
	}
	e.holders++
	return e.taints
}

// Release ends one hold on labels; nil has no holders. The labels stay valid for
// those who still read them.
func (t *Table) Release(l *Labels) {
	if l == nil {
		return
	}
	e := t.entries[l.key]
	if e == nil || e.labels != l {
		panic(fmt.Sprintf("constraint: labels %s are released and not held", l.key))
	}
	if e.holders--; e.holders > 0 {
		return
	}
	delete(t.entries, l.key)
	if l.taints == nil {
		return
	}
	of := t.taints[l.taints.key]
	if of.holders--; of.holders == 0 {
		delete(t.taints, l.taints.key)
	}
}

// Len returns the number of different labels that are held.
func (t *Table) Len() int { return len(t.entries) }

// appendTaints appends a text that no other taints have.
func appendTaints(b []byte, taints []Taint) []byte {
	for _, taint := range taints {
		b = append(b, "taint "...)
		b = append(strconv.AppendQuote(b, taint.Key), '=')
		b = append(strconv.AppendQuote(b, taint.Value), ':')
		b = append(strconv.AppendQuote(b, string(taint.Effect)), ' ')
	}
	return b
}
