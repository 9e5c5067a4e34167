package strict

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api/text"
)

// texts has each class of characters in each shape of a field.
type texts struct {
	Line    string            `json:"line,omitempty"`
	Lines   map[string]string `json:"lines,omitempty" text:"lines"`
	Free    []string          `json:"free,omitempty" text:"free"`
	Amounts map[string]string `json:"amounts,omitempty" strict:"number"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	FreeRaw json.RawMessage   `json:"freeRaw,omitempty" text:"free"`
	Many    []struct {
		Line *string `json:"line,omitempty"`
	} `json:"many,omitempty"`
}

func TestTextsHaveTheCharactersOfTheirField(t *testing.T) {
	decoder := For[texts]()
	for name, c := range map[string]struct{ doc, want string }{ // "" is taken
		"letters of other languages":       {`{"line": "Grüße 日本 🚀"}`, ""},
		"a zero byte":                      {`{"line": "a\u0000b"}`, `line: "a\x00b" has a zero byte at byte 1: leave it out`},
		"an escape of a terminal":          {`{"line": "\u001b[2J"}`, `line: "\x1b[2J" has a character at byte 0 that is not printed, U+001B`},
		"a line feed in one line":          {`{"line": "a\nb"}`, "line: \"a\\nb\" has a character at byte 1 that is not printed, U+000A"},
		"a tab in one line":                {`{"line": "a\tb"}`, "U+0009"},
		"DEL, not escaped":                 {"{\"line\": \"a\x7f\"}", "U+007F"},
		"C1, not escaped":                  {"{\"line\": \"a\u0085\"}", "U+0085"},
		"the last of C1":                   {`{"line": "\u009f"}`, "U+009F"},
		"behind the last of C1":            {`{"line": "\u00a0"}`, ""},
		"the first character that is none": {`{"line": "\u0020~"}`, ""},
		"a line separator":                 {`{"line": "\u2028"}`, "U+2028"},
		"a text from right to left":        {`{"line": "\u202efdp.exe"}`, "U+202E"},
		"an isolate of a direction":        {`{"line": "\u2066"}`, "U+2066"},
		"before the isolates":              {`{"line": "\u2065"}`, ""},
		"half a pair":                      {`{"line": "a\ud800"}`, "want a string with valid escapes"},
		"the second half alone":            {`{"line": "\udc00a"}`, "want a string with valid escapes"},
		"half a pair before text":          {`{"line": "\ud800 and more"}`, "want a string with valid escapes"},
		"half a pair before another":       {`{"line": "\ud800\ud83d\ude80"}`, "want a string with valid escapes"},
		"a whole pair":                     {`{"line": "\ud83d\ude80"}`, ""},
		"a backslash before text":          {`{"line": "\\ud800 \\u0000"}`, ""},
		"lines":                            {`{"lines": {"a": "x\n\ty"}}`, ""},
		"a return in lines":                {`{"lines": {"a": "x\r\ny"}}`, `lines.a: "x\r\ny" has a character at byte 1 that is not printed, U+000D`},
		"a key of lines":                   {`{"lines": {"a\nb": "x"}}`, `lines["a\nb"]: "a\nb" has a character at byte 1 that is not printed, U+000A`},
		"a free text":                      {`{"free": ["\u001b\r\n\u202e\u007f"]}`, ""},
		"a zero byte in a free text":       {`{"free": ["a", "\u0000"]}`, "free[1]: \"\\x00\" has a zero byte at byte 0"},
		"an element":                       {`{"many": [{}, {"line": "\u0001"}]}`, "many[1].line: "},
		"a value as it was written":        {`{"raw": {"a": ["\u0007"]}}`, "raw.a[0]: "},
		"a key as it was written":          {`{"raw": {"\u0007": 1}}`, "U+0007"},
		"a free value as it was written":   {`{"freeRaw": {"a": "\u0007"}}`, ""},
		"an unknown field":                 {`{"other": "\u0007"}`, "other: unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := decoder.Decode([]byte(c.doc))
			switch {
			case c.want == "" && len(errs) > 0:
				t.Error(errs[0])
			case c.want != "" && (len(errs) == 0 || !strings.Contains(errs[0].Error(), c.want)):
				t.Errorf("got %v, want %s", errs, c.want)
			}
			if _, errs := decoder.Stored().Decode([]byte(c.doc)); len(errs) > 0 && name != "an unknown field" {
				t.Errorf("as a stored document: %v", errs[0])
			}
		})
	}
}

// A text is taken exactly where each of its characters is one of the field's class, and the
// cleaned document is always taken, with the good characters as they were.
func TestAnyTextIsJudgedByItsCharacters(t *testing.T) {
	decoder := For[texts]()
	odd := []rune{0, 1, 8, 9, 10, 13, 27, 31, 32, 126, 127, 128, 0x85, 0x9f, 0xa0, 0x2027, 0x2028, 0x2029, 0x202a, 0x202e, 0x202f, 0x2065, 0x2066, 0x2069, 0x206a, 0xfffd, 0x1f680, 'a', '\\', '"'}
	rapid.Check(t, func(t *rapid.T) {
		drawn := string(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(odd), rapid.Rune()), 0, 8).Draw(t, "text"))
		if !utf8.ValidString(drawn) {
			t.Skip("no text")
		}
		quoted, _ := json.Marshal(drawn)
		if rapid.Bool().Draw(t, "not escaped") {
			quoted = []byte(strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(string(quoted)))
		}
		for class, doc := range map[text.Class]string{text.Line: `{"line": %s}`, text.Lines: `{"lines": {"k": %s}}`, text.Free: `{"free": [%s]}`} {
			document := fmt.Appendf(nil, doc, quoted)
			bad := strings.IndexFunc(drawn, func(r rune) bool { return !class.Has(r) }) >= 0
			if _, errs := decoder.Decode(document); (len(errs) > 0) != bad {
				t.Fatalf("class %d, %q: %v, want it refused: %t", class, drawn, errs, bad)
			}
			clean := text.Clean(document, class)
			want := fmt.Sprintf(doc, "%s")
			wanted, _ := json.Marshal(strings.Map(func(r rune) rune {
				if !class.Has(r) {
					return utf8.RuneError
				}
				return r
			}, drawn))
			a, errs := decoder.Decode(clean)
			b, _ := decoder.Decode(fmt.Appendf(nil, want, wanted))
			if len(errs) > 0 || !reflect.DeepEqual(a, b) {
				t.Fatalf("class %d, %s was cleaned to %s: %v, %v", class, document, clean, errs, a)
			}
		}
	})
}
