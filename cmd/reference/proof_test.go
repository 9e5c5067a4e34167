package reference

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/coordinator/enroll"
)

// leftOut are fields that the example of a kind has not: the server refuses them
// in this kind, or beside another field of the example.
var leftOut = map[string][]string{
	"Job": {
		"spec.template.metadata.name", "spec.template.metadata.namespace", "spec.template.spec.priority", "spec.template.spec.priorityClass",
		"spec.template.spec.queue", "spec.template.spec.suspend", "spec.template.spec.gangScheduling",
		"spec.template.spec.stdin", "spec.template.spec.tty", // for one member
		"spec.template.spec.bundle", // excludes rootfs; api/work_test.go has its bounds
		"spec.members",              // excludes alternatives; api/member_set_test.go has its bounds
		"spec.template.spec.scheduling.gangScheduling.subgroup.name",
	},
	"Allocation": {"spec.gangScheduling", "spec.scheduling.gangScheduling.subgroup.members", "spec.bundle"},
	"QuotaTree":  {"metadata.namespace"}, "QuotaForest": {"metadata.namespace"}, "QuotaBinding": {"metadata.namespace"},
	"Tenant": {"metadata.namespace"}, "Resource": {"metadata.namespace"}, "Queue": {"metadata.namespace"}, "PriorityClass": {"metadata.namespace"}, "Namespace": {"metadata.namespace"},
	"RoleBinding":         {"metadata.namespace"},
	"AccessToken":         {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations"},
	"BootstrapToken":      {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations"},
	"OperatorCertificate": {"metadata.namespace", "metadata.labels", "metadata.annotations"},
	"NodeBan":             {"metadata.namespace", "metadata.labels", "metadata.annotations"},
}

// decodable are the kinds that the server reads.
func decodable() []Kind {
	return slices.DeleteFunc(slices.Clone(Kinds()), func(k Kind) bool { return k.Decode == nil })
}

// every calls one for each field below fields.
func every(fields []Field, one func(Field)) {
	for _, f := range fields {
		one(f)
		every(f.Fields, one)
	}
}

// inMap stands for any key of a map.
const inMap = "any"

// example builds a document with every field of a kind that the server reads.
func example(t *testing.T, k Kind) map[string]any {
	t.Helper()
	return build(t, k.Fields, leftOut[k.Name])
}

func build(t *testing.T, fields []Field, without []string) map[string]any {
	t.Helper()
	doc := map[string]any{}
	for _, f := range fields {
		if !f.ReadOnly && !f.Refused && !slices.Contains(without, f.Path) { // a part of a refused field is shown by the test of refusals
			doc[f.Name] = value(t, f, without)
		}
	}
	return doc
}

// value is an example of one field, in the form of encoding/json.
func value(t *testing.T, f Field, without []string) any {
	t.Helper()
	var v any
	switch {
	case f.Fields != nil:
		v = build(t, f.Fields, without)
		switch {
		case strings.HasPrefix(f.Type, "list"):
			return []any{v}
		case strings.HasPrefix(f.Type, "map"):
			return map[string]any{inMap: v}
		}
		return v
	case f.Values != nil:
		return listed(f, f.Values[0])
	}
	return parsed(t, f, f.Example)
}

// listed is a value in the shape of its field.
func listed(f Field, v any) any {
	if strings.HasPrefix(f.Type, "list") {
		return []any{v}
	}
	return v
}

func parsed(t *testing.T, f Field, text string) any {
	t.Helper()
	if !strings.Contains(f.Type, " of ") && f.Type != "integer" && f.Type != "number" && f.Type != "boolean" {
		return text
	}
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: the example %q: %v", f.Path, text, err)
	}
	return v
}

// with returns a copy of a document with one field changed; nil removes it.
func with(doc map[string]any, path string, v any) map[string]any {
	raw, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	var c map[string]any
	if err := json.Unmarshal(raw, &c); err != nil {
		panic(err)
	}
	names := strings.Split(path, ".")
	at := c
	for _, name := range names[:len(names)-1] {
		next, ok := at[name]
		if !ok {
			next = map[string]any{}
			at[name] = next
		}
		if l, ok := next.([]any); ok {
			next = l[0]
		}
		at = next.(map[string]any)
		if inner, ok := at[inMap].(map[string]any); ok {
			at = inner
		}
	}
	if last := names[len(names)-1]; v == nil {
		delete(at, last)
	} else {
		at[last] = v
	}
	return c
}

// refusal is the text of a decoder's error, "" for none, with indexes and keys of
// maps taken out of its paths.
func refusal(k Kind, doc map[string]any) string {
	raw, err := json.Marshal(doc)
	if err != nil {
		return err.Error()
	}
	err = k.Decode(raw)
	if err == nil {
		return ""
	}
	return inAny.ReplaceAllString(err.Error(), "")
}

// inAny are the parts of a path that name an element of a list or the key of a map.
var inAny = regexp.MustCompile(`\[\d+\]|\.` + inMap + `\b`)

// names reports whether a refusal is about a field.
func names(refusal, path string) bool {
	return strings.HasPrefix(refusal, path+":") || strings.HasPrefix(refusal, path+".") || strings.HasPrefix(refusal, path+"[")
}

func TestTheExampleOfEveryKindIsDecoded(t *testing.T) {
	for _, k := range decodable() {
		if said := refusal(k, example(t, k)); said != "" {
			doc, _ := yaml.Marshal(example(t, k))
			t.Errorf("%s: %s\n%s", k.Name, said, doc)
		}
	}
}

func TestFieldsThatAreLeftOutOfExamplesAreRefused(t *testing.T) {
	for _, k := range decodable() {
		for _, path := range leftOut[k.Name] {
			var v any
			every(k.Fields, func(f Field) {
				if f.Path == path {
					v = value(t, f, nil)
				}
			})
			if v == nil {
				t.Errorf("%s has no field %s", k.Name, path)
				continue
			}
			if said := refusal(k, with(example(t, k), path, v)); !names(said, path) {
				t.Errorf("%s with %s is answered %q, want a refusal of the field", k.Name, path, said)
			}
		}
	}
}

func TestUnsupportedFieldsAreRefused(t *testing.T) {
	for _, k := range decodable() {
		every(k.Fields, func(f Field) {
			if !f.Refused || refusedAbove(k, f) {
				return
			}
			if said := refusal(k, with(example(t, k), f.Path, value(t, f, nil))); !names(said, f.Path) || !strings.Contains(said, "not supported") {
				t.Errorf("%s with %s is answered %q, want that the field is not supported", k.Name, f.Path, said)
			}
		})
	}
}

// checkedLater are bounds that no decoder knows: the coordinator's own.
var checkedLater = map[string]string{
	"BootstrapToken spec.ttl":      span(enroll.MinTokenTTL, enroll.MaxTokenTTL),
	"BootstrapToken spec.uses":     "1.." + strconv.Itoa(enroll.MaxTokenUses),
	"OperatorCertificate spec.ttl": span(enroll.MinOperatorTTL, enroll.MaxOperatorTTL),
}

func span(low, high time.Duration) string { return short(low) + ".." + short(high) }

// short is a duration as people write it: 1m, not 1m0s.
func short(d time.Duration) string {
	text := strings.TrimSuffix(d.String(), "0s")
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	if text == "" || text[len(text)-1] < 'A' {
		return d.String()
	}
	return text
}

func TestRangesAreThoseOfTheDecoders(t *testing.T) {
	proven := map[string]bool{}
	for _, k := range decodable() {
		every(k.Fields, func(f Field) {
			if f.Range == "" || f.ReadOnly || f.Refused || slices.Contains(leftOut[k.Name], f.Path) || partOf(leftOut[k.Name], f.Path) {
				return
			}
			id := k.Name + " " + f.Path
			proven[id] = true
			if want, ok := checkedLater[id]; ok {
				if want != f.Range {
					t.Errorf("%s has the range %s, the code has %s", id, f.Range, want)
				}
				return
			}
			for _, b := range bounds(t, f) {
				said := refusal(k, with(example(t, k), f.Path, b.value))
				switch {
				case b.within && names(said, f.Path) && !strings.Contains(said, "more than spec.parallelism") && !strings.Contains(said, "so completions is parallelism"):
					t.Errorf("%s: %v is within %s and refused: %s", id, b.value, f.Range, said)
				case !b.within && !names(said, f.Path):
					t.Errorf("%s: %v is outside %s and answered %q", id, b.value, f.Range, said)
				}
			}
		})
	}
	for id := range checkedLater {
		if !proven[id] {
			t.Errorf("%s is no field with a range", id)
		}
	}
}

// refusedAbove reports whether the object that a field is part of is refused as a
// whole.
func refusedAbove(k Kind, f Field) (above bool) {
	every(k.Fields, func(other Field) { above = above || other.Refused && strings.HasPrefix(f.Path, other.Path+".") })
	return above
}

func partOf(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(path, p+".") })
}

// bound is a value at the edge of a range.
type bound struct {
	value  any
	within bool
}

func bounds(t *testing.T, f Field) []bound {
	t.Helper()
	low, high, ok := strings.Cut(f.Range, "..")
	if !ok {
		t.Fatalf("%s: the range %q is not LOW..HIGH", f.Path, f.Range)
	}
	var all []bound
	for text, beyond := range map[string]int64{low: -1, high: 1} {
		if text == "" {
			continue
		}
		if f.Type == "duration" {
			d, err := time.ParseDuration(text)
			if err != nil {
				t.Fatalf("%s: %v", f.Path, err)
			}
			all = append(all, bound{d.String(), true}, bound{(d + time.Duration(beyond)).String(), false})
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		all = append(all, bound{n, true}, bound{n + beyond, false})
	}
	return all
}

func TestValuesAreThoseThatTheDecodersTake(t *testing.T) {
	for _, k := range decodable() {
		every(k.Fields, func(f Field) {
			if f.Values == nil || f.ReadOnly || f.Refused || slices.Contains(leftOut[k.Name], f.Path) || partOf(leftOut[k.Name], f.Path) {
				return
			}
			for _, v := range f.Values {
				if said := refusal(k, with(example(t, k), f.Path, listed(f, v))); names(said, f.Path) {
					t.Errorf("%s: %s is %s, one of its values, and refused: %s", k.Name, f.Path, v, said)
				}
			}
			if said := refusal(k, with(example(t, k), f.Path, listed(f, "nonsense"))); !names(said, f.Path) {
				t.Errorf("%s: %s is nonsense and answered %q", k.Name, f.Path, said)
			}
		})
	}
}

func TestRequiredFieldsAreRequired(t *testing.T) {
	for _, k := range decodable() {
		every(k.Fields, func(f Field) {
			if !f.Required || f.ReadOnly || partOf(leftOut[k.Name], f.Path) {
				return
			}
			if said := refusal(k, with(example(t, k), f.Path, nil)); !names(said, f.Path) {
				t.Errorf("%s without %s is answered %q, want a refusal of the field", k.Name, f.Path, said)
			}
		})
	}
}

// A field that no test knows would be a field that the decoder ignores: strict
// decoding refuses it.
func TestUnknownFieldsAreRefusedAtEveryLevel(t *testing.T) {
	for _, k := range decodable() {
		paths := map[string]bool{"": true}
		every(k.Fields, func(f Field) {
			if f.Fields != nil && !f.ReadOnly && !f.Refused && !slices.Contains(leftOut[k.Name], f.Path) && !partOf(leftOut[k.Name], f.Path) {
				paths[f.Path] = true
			}
		})
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			unknown := strings.TrimPrefix(path+".zzz", ".")
			if path == "metadata" && (k.Name == "QuotaTree" || k.Name == "Consumer") {
				continue // quotajson reads the name of the metadata alone
			}
			if said := refusal(k, with(example(t, k), unknown, "x")); !strings.Contains(said, "zzz") {
				t.Errorf("%s with %s is answered %q", k.Name, unknown, said)
			}
		}
	}
}
