package cli

import "testing"

// TestAPersonLeavesAtTheBeginningOfALine, however the keys come in pieces.
func TestAPersonLeavesAtTheBeginningOfALine(t *testing.T) {
	for typed, c := range map[string]struct {
		rest   string
		leaves bool
	}{
		"ls\r":          {"ls\r", false},
		"~.":            {"", true},
		"ls\r~.more":    {"ls\r", true},
		"ls ~.\r":       {"ls ~.\r", false},
		"~~.\r":         {"~.\r", false},
		"~/bin\r~x\n~.": {"~/bin\r~x\n", true},
		"a\r~\r~.":      {"a\r~\r", true},
	} {
		for size := 1; size <= len(typed); size++ {
			var e escape
			rest, leaves := "", false
			for at := 0; at < len(typed) && !leaves; at += size {
				var piece []byte
				piece, leaves = e.pass([]byte(typed[at:min(at+size, len(typed))]))
				rest += string(piece)
			}
			if rest != c.rest || leaves != c.leaves {
				t.Errorf("%q in pieces of %d: %q, %v, want %q, %v", typed, size, rest, leaves, c.rest, c.leaves)
			}
		}
	}
}
