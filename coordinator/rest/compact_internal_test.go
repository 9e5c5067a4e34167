package rest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A document is kept as encoding/json compacts it, and in memory of its own size.
func TestCompacted(t *testing.T) {
	cases := map[string]string{
		"without blanks":            `{"a":1}`,
		"blanks between tokens":     "{ \"a\" :\t1 ,\r\n \"b\" : [ 1 , 2 ] } \n",
		"blanks in a string":        `{"a": " x  y "}`,
		"an escaped quote":          `{"a": "\" \\", "b": " "}`,
		"the end of a string":       `{"a":"\\" , "b": 1}`,
		"much room behind a little": `{"a":1}` + strings.Repeat(" ", 1<<16),
	}
	for name, doc := range cases {
		t.Run(name, func(t *testing.T) {
			var want bytes.Buffer
			if err := json.Compact(&want, []byte(doc)); err != nil {
				t.Fatal(err)
			}
			if got := compacted([]byte(doc)); string(got) != want.String() || cap(got) > len(got)+len(got)/8+8 {
				t.Errorf("%q of %d bytes, want %q", got, cap(got), want.String())
			}
		})
	}
	for _, doc := range []string{"", "1 2", "tr ue", `{"a": 1`, `"a b`} {
		if got := compacted([]byte(doc)); string(got) != doc {
			t.Errorf("%q, which is no JSON, becomes %q", doc, got)
		}
	}
}

// Any value, with any blanks, is kept as encoding/json compacts it.
func TestCompactedAnyDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.String())).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		var blank bytes.Buffer
		if err := json.Indent(&blank, text, rapid.StringMatching(`[ \t]{0,3}`).Draw(t, "prefix"), rapid.StringMatching(`[ \t]{0,3}`).Draw(t, "indent")); err != nil {
			t.Fatal(err)
		}
		if got := compacted(blank.Bytes()); !bytes.Equal(got, text) {
			t.Fatalf("%q becomes %q, want %q", blank.Bytes(), got, text)
		}
	})
}

func FuzzCompacted(f *testing.F) {
	for _, seed := range []string{"", "{}", `{ "a" : "\" " }`, "1 2", `"\\" `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		want := doc
		var out bytes.Buffer
		if json.Compact(&out, doc) == nil {
			want = out.Bytes()
		}
		if got := compacted(doc); !bytes.Equal(got, want) {
			t.Errorf("%q becomes %q, want %q", doc, got, want)
		}
	})
}
