package samplefile

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// wrongTypes are values of other types than a key's, as JSON, which is YAML as well.
func wrongTypes(kind string) []string {
	text, number, truth, list, object := `"zzz"`, "77", "true", `["zzz"]`, `{"zzz":7}`
	switch {
	case strings.HasPrefix(kind, "list"):
		return []string{text, number, truth, object, "[[7]]", "[7]"}
	case strings.HasPrefix(kind, "map"):
		return []string{text, number, truth, list}
	}
	switch kind {
	case "boolean":
		return []string{text, number, list, object}
	case "whole number":
		return []string{text, truth, list, object, "1.5", "1e99", "99999999999999999999", `"NaN"`}
	case "duration":
		return []string{text, number, truth, list, object, `"NaN"`, `"1e99"`}
	case "text or number":
		return []string{text, truth, list, object, `"NaN"`, "1e99", "-1"}
	}
	return []string{number, truth, list, object}
}

// Bad checks that every key refuses bad values with the name of the key and the
// value: values of other types, those outside of its range, and those of bad. A key
// without a value that only its meaning excludes stands in free, with the reason;
// booleans need neither.
func (f File) Bad(t *testing.T, bad map[string][]string, free map[string]string) {
	t.Helper()
	known := map[string]bool{}
	for _, k := range f.keys(t) {
		known[k.Path] = true
		excluded := append(append([]string{}, f.Facts[k.Path].Outside...), bad[k.Path]...)
		if len(excluded) == 0 && k.Type != "boolean" && free[k.Path] == "" {
			t.Errorf("%s has no row with a bad value: add one, or say why there is none", k.Path)
		}
		if len(excluded) > 0 && free[k.Path] != "" {
			t.Errorf("%s has rows with bad values and a reason why there are none", k.Path)
		}
		for _, v := range append(excluded, wrongTypes(k.Type)...) {
			f.refuses(t, strings.ReplaceAll(k.Path, Any, "research"), v)
		}
		groups := strings.Split(k.Path, ".")
		for i := range groups[:len(groups)-1] {
			group := strings.ReplaceAll(strings.Join(groups[:i+1], "."), Any, "research")
			for _, v := range []string{`"zzz"`, "77", `["zzz"]`} {
				f.refuses(t, group, v)
			}
			if groups[i+1] != Any {
				f.refuses(t, group+".zzz", "1")
			}
		}
	}
	for path := range bad {
		if !known[path] {
			t.Errorf("%s is no key of %s", path, f.Name)
		}
	}
	for path := range free {
		if !known[path] {
			t.Errorf("%s is no key of %s", path, f.Name)
		}
	}
}

// longest bounds a refusal, in bytes.
const longest = 1000

func (f File) refuses(t *testing.T, path, value string) {
	t.Helper()
	err := f.Check(t, nested(path, value))
	switch {
	case err == nil:
		t.Errorf("%s: %.80s is taken", path, value)
	case !strings.Contains(err.Error(), path) || !shows(err.Error(), path, value) || len(err.Error()) > longest:
		t.Errorf("%s: %.80s is answered %.300q: want the key and the value", path, value, err)
	}
}

// words are the words of a map in YAML.
var words = regexp.MustCompile(`[A-Za-z0-9./]+`)

// shows reports whether a refusal has the value, as it was written or as a duration
// is printed; of an unknown key its name says enough.
func shows(refusal, path, value string) bool {
	if strings.HasSuffix(path, ".zzz") {
		return strings.Contains(refusal, fmt.Sprintf("unknown field %q", path)) || strings.Contains(refusal, value)
	}
	bare := strings.Trim(value, `"'`)
	if bare == "" {
		return strings.Contains(refusal, `""`) || strings.Contains(refusal, "not set") || strings.Contains(refusal, "empty")
	}
	if strings.HasPrefix(bare, "{") && value != `{"zzz":7}` {
		for _, word := range words.FindAllString(bare, -1) {
			if !strings.Contains(refusal, word[:min(len(word), 60)]) {
				return false
			}
		}
		return true
	}
	if len(bare) > 60 {
		bare = bare[:60]
	}
	if d, err := time.ParseDuration(bare); err == nil && strings.Contains(refusal, d.String()) {
		return true
	}
	for _, shown := range []string{bare, strings.Trim(bare, "[]{}'\""), strings.ReplaceAll(bare, "1e99", "1e+99"), strings.ReplaceAll(bare, `"`, `\"`), strings.ReplaceAll(bare, "99999999999999999999", "100000000000000000000")} {
		if strings.Contains(refusal, shown) {
			return true
		}
	}
	return false
}
