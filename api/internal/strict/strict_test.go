package strict

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type leaf struct {
	Text  string            `json:"text,omitempty"`
	Amt   map[string]string `json:"amounts,omitempty" strict:"number"`
	Small *int32            `json:"small,omitempty"`
}

type tree struct {
	Name   string            `json:"name,omitempty"`
	Count  int64             `json:"count,omitempty"`
	On     bool              `json:"on,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	List   []leaf            `json:"list,omitempty"`
	Leaf   *leaf             `json:"leaf,omitempty"`
	Raw    json.RawMessage   `json:"raw,omitempty"`
	Hidden string            `json:"-"`
}

func TestRefusals(t *testing.T) {
	decoder := For[tree]()
	cases := map[string]struct{ doc, want string }{
		"nothing at all":                 {"", `line 1, column 1: want an object {…}, found the end of the document`},
		"an array instead of a document": {"[]", `line 1, column 1: want an object {…}, found '['`},
		"text after the document":        {"{} {}", `line 1, column 4: want the end of the document, found '{'`},
		"an unknown field near a known":  {`{"cuont": 1}`, `cuont: unknown field, did you mean "count"?`},
		"an unknown field far from any":  {`{"leaf": {"elsewhere": 1}}`, `leaf.elsewhere: unknown field`},
		"the wrong case":                 {`{"Name": "x"}`, `Name: unknown field, did you mean "name"?`},
		"a field given twice":            {`{"count": 1, "count": 2}`, `count: the field is given twice`},
		"an escaped duplicate":           {`{"count": 1, "\u0063ount": 2}`, `count: the field is given twice`},
		"a key given twice":              {`{"labels": {"a/b": "1", "a/b": "2"}}`, `labels["a/b"]: the key is given twice`},
		"a string for a number":          {`{"count": "many"}`, `count: want a whole number, got the string "many"`},
		"a fraction for a count":         {`{"count": 1.5}`, `count: want a whole number, got 1.5`},
		"a number for a string":          {`{"labels": {"size": 4}}`, `labels.size: want a string, got the number 4 (put it in quotes)`},
		"an object for a list":           {`{"list": {}}`, `list: want an array […], got an object`},
		"a list for an object":           {`{"leaf": []}`, `leaf: want an object {…}, got an array`},
		"yes for true":                   {`{"on": "yes"}`, `on: want true or false, got the string "yes"`},
		"an error within a list":         {`{"list": [{}, {"text": true}]}`, `list[1].text: want a string, got true`},
		"a number beyond its field":      {`{"leaf": {"small": 2147483648}}`, `leaf.small: 2147483648 does not fit into 32 bits`},
		"a leading zero":                 {`{"count": 01}`, `count: line 1, column 11: want a number, found '0'`},
		"a trailing comma":               {"{\n  \"count\": 1,\n}", `line 3, column 1: want a field name in quotes, found '}'`},
		"an unfinished string":           {`{"name": "abc`, `name: line 1, column 14: want the closing quote of a string, found the end of the document`},
		"a bad escape":                   {`{"name": "\q"}`, `name: line 1, column 10: want a string with valid escapes, found '"'`},
		"a control character":            {"{\"name\": \"a\tb\"}", `name: line 1, column 12: want a string without control characters, found '\t'`},
		"invalid UTF-8":                  {"{\"name\": \"\xff\"}", `the document is not valid UTF-8`},
		"a hidden field":                 {`{"Hidden": "x"}`, `Hidden: unknown field`},
		"nesting where none belongs":     {`{"name": ` + strings.Repeat("[", 100000), `name: want a string, got an array`},
		"a raw value cut short":          {`{"raw": {"a": [1, `, `raw.a[1]: line 1, column 19: want a value, found the end of the document`},
		"a raw key twice":                {`{"raw": {"a": [{"b": 1, "b": 2}]}}`, `raw.a[0].b: the key is given twice`},
		"a raw word":                     {`{"raw": {"a": yes}}`, `raw.a: line 1, column 15: want a value, found 'y'`},
		"a raw value nested too deep":    {`{"raw": ` + strings.Repeat(`{"a":`, 1000), `raw` + strings.Repeat(".a", 33) + `: nested deeper than 32`},
		"a half literal":                 {`{"on": tru}`, `on: line 1, column 8: want a value, found 't'`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := decoder.Decode([]byte(c.doc))
			if len(errs) == 0 {
				t.Fatalf("decoded %q", c.doc)
			}
			if diff := cmp.Diff(c.want, errs[0].Error()); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNumbersAsQuantities(t *testing.T) {
	got, err := For[tree]().Decode([]byte(`{"leaf": {"amounts": {"cpu": 0.5, "gpu": "4", "mem": 1e3}, "small": null}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &tree{Leaf: &leaf{Amt: map[string]string{"cpu": "0.5", "gpu": "4", "mem": "1e3"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// checkErrors holds the faults of a document within their bounds.
func checkErrors(t *testing.T, errs []*Error) {
	t.Helper()
	if len(errs) > MaxErrors {
		t.Errorf("%d faults, want at most %d", len(errs), MaxErrors)
	}
	for _, e := range errs {
		if e.Message == "" || len(e.Message) > 400 {
			t.Errorf("a message of %d bytes: %.80q", len(e.Message), e.Message)
		}
	}
}

func TestAllFaultsOfADocumentAreNamed(t *testing.T) {
	decoder := For[tree]()
	for name, c := range map[string]struct {
		doc  string
		want []string
	}{
		"unknown fields, wrong types and a number that does not fit": {
			`{"nam": 1, "count": 99999999999999999999, "on": [true], "labels": {"a": {}, "b": "c"}, "list": [{"small": 1.5}, 7]}`,
			[]string{
				`nam: unknown field, did you mean "name"?`, `count: 99999999999999999999 does not fit into 64 bits`, `on: want true or false, got an array`,
				`labels.a: want a string, got an object`, `list[0].small: want a whole number, got 1.5`, `list[1]: want an object {…}, got the number 7`,
			},
		},
		"a syntax error ends the reading": {`{"nam": 1, "on": 2, "name": }`, []string{
			`nam: unknown field, did you mean "name"?`, `on: want true or false, got the number 2`, `name: line 1, column 29: want a value, found '}'`,
		}},
		"a field twice": {`{"name": "a", "name": "b", "on": "x"}`, []string{`name: the field is given twice`, `on: want true or false, got the string "x"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := decoder.Decode([]byte(c.doc))
			var got []string
			for _, e := range errs {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	many := `{"list": [` + strings.Repeat(`7, `, 1000) + `7]}`
	if _, errs := decoder.Decode([]byte(many)); len(errs) != MaxErrors {
		t.Errorf("%d faults of 1001 are named, want %d", len(errs), MaxErrors)
	}
}

// FuzzDecode holds the decoder against encoding/json: what it takes,
// encoding/json takes too and reads the same, bare quantities aside.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"name":"a","count":-5,"on":true}`, `{"labels":{"a":"b"},"list":[{"text":"é\n"},{}],"leaf":{"small":3}}`,
		`{"count":1e3}`, `{"name":"\ud800"}`, ` { "list" : [ null ] } `, `{"leaf":{"amounts":{"cpu":"1"}}}`,
	} {
		f.Add([]byte(s))
	}
	decoder := For[tree]()
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, errs := decoder.Decode(doc)
		if len(errs) > 0 {
			checkErrors(t, errs)
			return
		}
		if got.Leaf != nil && len(got.Leaf.Amt) > 0 {
			return
		}
		for _, l := range got.List {
			if len(l.Amt) > 0 {
				return
			}
		}
		var want tree
		if err := json.Unmarshal(doc, &want); err != nil {
			t.Fatalf("accepted %q, which encoding/json refuses: %v", doc, err)
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%q (-json +strict):\n%s", doc, diff)
		}
	})
}
