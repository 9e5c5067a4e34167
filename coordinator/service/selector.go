package service

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
)

// labelRule is one requirement of a label selector.
type labelRule struct {
	key     string
	values  []string // of in and notin; nil for exists
	exists  bool     // key alone, or !key
	negated bool
}

// LabelSelector matches when all of its rules do. The zero value matches all.
type LabelSelector []labelRule

// matches follows Kubernetes: != and notin also match objects without the key.
func (s LabelSelector) matches(labels map[string]string) bool {
	for _, r := range s {
		value, present := labels[r.key]
		matched := present && (r.exists || slices.Contains(r.values, value))
		if matched == r.negated {
			return false
		}
	}
	return true
}

// parseLabelSelector reads "a=b,c==d,e!=f,g in (h,i),j notin (k),l,!m".
func parseLabelSelector(text string) (LabelSelector, error) {
	var s LabelSelector
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for _, term := range splitTerms(text) {
		r, err := parseLabelRule(strings.TrimSpace(term))
		if err != nil {
			return nil, err
		}
		s = append(s, r)
	}
	return s, nil
}

// splitTerms splits at commas outside parentheses.
func splitTerms(text string) []string {
	var terms []string
	depth, start := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				terms = append(terms, text[start:i])
				start = i + 1
			}
		}
	}
	return append(terms, text[start:])
}

func parseLabelRule(term string) (labelRule, error) {
	r, err := splitLabelRule(term)
	if err != nil {
		return r, err
	}
	if !api.IsLabelKey(r.key) {
		return r, fmt.Errorf("term %q: %q is not a label key", Clip(term), Clip(r.key))
	}
	for _, v := range r.values {
		if !api.IsLabelValue(v) {
			return r, fmt.Errorf("term %q: %q is not a label value", Clip(term), Clip(v))
		}
	}
	return r, nil
}

func splitLabelRule(term string) (labelRule, error) {
	if body, isSet := strings.CutSuffix(term, ")"); isSet {
		head, values, found := strings.Cut(body, "(")
		words := strings.Fields(head)
		if !found || len(words) != 2 || (words[1] != "in" && words[1] != "notin") {
			return labelRule{}, fmt.Errorf("term %q: want KEY in (VALUE,…) or KEY notin (VALUE,…)", Clip(term))
		}
		r := labelRule{key: words[0], negated: words[1] == "notin"}
		for v := range strings.SplitSeq(values, ",") {
			r.values = append(r.values, strings.TrimSpace(v))
		}
		return r, nil
	}
	if key, value, negated, found := cutOperator(term); found {
		return labelRule{key: key, values: []string{value}, negated: negated}, nil
	}
	key, negated := strings.CutPrefix(term, "!")
	return labelRule{key: strings.TrimSpace(key), exists: true, negated: negated}, nil
}

// cutOperator splits at the first of !=, == and =.
func cutOperator(term string) (key, value string, negated, found bool) {
	at := strings.IndexByte(term, '=')
	if at < 0 {
		return "", "", false, false
	}
	key, value = term[:at], term[at+1:]
	if k, isNot := strings.CutSuffix(key, "!"); isNot {
		key, negated = k, true
	} else {
		value = strings.TrimPrefix(value, "=")
	}
	return strings.TrimSpace(key), strings.TrimSpace(value), negated, true
}

// fieldRule compares one field with a value.
type fieldRule struct {
	field, value string
	negated      bool
	// where, where not nil, decides instead, by the fields of an object.
	where func(of func(field string) string) bool
}

// FieldSelector matches when all of its rules do.
type FieldSelector []fieldRule

// parseFieldSelector reads "status.phase=Running,spec.nodeName!=n1". Which
// fields there are is the list's to say.
func parseFieldSelector(text string) (FieldSelector, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var s FieldSelector
	for term := range strings.SplitSeq(text, ",") {
		field, value, negated, found := cutOperator(term)
		if !found || field == "" {
			return nil, fmt.Errorf("term %q: want FIELD=VALUE or FIELD!=VALUE", Clip(term))
		}
		s = append(s, fieldRule{field: field, value: value, negated: negated})
	}
	return s, nil
}
