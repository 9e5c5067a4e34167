package constraint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Labels are the labels and taints of one node, interned: two nodes of one Table
// have equal labels and taints exactly if their pointers are equal. nil is a node
// with neither. Immutable.
type Labels struct {
	key     string // in the table
	values  map[string]string
	numbers map[string]int64 // those of values that are 64-bit decimal integers
	keepers []Taint          // the taints that keep units away, in the node's order
}

// Values returns the labels. The caller must not change them.
func (l *Labels) Values() map[string]string {
	if l == nil {
		return nil
	}
	return l.values
}

// Table interns labels. It holds an entry as long as somebody holds the labels,
// so nodes that change their labels for ever do not grow it. The zero value is
// ready. One goroutine owns it.
//
// Invariant: an entry's holders are the calls of Intern that returned the labels,
// less the calls of Release; they are more than zero.
type Table struct {
	entries map[string]*entry
	scratch []byte
	keys    []string
}

type entry struct {
	labels  *Labels
	holders int
}

// Intern returns the one value of these labels and taints, and counts a holder of
// it. The order of the taints matters: a refusal names the first.
func (t *Table) Intern(labels map[string]string, taints []Taint) *Labels {
	t.scratch = t.appendKey(t.scratch[:0], labels, taints)
	e := t.entries[string(t.scratch)]
	if e == nil {
		if t.entries == nil {
			t.entries = map[string]*entry{}
		}
		e = &entry{labels: newLabels(string(t.scratch), labels, taints)}
		t.entries[e.labels.key] = e
	}
	e.holders++
	return e.labels
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
	if e.holders--; e.holders == 0 {
		delete(t.entries, l.key)
	}
}

// Len returns the number of different labels that are held.
func (t *Table) Len() int { return len(t.entries) }

// appendKey appends a text that no other labels and taints have.
func (t *Table) appendKey(b []byte, labels map[string]string, taints []Taint) []byte {
	t.keys = slices.AppendSeq(t.keys[:0], maps.Keys(labels))
	slices.Sort(t.keys)
	for _, k := range t.keys {
		b = append(strconv.AppendQuote(b, k), '=')
		b = append(strconv.AppendQuote(b, labels[k]), ' ')
	}
	for _, taint := range taints {
		b = append(b, "taint "...)
		b = append(strconv.AppendQuote(b, taint.Key), '=')
		b = append(strconv.AppendQuote(b, taint.Value), ':')
		b = append(strconv.AppendQuote(b, string(taint.Effect)), ' ')
	}
	return b
}

func newLabels(key string, values map[string]string, taints []Taint) *Labels {
	l := &Labels{key: key, values: maps.Clone(values)}
	for k, v := range values {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			continue
		}
		if l.numbers == nil {
			l.numbers = map[string]int64{}
		}
		l.numbers[k] = n
	}
	for _, t := range taints {
		if t.keepsAway() {
			l.keepers = append(l.keepers, t)
		}
	}
	return l
}
