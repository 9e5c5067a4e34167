package reference

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// lined are the fields with lines, and free the fields with each character but NUL, by the
// ends of their paths. All other fields have a single line.
var (
	lined = []string{"annotations", "message", "reason", "exitMessage", "exitReason", "chain", "authorities"}
	free  = []string{"command", "args", "env.value", "request"}
)

func endsIn(id string, ends []string) bool {
	for _, end := range ends {
		if strings.HasSuffix(id, "."+end) || strings.HasSuffix(id, " "+end) {
			return true
		}
	}
	return false
}

// A new field refuses control characters as the others do, or is named above with a class of
// characters.
func TestEveryTextRefusesControlCharacters(t *testing.T) {
	tried := 0
	for _, k := range decodable() {
		if k.Name == "Consumer" { // is tried and never kept
			continue
		}
		every(k.Fields, func(f Field) {
			id := k.Name + " " + f.Path
			if f.Fields != nil || f.Type == "boolean" || strings.HasSuffix(f.Type, "integer") || strings.HasSuffix(f.Type, "number") {
				return
			}
			others := []string{"\x1b", "\u0085", "\u202e"}
			for _, odd := range []string{"\x00", "\n", others[tried%len(others)]} {
				shown := fmt.Sprintf("U+%04X", []rune(odd)[0])
				if odd == "\x00" {
					shown = "zero byte"
				}
				if odd != "\x00" && endsIn(id, free) || odd == "\n" && endsIn(id, lined) {
					continue
				}
				var values []any
				switch {
				case strings.HasPrefix(f.Type, "map"):
					values = []any{map[string]any{"a": "x" + odd}, map[string]any{"a" + odd: "x"}}
				case strings.HasPrefix(f.Type, "list"):
					values = []any{[]any{"x", "x" + odd}}
				default:
					values = []any{"x" + odd}
				}
				for _, v := range values {
					tried++
					err := k.Decode(put(t, k, f.Path, v))
					last := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
					if raw, _ := json.Marshal(v); err == nil || !strings.Contains(err.Error(), shown) || !strings.Contains(err.Error(), last) {
						t.Errorf("%s with %s: %v, want a refusal that names the field and %s: see the tag `text` of package api/internal/strict", id, raw, err, shown)
					}
				}
			}
		})
	}
	if tried < 1000 {
		t.Errorf("%d values were tried, want 1000 or more", tried)
	}
}
