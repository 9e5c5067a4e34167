package yamldoc_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/musterd/muster/yamldoc"
)

func TestAmbiguousScalarsAreRefusedByName(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"not a number":              {"spec: {cpu: .nan}", "spec.cpu (line 1): the value .nan is no number that a field can have"},
		"capitals":                  {"cpu: .NaN", "cpu (line 1): the value .NaN"},
		"infinite":                  {"cpu: .inf", "the value .inf is no number"},
		"infinite, negative":        {"cpu: -.Inf", "the value -.Inf is no number"},
		"hexadecimal":               {"spec:\n  cpu: 0x10", `spec.cpu (line 2): the value 0x10 is the number 16 to some parsers of YAML, and another number or text to others: write the number in decimal digits, or "0x10" for the text`},
		"octal of YAML 1.1":         {"cpu: 010", "the value 010 is the number 8 to some"},
		"octal of YAML 1.2":         {"cpu: 0o10", "the value 0o10 is the number 8 to some"},
		"a zero before a decimal":   {"cpu: 08", "the value 08 is a number to some"},
		"binary":                    {"cpu: 0b11", "the value 0b11 is the number 3"},
		"underscores":               {"cpu: 1_000", "the value 1_000 is the number 1000"},
		"underscores in a fraction": {"cpu: 1_0.5", "the value 1_0.5 is a number to some"},
		"base 60":                   {"cpu: 1:30", `the value 1:30 is a number of base 60 to some parsers of YAML and text to others: write "1:30"`},
		"an exponent":               {"spec: {priority: 1e3}", `spec.priority (line 1): the value 1e3 is a number to some parsers of YAML and text to others: write the number without an exponent, or "1e3" for the text`},
		"an exponent of a fraction": {"cpu: 1.5E-3", "the value 1.5E-3 is a number to some"},
		"yes":                       {"hard: yes", `hard (line 1): the value yes is true to some parsers of YAML and text to others: write true, or "yes" for the text`},
		"on, in a list":             {"a: [1, {b: On}]", "a[1].b (line 1): the value On is true"},
		"OFF":                       {"a: OFF", "the value OFF is false"},
		"n":                         {"a: n", "the value n is false"},
		"a key":                     {"labels:\n  on: x", "labels.on (line 2): the key on is true"},
		"behind a document":         {"a: 1\n---\nb: yes", "b (line 3): the value yes"},
		"the document itself":       {"yes", "the document (line 1): the value yes"},
		"an anchored value":         {"a: &x 0x10\nb: *x", "a (line 1): the value 0x10"},
		"a key given twice":         {"a: 1\na: 2", `key "a" already set in map`},
		"no YAML":                   {"a: [1", "yaml: line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := yamldoc.ToJSON([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %s, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestScalarsOfOneMeaningPass(t *testing.T) {
	for text, want := range map[string]string{
		`a: "yes"`: `{"a":"yes"}`, `a: "1e3"`: `{"a":"1e3"}`, "a: 1e": `{"a":"1e"}`, "a: 1e3x": `{"a":"1e3x"}`, `a: 'on'`: `{"a":"on"}`, `a: !!str 010`: `{"a":"010"}`, `"on": 1`: `{"on":1}`,
		"a: true": `{"a":true}`, "a: 10": `{"a":10}`, "a: 0": `{"a":0}`, "a: -5": `{"a":-5}`, "a: 1.5": `{"a":1.5}`, "a: 0.5": `{"a":0.5}`,
		"a: 10s": `{"a":"10s"}`, "a: 1g.10gb": `{"a":"1g.10gb"}`, "a: 127.0.0.1:8470": `{"a":"127.0.0.1:8470"}`, "a: 2001-01-01": `{"a":"2001-01-01"}`,
		"a: 0x": `{"a":"0x"}`, "a: yes please": `{"a":"yes please"}`, "a: |\n  yes\n": `{"a":"yes\n"}`, "a: ~": `{"a":null}`, "": "null", "a: 500m": `{"a":"500m"}`,
		"a: 16Gi": `{"a":"16Gi"}`, "a: 00:1e:67:aa": `{"a":"00:1e:67:aa"}`,
	} {
		if got, err := yamldoc.ToJSON([]byte(text)); err != nil || string(got) != want {
			t.Errorf("%q: got %s, %v; want %s", text, got, err, want)
		}
	}
}

func TestHostileDocumentsEnd(t *testing.T) {
	for name, text := range map[string]string{
		"nested lists":   strings.Repeat("[", 20000),
		"nested maps":    strings.Repeat("{a: ", 9000) + "yes" + strings.Repeat("}", 9000),
		"aliases":        "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
		"a long scalar":  "a: 0" + strings.Repeat("1", 100000),
		"no characters":  "\x00\xff",
		"a key of a map": "? {a: yes}\n: b",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := yamldoc.ToJSON([]byte(text)); err != nil && len(err.Error()) > 1000 {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
		})
	}
}

// Documents whose aliases stand for far more than the text are refused before the
// conversion, and documents at the bounds are taken.
func TestDocumentsBeyondTheirBoundsAreRefused(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	list := func(n int) string { return "[" + strings.Repeat("1,", n-1) + "1]" }
	for name, c := range map[string]struct {
		text string
		want bool // is taken
	}{
		"many values":            {list(yamldoc.MaxValues - 2), true},
		"one value more":         {list(yamldoc.MaxValues - 1), false},
		"aliases of values":      {"a: &a " + list(1000) + "\nb: [" + strings.Repeat("*a,", 60) + "*a]", true},
		"aliases of many":        {"a: &a " + list(1000) + "\nb: [" + strings.Repeat("*a,", 70) + "*a]", false},
		"aliases of a text":      {"a: &a " + strings.Repeat("x", 10_000) + "\nb: [" + strings.Repeat("*a,", 200) + "*a]", false},
		"aliases of aliases":     {"a: &a [1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e]", false},
		"nested":                 {deep(yamldoc.MaxDepth - 1), true},
		"nested deeper":          {deep(yamldoc.MaxDepth + 1), false},
		"nested by an alias":     {"a: &a " + deep(40) + "\nb: " + strings.Repeat("[", 40) + "*a" + strings.Repeat("]", 40), false},
		"an alias of its own":    {"a: &a [*a]", false},
		"the second document":    {"a: 1\n---\n" + deep(100), false},
		"an alias in two places": {"a: &a {b: 1}\nc: *a\nd: [*a]", true},
	} {
		_, err := yamldoc.ToJSON([]byte(c.text))
		if (err == nil) != c.want || !c.want && !errors.Is(err, yamldoc.ErrTooLarge) && !strings.Contains(err.Error(), "contains itself") {
			t.Errorf("%s: %v, want it taken: %t", name, err, c.want)
		}
	}
}

// What passes is JSON, passes again as the YAML that JSON is, and means the same.
func FuzzToJSON(f *testing.F) {
	for _, seed := range []string{"a: 1", "a: yes", "a: 0x10", "a: [1_000, .inf]", "{on: x}", "a: &x 010\nb: *x", "a: 'yes'", "--- a\n--- b", "a: 1e3", "? [a]\n: b", "<<: {a: 1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := yamldoc.ToJSON(data)
		if err != nil {
			return
		}
		if !json.Valid(doc) {
			t.Fatalf("%q became %q, which is no JSON", data, doc)
		}
		if err := yamldoc.Check(doc); err != nil {
			t.Fatalf("%q became %s, which is refused: %v", data, doc, err)
		}
	})
}
