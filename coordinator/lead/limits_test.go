package lead

import (
	"strings"
	"testing"
)

func TestClipCutsBetweenCharacters(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 600), strings.Repeat("ü", 300), strings.Repeat("世", 200)} {
		got := Clip(text)
		if len(got) > longestForeign || strings.ToValidUTF8(got, "?") != got || len(text) <= longestForeign && got != text {
			t.Errorf("%d bytes became %d: %q", len(text), len(got), got)
		}
	}
}
