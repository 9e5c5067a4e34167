package text_test

import (
	"encoding/json"
	"testing"

	"github.com/musterd/muster/api/text"
)

func TestWhatNeedsNoCleaningIsTheSameDocument(t *testing.T) {
	document := []byte(`{"a": "b\n\\u0000 ü\ud83d\ude80"}`)
	if got := text.Clean(document, text.Free); &got[0] != &document[0] {
		t.Errorf("%s was copied to %s", document, got)
	}
}

// Cleaning takes any bytes.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{`"\u0000"`, `"\ud800\udc00"`, `"\ud800\u0041"`, `"\`, `"\u00`, "\xff\x00", `"\b\f"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		for _, class := range []text.Class{text.Line, text.Lines, text.Free} {
			clean := text.Clean(document, class)
			if again := text.Clean(clean, class); string(again) != string(clean) {
				t.Fatalf("%q is cleaned to %q, and that to %q", document, clean, again)
			}
			if json.Valid(document) && !json.Valid(clean) {
				t.Fatalf("%q is JSON, %q is not", document, clean)
			}
		}
	})
}
